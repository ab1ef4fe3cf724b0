//! The one interface of the new network namespace, and where its packets go. See `rtnetlink(7)`.

use redoma_sys::{Errno, nr};
use rustix::net::Protocol;

use super::netlink::Request;
use crate::error::{Failure, InStep, Step};

/// `NETLINK_ROUTE` is protocol 0.
const ROUTE: Option<Protocol> = None;

/// Interface 1 is loopback in every namespace.
const LOOPBACK: u32 = 1;

/// Brings loopback up, so that programs inside can talk to each other.
pub(super) fn bring_up() -> Result<(), Failure> {
    let mut request = Request::default();
    link_up(&mut request, nr::NLM_F_ACK);
    request.send(ROUTE).and_then(|answers| answers.all()).step(Step::Loopback)
}

/// Brings loopback up and makes every address there is one of this machine, so that connections to any of them can be
/// redirected. Whether that includes IPv6 is the answer.
pub(super) fn lead_all_to_loopback() -> Result<bool, Failure> {
    let mut request = Request::default();
    link_up(&mut request, 0);
    default_route(&mut request, nr::AF_INET, 0);
    default_route(&mut request, nr::AF_INET6, nr::NLM_F_ACK);
    let answers = request.send(ROUTE).step(Step::Loopback)?;
    answers.at(0).step(Step::Loopback)?;
    answers.at(1).step(Step::Route)?;
    match answers.at(2) {
        Ok(()) => Ok(true),
        // No such family, or switched off: then there is no IPv6 inside either, and nothing that could go by it.
        Err(Errno::AFNOSUPPORT | Errno::OPNOTSUPP | Errno::ACCESS | Errno::NODEV) => Ok(false),
        Err(errno) => Err(Failure::new(Step::Route, errno)),
    }
}

/// `RTM_NEWLINK` with an `ifinfomsg` that says nothing but "up".
fn link_up(request: &mut Request, flags: i32) {
    const UP: u32 = nr::IFF_UP as u32;
    request.message(nr::RTM_NEWLINK, flags, |body| {
        for word in [0, LOOPBACK, UP, UP] {
            body.structure(&word.to_ne_bytes());
        }
    });
}

/// `RTM_NEWROUTE` with an `rtmsg`, as `ip route add local default dev lo` has it: no prefix, in the table of local
/// addresses, which comes first. There the routes of loopback's own addresses are longer and stay what they are.
fn default_route(request: &mut Request, family: i32, flags: i32) {
    request.message(nr::RTM_NEWROUTE, nr::NLM_F_CREATE | nr::NLM_F_EXCL | flags, |body| {
        let table = nr::RT_TABLE_LOCAL;
        let (protocol, scope, kind) = (nr::RTPROT_BOOT, nr::RT_SCOPE_HOST, nr::RTN_LOCAL);
        body.structure(&[family as u8, 0, 0, 0, table, protocol, scope, kind]);
        body.structure(&[0; 4]);
        body.attribute(nr::RTA_OIF, &LOOPBACK.to_ne_bytes());
    });
}
