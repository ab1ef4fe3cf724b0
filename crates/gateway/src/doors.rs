//! Where connections come in, and what the gateway has to be told from outside of it.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::num::NonZeroU16;
use std::sync::Arc;

use redoma_audit::event::Process;
use redoma_policy::{HostName, Publish};

/// Sockets that connections come in by. All may be absent; each is served by itself.
#[derive(Default)]
pub struct Doors {
    /// Listeners for everything that is redirected, with the destination told by `SO_ORIGINAL_DST` (full tier).
    pub capture: Vec<TcpListener>,
    /// Sockets for questions for names (full tier).
    pub dns: Vec<UdpSocket>,
    /// Listeners for clients that were told to use a proxy.
    pub proxy: Vec<TcpListener>,
    /// Listeners inside for ports of this machine.
    pub reach: Vec<(NonZeroU16, TcpListener)>,
    /// A listener for connections made on behalf (landlock tier).
    pub relay: Option<Relay>,
    /// Listeners on this machine's loopback for ports inside.
    pub publish: Vec<(Publish, TcpListener)>,
}

/// Where connections made on behalf come in, each with a preface.
pub struct Relay {
    /// The listener.
    pub listener: TcpListener,
    /// How long a preface is, in bytes.
    pub preface: usize,
    /// What a preface says: destination and thread; none for one that is not ours.
    pub parse: Box<Parse>,
}

/// See [`Relay::parse`].
pub type Parse = dyn Fn(&[u8]) -> Option<(SocketAddr, u32)> + Send + Sync;

/// How a client can be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Client {
    /// By the ends of its connection, as its own namespace has them.
    Socket {
        /// Its own.
        local: SocketAddr,
        /// Where it connected to.
        remote: SocketAddr,
    },
    /// By the thread that connected.
    Thread(u32),
}

/// Knows the processes inside.
pub trait Who: Send + Sync {
    /// Whose connection it is; none if that can't be told any more.
    fn of(&self, client: Client) -> Option<Process>;
}

/// The way to what listens inside, and to neighbours.
pub trait Inside: Send + Sync {
    /// A connection to this port on the sandbox's loopback.
    ///
    /// # Errors
    /// When nobody listens.
    fn dial(&self, port: NonZeroU16) -> io::Result<TcpStream>;

    /// Whether a name is that of another sandbox, which this one may reach on all its ports.
    fn is_peer(&self, _name: &HostName) -> bool {
        false
    }

    /// A connection to this port on the loopback of another sandbox.
    ///
    /// # Errors
    /// When it does not run, or nobody listens.
    fn dial_peer(&self, _name: &HostName, _port: NonZeroU16) -> io::Result<TcpStream> {
        Err(io::ErrorKind::AddrNotAvailable.into())
    }
}

impl<W: Who + ?Sized> Who for Arc<W> {
    fn of(&self, client: Client) -> Option<Process> {
        (**self).of(client)
    }
}
