//! The gateway's sockets inside, made while init still has the rights to, and before a command could be quicker.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;

use redoma_sys::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netlink, socket_with};

use super::redirect::DNS;
use super::wires::End;
use crate::error::{Failure, InStep, Step};

const FLAGS: SocketFlags = SocketFlags::CLOEXEC.union(SocketFlags::NONBLOCK);

/// As many connections as the kernel lets wait, for the gateway may be asking the user.
const WAITING: i32 = 4096;

/// A port for the capturing listeners. Commands may not bind below 1024, so that none of theirs is taken from them.
pub(super) fn capture_port(proxy: NonZeroU16, reach: &[NonZeroU16]) -> Result<u16, Failure> {
    let taken =
        |port: u16| port == DNS || port == proxy.get() || reach.iter().any(|reached| reached.get() == port);
    (1..1024).rev().find(|port| !taken(*port)).ok_or(Failure::new(Step::Listen, Errno::ADDRINUSE))
}

/// Binds every socket, those for IPv6 too if `v6`. The listeners don't listen yet.
pub(super) fn bind_all(
    capture: u16,
    proxy: NonZeroU16,
    reach: &[NonZeroU16],
    v6: bool,
) -> Result<Vec<(End, OwnedFd)>, Failure> {
    let mut ends = Vec::new();
    let mut add = |end, kind, port| -> Result<(), Failure> {
        ends.push((end, bind(kind, (Ipv4Addr::LOCALHOST, port).into())?));
        if v6 {
            ends.push((end, bind(kind, (Ipv6Addr::LOCALHOST, port).into())?));
        }
        Ok(())
    };
    add(End::Capture, SocketType::STREAM, capture)?;
    add(End::Dns, SocketType::DGRAM, DNS)?;
    add(End::Proxy, SocketType::STREAM, proxy.get())?;
    for port in reach {
        add(End::Reach(port.get()), SocketType::STREAM, port.get())?;
    }
    ends.push((End::Diag, diag().step(Step::Listen)?));
    Ok(ends)
}

fn bind(kind: SocketType, address: SocketAddr) -> Result<OwnedFd, Failure> {
    let family = match address.ip() {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    let socket = socket_with(family, kind, FLAGS, None);
    socket
        .and_then(|socket| rustix::net::bind(&socket, &address).map(|()| socket))
        .step_at(Step::Listen, address.to_string())
}

fn diag() -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::NETLINK, SocketType::RAW, FLAGS, Some(netlink::SOCK_DIAG))
}

/// From here on connections are taken, and wait for the gateway.
pub(super) fn listen(ends: &[(End, OwnedFd)]) -> Result<(), Failure> {
    let listeners = ends.iter().filter(|(end, _)| matches!(end, End::Capture | End::Proxy | End::Reach(_)));
    for (_, socket) in listeners {
        rustix::net::listen(socket, WAITING).step(Step::Listen)?;
    }
    Ok(())
}
