//! The sandbox's network namespace (full tier): loopback, and with a [`Wire`] everything else redirected to the gateway.
//!
//! Nothing in the namespace leads out of it. What the rules do is to bring every connection to the gateway together with
//! the address it was meant for; a connection that came past them would have nowhere to go.

mod door;
mod listeners;
mod netlink;
mod redirect;
mod routes;
mod sockets;
mod wires;

use std::num::NonZeroU16;
use std::os::fd::OwnedFd;

use redoma_sys::Errno;

use crate::blueprint::Wire;
use crate::channel::Channel;
use crate::error::{Failure, InStep, Step};
pub use door::Entrance;
pub(crate) use door::{Door, dial};
pub use sockets::Sockets;
pub use wires::Wires;
pub(crate) use wires::{Arriving, End};

/// What was made for others, until it is given to them.
pub(crate) struct Network {
    ends: Vec<(End, OwnedFd)>,
    /// Where init is asked for connections to what listens inside.
    door: Door,
}

/// Raises the network; what is to be given away, if there is a wire.
pub(crate) fn raise(wire: Option<&Wire>) -> Result<Option<Network>, Failure> {
    match wire {
        Some(Wire::Namespace { proxy_port, reach }) => Network::raise(*proxy_port, reach).map(Some),
        Some(Wire::OnBehalf { .. }) | None => routes::bring_up().map(|()| None),
    }
}

impl Network {
    /// The rules come last: a start that fails on the way leaves nothing half redirected, and no command sees any of it.
    fn raise(proxy: NonZeroU16, reach: &[NonZeroU16]) -> Result<Self, Failure> {
        let v6 = routes::lead_all_to_loopback()?;
        let capture = listeners::capture_port(proxy, reach)?;
        let mut ends = listeners::bind_all(capture, proxy, reach, v6)?;
        redirect::redirect_to(capture)?;
        let (door, outer) = Door::make().step(Step::Listen)?;
        ends.push((End::Door, outer));
        Ok(Self { ends, door })
    }

    /// Opens for connections. Comes after the canary: until then none is taken, so that one that gets through got out.
    pub(crate) fn open(&self) -> Result<(), Failure> {
        listeners::listen(&self.ends)
    }

    /// Gives the ends to the keeper and keeps none: what the gateway closes is closed.
    pub(crate) fn give(self, channel: &Channel) -> Result<Door, Errno> {
        wires::give(channel, &self.ends)?;
        Ok(self.door)
    }
}
