use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use redoma_sys::Errno;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SendFlags, SocketType, ipproto, sockopt};

use crate::caller::Caller;

/// The caller's TCP socket: a descriptor of our own for the very same one. Whatever its descriptor names meanwhile, this
/// is the socket that was looked at and that is acted upon.
pub(super) struct Tcp {
    socket: OwnedFd,
    domain: AddressFamily,
}

impl Tcp {
    /// The first argument of the call. No other kind of socket can be made inside but pairs, which stay as they are.
    pub(super) fn of(caller: &Caller<'_>) -> Result<Self, Errno> {
        let socket = caller.copy(caller.int(0) as i32)?;
        caller.still_waits()?;
        let domain = sockopt::socket_domain(&socket)?;
        let stream = sockopt::socket_type(&socket)? == SocketType::STREAM;
        let tcp = stream && sockopt::socket_protocol(&socket)? == Some(ipproto::TCP);
        let inet = matches!(domain, AddressFamily::INET | AddressFamily::INET6);
        if tcp && inet { Ok(Self { socket, domain }) } else { Err(Errno::ACCESS) }
    }

    /// As the kernel demands it.
    pub(super) fn require_domain_of(&self, address: SocketAddr) -> Result<(), Errno> {
        let domain = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        if domain == self.domain { Ok(()) } else { Err(Errno::AFNOSUPPORT) }
    }

    /// Connects it, or leaves it unconnected. It may be non-blocking or not, and change from one to the other at any
    /// moment: the caller must have an alarm on, with [`Self::ATTEMPT`].
    ///
    /// A listener with a full queue says nothing, and the kernel would ask again after a second only.
    pub(super) fn connect(&self, relay: SocketAddr, patience: Duration) -> Result<(), Errno> {
        let relay = self.spelled(relay)?;
        let begun = Instant::now();
        loop {
            match self.attempt(relay) {
                Err(Errno::INTR | Errno::TIMEDOUT) if begun.elapsed() < patience => self.disconnect(),
                Err(Errno::INTR | Errno::TIMEDOUT) => {
                    self.disconnect();
                    return Err(Errno::TIMEDOUT);
                }
                other => return other,
            }
        }
    }

    /// Far more than it takes here when there is room in the queue.
    pub(super) const ATTEMPT: Duration = Duration::from_millis(20);

    fn attempt(&self, relay: SocketAddr) -> Result<(), Errno> {
        match rustix::net::connect(&self.socket, &relay) {
            Err(Errno::INPROGRESS) => self.wait(),
            other => other,
        }
    }

    /// The relay has an IPv4 address, which an IPv6 socket reaches unless it is for IPv6 only: nothing to insist on, for
    /// the relay is the one peer it can ever have. It fails for a socket that is connected, and so will connecting it.
    fn spelled(&self, relay: SocketAddr) -> Result<SocketAddr, Errno> {
        match relay.ip() {
            IpAddr::V4(v4) if self.domain == AddressFamily::INET6 => {
                if sockopt::ipv6_v6only(&self.socket)? {
                    let _ = sockopt::set_ipv6_v6only(&self.socket, false);
                }
                Ok((v4.to_ipv6_mapped(), relay.port()).into())
            }
            _ => Ok(relay),
        }
    }

    fn wait(&self) -> Result<(), Errno> {
        let patience = Timespec::try_from(Self::ATTEMPT).map_err(|_| Errno::INVAL)?;
        let mut events = [PollFd::new(&self.socket, PollFlags::OUT)];
        match rustix::event::poll(&mut events, Some(&patience))? {
            0 => Err(Errno::TIMEDOUT),
            _ => sockopt::socket_error(&self.socket)?,
        }
    }

    /// All at once or not at all: an empty send buffer has room for it, however small. If it has not, somebody wrote
    /// first, and the connection is worth nothing.
    pub(super) fn send_whole(&self, bytes: &[u8]) -> Result<(), Errno> {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match rustix::net::send(&self.socket, bytes, flags) {
            Ok(sent) if sent == bytes.len() => Ok(()),
            _ => {
                self.disconnect();
                Err(Errno::CONNREFUSED)
            }
        }
    }

    /// Not left half connected: it would become a connection to the relay that nobody waits for.
    fn disconnect(&self) {
        let _ = rustix::net::connect_unspec(&self.socket);
    }

    /// The address on loopback that stands for `asked`: every address, or loopback itself. An IPv6 socket for every address
    /// also serves IPv4, and that is what a published port is reached by.
    pub(super) fn loopback_for(&self, asked: SocketAddr) -> Result<SocketAddr, Errno> {
        let v4 = |mapped: bool| {
            if mapped { Ipv4Addr::LOCALHOST.to_ipv6_mapped().into() } else { Ipv4Addr::LOCALHOST.into() }
        };
        let ip: IpAddr = match (asked.ip(), asked.ip().to_canonical()) {
            (IpAddr::V6(Ipv6Addr::LOCALHOST), _) => Ipv6Addr::LOCALHOST.into(),
            (IpAddr::V6(Ipv6Addr::UNSPECIFIED), _) if sockopt::ipv6_v6only(&self.socket)? => {
                Ipv6Addr::LOCALHOST.into()
            }
            (IpAddr::V6(Ipv6Addr::UNSPECIFIED), _) => v4(true),
            (asked, IpAddr::V4(Ipv4Addr::LOCALHOST | Ipv4Addr::UNSPECIFIED)) => v4(asked.is_ipv6()),
            _ => return Err(Errno::ACCESS),
        };
        Ok((ip, asked.port()).into())
    }

    pub(super) fn bind(&self, own: SocketAddr) -> Result<(), Errno> {
        rustix::net::bind(&self.socket, &own)
    }

    pub(super) fn own_address(&self) -> Result<SocketAddr, Errno> {
        SocketAddr::try_from(rustix::net::getsockname(&self.socket)?)
    }

    pub(super) fn listen(&self, backlog: i32) -> Result<(), Errno> {
        rustix::net::listen(&self.socket, backlog)
    }
}
