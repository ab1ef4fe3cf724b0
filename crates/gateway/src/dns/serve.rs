//! The resolver's two ways in (RFC 1035, section 4.2).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use redoma_audit::Event;
use redoma_policy::HostName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::UdpSocket;

use super::answer::{Answered, Opinion, answer};
use super::names::Names;
use crate::Sink;

/// What answers questions.
pub(crate) struct Resolver {
    pub(crate) names: Arc<Names>,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) opinion: Box<dyn Fn(&HostName) -> Opinion + Send + Sync>,
}

/// A query is one name; whatever is longer is no query (EDNS lets answers grow, not questions).
const LARGEST_QUERY: usize = 4096;
/// A client that keeps a connection open without asking is cut off (RFC 7766, section 6.2.3).
const IDLE: Duration = Duration::from_secs(30);

impl Resolver {
    fn answer(&self, query: &[u8]) -> Option<Vec<u8>> {
        let Answered { bytes, event } = answer(query, &self.names, &self.opinion);
        if let Some(event) = event {
            self.sink.tell(Event::Dns(event));
        }
        bytes
    }
}

/// Answers datagrams until the socket fails.
pub(crate) async fn serve_udp(socket: UdpSocket, resolver: Arc<Resolver>) -> io::Result<()> {
    let mut query = vec![0; LARGEST_QUERY];
    loop {
        let (length, from) = match socket.recv_from(&mut query).await {
            Ok(received) => received,
            // What a client that is gone left behind.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
            Err(error) => return Err(error),
        };
        if let Some(reply) = resolver.answer(&query[..length]) {
            let _ = socket.send_to(&reply, from).await;
        }
    }
}

/// Answers one connection's queries, each with its length in front.
pub(crate) async fn serve_tcp<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    resolver: &Resolver,
) -> io::Result<()> {
    let mut query = Vec::new();
    loop {
        let length = match tokio::time::timeout(IDLE, stream.read_u16()).await {
            Ok(Ok(length)) => usize::from(length),
            _ => return Ok(()),
        };
        if length > LARGEST_QUERY {
            return Err(io::ErrorKind::InvalidData.into());
        }
        query.resize(length, 0);
        tokio::time::timeout(IDLE, stream.read_exact(&mut query)).await??;
        let Some(reply) = resolver.answer(&query) else { return Ok(()) };
        let length = u16::try_from(reply.len()).map_err(|_| io::ErrorKind::InvalidData)?;
        let mut framed = length.to_be_bytes().to_vec();
        framed.extend(reply);
        stream.write_all(&framed).await?;
    }
}
