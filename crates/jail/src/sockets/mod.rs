//! Calls on sockets, made for commands of the landlock tier: connecting, and listening where a port is published.
//!
//! Without a network namespace every socket is the host's. A command has TCP sockets only, and what would bind one to an
//! address, its own or another's, is left to init: it connects the command's socket to the gateway's relay, whatever
//! address was asked for, and tells the relay that address. Landlock lets the command itself connect nothing at all.

mod address;
mod tcp;

use std::cell::Cell;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::time::Duration;

use redoma_sys::{Alarm, Errno, nr};

use crate::blueprint::{Blueprint, Wire};
use crate::caller::Caller;
use crate::preface::{Preface, Token};
use tcp::Tcp;

/// Where connections of commands go, and which of their ports can be reached.
pub(crate) struct Sockets {
    relay: SocketAddr,
    token: Token,
    publish: Vec<NonZeroU16>,
    alarm: Alarm,
    patience: Cell<Duration>,
}

/// What a command wants of a socket.
pub(crate) enum Request {
    Connect(SocketAddr),
    Bind(SocketAddr),
    Listen { backlog: i32 },
}

/// Connecting to a listener on this machine takes no time, unless it has more connections waiting than it takes. Init has
/// others to serve, so it gives up early, and earlier still where it had to give up last time.
const PATIENT: Duration = Duration::from_millis(250);
const IMPATIENT: Duration = Duration::ZERO;

impl Sockets {
    /// None without a network.
    pub(crate) fn prepare(blueprint: &Blueprint) -> Option<Self> {
        match blueprint.wire.as_ref()? {
            Wire::OnBehalf { relay, token, publish } => Some(Self {
                relay: *relay,
                token: *token,
                publish: publish.clone(),
                alarm: Alarm::new(),
                patience: Cell::new(PATIENT),
            }),
            Wire::Namespace { .. } => None,
        }
    }

    /// The alarm holds for the whole of it: the socket is also the caller's, who can have any call on it block, even the
    /// one that closes our copy (`SO_LINGER` in `socket(7)`).
    pub(crate) fn make(&self, request: &Request, caller: &Caller<'_>) -> Result<(), Errno> {
        let patience = self.patience.get();
        let made = self.alarm.limit(Tcp::ATTEMPT, || {
            let socket = Tcp::of(caller)?;
            match request {
                Request::Connect(destination) => self.connect(&socket, *destination, caller, patience),
                Request::Bind(address) => self.bind(&socket, *address),
                Request::Listen { backlog } => self.listen(&socket, *backlog),
            }
        });
        self.patience.set(if made == Err(Errno::TIMEDOUT) { IMPATIENT } else { PATIENT });
        made
    }

    /// Nothing of the caller's can come before the preface and be taken for one: see [`Preface`].
    fn connect(
        &self,
        socket: &Tcp,
        destination: SocketAddr,
        caller: &Caller<'_>,
        patience: Duration,
    ) -> Result<(), Errno> {
        socket.require_domain_of(destination)?;
        let pid = caller.thread().as_raw_nonzero().get().unsigned_abs();
        let preface = Preface { destination, pid }.encode(&self.token);
        socket.connect(self.relay, patience)?;
        socket.send_whole(&preface)
    }

    /// For every address at once means for this machine's own: a published port is reached from here only.
    fn bind(&self, socket: &Tcp, address: SocketAddr) -> Result<(), Errno> {
        socket.require_domain_of(address)?;
        let own = socket.loopback_for(address)?;
        if self.publishes(own) { socket.bind(own) } else { Err(Errno::ACCESS) }
    }

    /// A socket that was not bound would be bound to every address, on a port that nobody has published.
    fn listen(&self, socket: &Tcp, backlog: i32) -> Result<(), Errno> {
        let own = socket.own_address()?;
        if self.publishes(own) { socket.listen(backlog) } else { Err(Errno::ACCESS) }
    }

    fn publishes(&self, own: SocketAddr) -> bool {
        own.ip().to_canonical().is_loopback() && self.publish.iter().any(|port| port.get() == own.port())
    }
}

/// Reads the arguments of one call.
type Reader = fn(&Caller<'_>) -> Result<Request, Errno>;

/// How the arguments of `call` are read; none for a call that is not about addresses of sockets.
pub(crate) fn reader(call: nr::c_long) -> Option<Reader> {
    match call {
        nr::SYS_connect => Some(|caller| address::read(caller).map(Request::Connect)),
        nr::SYS_bind => Some(|caller| address::read(caller).map(Request::Bind)),
        nr::SYS_listen => Some(|caller| Ok(Request::Listen { backlog: caller.int(1) as i32 })),
        _ => None,
    }
}
