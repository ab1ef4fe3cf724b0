//! The way in: connections to what listens inside, for ports that are published.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use redoma_sys::Errno;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with, sockopt};
use serde::{Deserialize, Serialize};

use crate::channel::Channel;
use crate::error::{Failure, InStep, JailError, Step};

/// A connection to this port on loopback is wanted.
#[derive(Debug, Serialize, Deserialize)]
struct Dial(u16);

/// How it went; the socket comes along if it went well.
type Dialled = Result<(), Failure>;

/// The way to what listens inside. One connection is asked for at a time.
#[derive(Debug)]
pub struct Entrance(Channel);

impl Entrance {
    /// A TCP socket inside, connected to `port` on the sandbox's loopback: the IPv4 address, or the IPv6 one if nobody
    /// listens there. It is non-blocking, and not yet connected where whoever listens is slow to take connections.
    ///
    /// # Errors
    /// [`JailError::Step`] when nobody listens; [`JailError::Channel`] or [`JailError::Gone`] when init is gone.
    pub fn dial(&self, port: NonZeroU16) -> Result<OwnedFd, JailError> {
        self.0.send(&Dial(port.get()), &[]).map_err(JailError::Channel)?;
        let (dialled, socket) =
            self.0.receive::<Dialled>().map_err(JailError::Channel)?.ok_or(JailError::Gone)?;
        dialled?;
        socket.into_iter().next().ok_or(JailError::Gone)
    }
}

impl AsFd for Entrance {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<Channel> for Entrance {
    fn from(channel: Channel) -> Self {
        Self(channel)
    }
}

/// Init's end of a channel of its own: on the other one, answers would come between events.
pub(crate) struct Door(Channel);

impl Door {
    /// With the keeper's end.
    pub(super) fn make() -> Result<(Self, OwnedFd), Errno> {
        let (inner, outer) = Channel::pair()?;
        Ok((Self(inner), outer.into()))
    }

    /// Answers one request. An error means that nobody asks any more.
    pub(crate) fn answer(&self) -> Result<(), Errno> {
        let (Dial(port), _) = self.0.receive()?.ok_or(Errno::PIPE)?;
        match dial(port) {
            Ok(socket) => self.0.send(&Dialled::Ok(()), &[socket.as_fd()]),
            Err(failure) => self.0.send(&Dialled::Err(failure), &[]),
        }
    }
}

impl AsFd for Door {
    /// Readable when somebody asks.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// IPv4 first, since that is what most servers listen on.
pub(crate) fn dial(port: u16) -> Result<OwnedFd, Failure> {
    let v4 = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let v6 = SocketAddr::from((Ipv6Addr::LOCALHOST, port));
    connect(v4).or_else(|errno| connect(v6).map_err(|_| errno)).step_at(Step::Dial, v4.to_string())
}

/// A socket that is connected, or still on its way.
fn connect(address: SocketAddr) -> Result<OwnedFd, Errno> {
    let family = match address.ip() {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &address) {
        Err(Errno::INPROGRESS) => settle(&socket)?,
        other => other?,
    }
    Ok(socket)
}

/// On loopback the answer is there as soon as the kernel has come to it, unless a server has more connections waiting than
/// it takes. Init has others to serve.
fn settle(socket: &OwnedFd) -> Result<(), Errno> {
    const PATIENCE: Duration = Duration::from_millis(5);
    let patience = Timespec::try_from(PATIENCE).map_err(|_| Errno::INVAL)?;
    rustix::event::poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&patience))?;
    sockopt::socket_error(socket)?
}
