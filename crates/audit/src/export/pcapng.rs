//! A capture of connections as Wireshark reads it (pcapng, draft-ietf-opsawg-pcapng).
//!
//! What the gateway has is streams, not packets. Each connection is therefore told as the packets that would have carried it: a
//! handshake (RFC 9293), segments with the right numbers, and an end. What is inside the streams is as it was on the wire; what is
//! around it is made up, but for the server's address and both ports' meaning.

mod block;
mod packet;

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use packet::{ACK, FIN, Headers, PSH, SYN};

/// A piece of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Chunk<'a> {
    /// The connection's number.
    pub flow: u64,
    /// Who said it.
    pub side: Side,
    /// When, in microseconds since the epoch.
    pub time_us: u64,
    /// What.
    pub bytes: &'a [u8],
}

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Who opened it.
    Client,
    /// Who answers.
    Server,
}

/// Where a connection leads.
#[derive(Clone, Copy, Debug)]
pub struct Destination<'a> {
    /// The name that was asked for.
    pub name: Option<&'a str>,
    /// The address; unknown if nothing was dialled.
    pub address: Option<IpAddr>,
    /// The port.
    pub port: u16,
}

/// Writes a capture. What was written is valid at any time; each call is one `write`.
#[derive(Debug)]
pub struct Pcapng<W> {
    out: W,
    connections: HashMap<u64, Connection>,
    pending: Vec<u8>,
}

#[derive(Debug)]
struct Connection {
    client: Peer,
    server: Peer,
}

#[derive(Clone, Copy, Debug)]
struct Peer {
    address: SocketAddr,
    /// The number of the next byte.
    next: u32,
}

/// What one packet carries: an IPv4 packet holds no more than 64 KiB.
const SEGMENT: usize = 32 << 10;
/// A destination that was never dialled stands at an address that is reserved for documentation (RFC 5737).
const NOWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

// === impl Pcapng ===

impl<W: Write> Pcapng<W> {
    /// Begins a capture; `comment` says what of.
    ///
    /// # Errors
    /// As `out`; so for all others.
    pub fn new(out: W, comment: &str) -> io::Result<Self> {
        let mut capture = Self { out, connections: HashMap::new(), pending: Vec::new() };
        block::section(&mut capture.pending, comment);
        block::interface(&mut capture.pending, "redoma");
        capture.write()?;
        Ok(capture)
    }

    /// Lines of a TLS key log (`SSLKEYLOGFILE`), which have to come before what they decrypt.
    pub fn secrets(&mut self, lines: &str) -> io::Result<()> {
        block::secrets(&mut self.pending, lines);
        self.write()
    }

    /// What it is written into.
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// Whether a connection was begun.
    #[must_use]
    pub fn has(&self, flow: u64) -> bool {
        self.connections.contains_key(&flow)
    }

    /// A connection begins.
    pub fn open(&mut self, flow: u64, time_us: u64, to: Destination<'_>, comment: &str) -> io::Result<()> {
        let address = to.address.unwrap_or(NOWHERE);
        // Nowhere is where all names are that were not dialled: it must not be called by one of them.
        if let Some(name) = to.name.filter(|_| to.address.is_some()) {
            block::name(&mut self.pending, address, name);
        }
        let mut connection = Connection {
            client: Peer { address: client(flow, address), next: 0 },
            server: Peer { address: SocketAddr::new(address, to.port), next: 0 },
        };
        connection.packet(&mut self.pending, Side::Client, SYN, time_us, &[], Some(comment));
        connection.packet(&mut self.pending, Side::Server, SYN | ACK, time_us, &[], None);
        connection.packet(&mut self.pending, Side::Client, ACK, time_us, &[], None);
        self.connections.insert(flow, connection);
        self.write()
    }

    /// A piece of a connection that was begun; of others nothing is written.
    pub fn chunk(&mut self, chunk: &Chunk<'_>) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(&chunk.flow) else { return Ok(()) };
        let out = &mut self.pending;
        for segment in chunk.bytes.chunks(SEGMENT) {
            connection.packet(out, chunk.side, PSH | ACK, chunk.time_us, segment, None);
            connection.packet(out, chunk.side.other(), ACK, chunk.time_us, &[], None);
        }
        self.write()
    }

    /// A connection ends.
    pub fn close(&mut self, flow: u64, time_us: u64) -> io::Result<()> {
        let Some(mut connection) = self.connections.remove(&flow) else { return Ok(()) };
        connection.packet(&mut self.pending, Side::Client, FIN | ACK, time_us, &[], None);
        connection.packet(&mut self.pending, Side::Server, FIN | ACK, time_us, &[], None);
        connection.packet(&mut self.pending, Side::Client, ACK, time_us, &[], None);
        self.write()
    }

    /// Says something about the capture itself.
    pub fn remark(&mut self, time_us: u64, comment: &str) -> io::Result<()> {
        block::statistics(&mut self.pending, time_us, comment);
        self.write()
    }

    fn write(&mut self) -> io::Result<()> {
        let written = self.out.write_all(&self.pending);
        self.pending.clear();
        written
    }
}

impl Connection {
    fn packet(
        &mut self,
        out: &mut Vec<u8>,
        from: Side,
        flags: u8,
        time_us: u64,
        bytes: &[u8],
        comment: Option<&str>,
    ) {
        let (sender, receiver) = match from {
            Side::Client => (&mut self.client, &self.server),
            Side::Server => (&mut self.server, &self.client),
        };
        let headers = Headers {
            from: sender.address,
            to: receiver.address,
            seq: sender.next,
            ack: if flags & ACK == 0 { 0 } else { receiver.next },
            flags,
        };
        // SYN and FIN count as a byte each. No packet is longer than a segment.
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX) + u32::from(flags & (SYN | FIN) != 0);
        sender.next = sender.next.wrapping_add(length);
        block::packet(out, time_us, &headers.frame(bytes), comment);
    }
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// An address and port of the sandbox's that no two connections of a while have.
fn client(flow: u64, server: IpAddr) -> SocketAddr {
    let address: IpAddr = match server {
        IpAddr::V4(_) => Ipv4Addr::new(10, 0, 0, 2).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2).into(),
    };
    // All but the ports below 1024.
    let port = 1024 + u16::try_from(flow % (65_536 - 1024)).unwrap_or(0);
    SocketAddr::new(address, port)
}

#[cfg(test)]
mod tests;
