//! The sockets that init makes inside the sandbox's network namespace and gives away.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use redoma_sys::Errno;
use serde::{Deserialize, Serialize};

use super::{Entrance, Sockets};
use crate::channel::{Channel, MOST_DESCRIPTORS, Report};

/// The gateway's ends of a sandbox's network (full tier). They belong to the sandbox's network namespace wherever they are
/// used; all are non-blocking and closed by `execve(2)`.
///
/// Whoever holds them keeps connections waiting, so everybody but the gateway should close its copies: then a gateway that
/// ends leaves connections refused.
#[derive(Debug)]
pub struct Wires {
    /// Listeners for every TCP connection to an address other than loopback's, and to port 53 of any: the IPv4 one, and
    /// the IPv6 one where there is IPv6.
    ///
    /// Where a connection was to go is told by `SO_ORIGINAL_DST` in `ip(7)`, for IPv6 by `IP6T_SO_ORIGINAL_DST`. A process
    /// inside can connect to the listener itself; then that is the listener's own address, and the connection is to
    /// be refused: taken as a destination it would lead back here. Port 53 of an address on loopback is a question for a
    /// name, by TCP.
    ///
    /// The peer's address is the one that the client's socket has, but where its port was another connection's: then the
    /// kernel chose another one on the way.
    pub capture: Vec<OwnedFd>,
    /// UDP sockets that get every datagram to port 53, whatever its address. An answer to where a datagram came from seems
    /// to come from where it was sent to. IPv4, and IPv6 where there is IPv6.
    pub dns: Vec<OwnedFd>,
    /// Listeners on loopback, at the port asked for. IPv4, and IPv6 where there is IPv6.
    pub proxy: Vec<OwnedFd>,
    /// Listeners on loopback at each port of this machine that is to be reached, with that port; two each where there is
    /// IPv6.
    pub reach: Vec<(u16, OwnedFd)>,
    /// Tells whose a connection is.
    pub sockets: Sockets,
    /// The way in, for ports that are published.
    pub entrance: Entrance,
}

impl Wires {
    /// The descriptors of all of them.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let reach = self.reach.iter().map(|(_, end)| end);
        let listeners = self.capture.iter().chain(&self.dns).chain(&self.proxy).chain(reach);
        listeners.map(AsFd::as_fd).chain([self.sockets.as_fd(), self.entrance.as_fd()])
    }
}

/// What a descriptor on its way out is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum End {
    Capture,
    Dns,
    Proxy,
    Reach(u16),
    Diag,
    /// Init's ear for [`Entrance::dial`].
    Door,
}

/// What comes out of the namespace, while it comes.
#[derive(Default)]
pub(crate) struct Arriving(Vec<(End, OwnedFd)>);

/// Sends all of them, in as many messages as it takes.
pub(super) fn give(channel: &Channel, ends: &[(End, OwnedFd)]) -> Result<(), Errno> {
    for ends in ends.chunks(MOST_DESCRIPTORS) {
        let descriptors: Vec<BorrowedFd<'_>> = ends.iter().map(|(_, end)| end.as_fd()).collect();
        let kinds = ends.iter().map(|(kind, _)| *kind).collect();
        channel.send(&Report::Wired(kinds), &descriptors)?;
    }
    Ok(())
}

impl Arriving {
    /// Fails unless there is one for each kind.
    pub(crate) fn add(&mut self, kinds: Vec<End>, descriptors: Vec<OwnedFd>) -> Result<(), Errno> {
        if kinds.len() != descriptors.len() {
            return Err(Errno::BADMSG);
        }
        self.0.extend(kinds.into_iter().zip(descriptors));
        Ok(())
    }

    /// The gateway's ends; none if nothing came, which is how it is without a network.
    pub(crate) fn sort(self) -> Result<Option<Wires>, Errno> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let [mut capture, mut dns, mut proxy] = [const { Vec::new() }; 3];
        let (mut reach, mut diag, mut door) = (Vec::new(), None, None);
        for (kind, end) in self.0 {
            match kind {
                End::Capture => capture.push(end),
                End::Dns => dns.push(end),
                End::Proxy => proxy.push(end),
                End::Reach(port) => reach.push((port, end)),
                End::Diag => diag = Some(end),
                End::Door => door = Some(end),
            }
        }
        let (diag, door) = diag.zip(door).ok_or(Errno::BADMSG)?;
        let (sockets, entrance) = (Sockets::from(diag), Entrance::from(Channel::from(door)));
        Ok(Some(Wires { capture, dns, proxy, reach, sockets, entrance }))
    }
}
