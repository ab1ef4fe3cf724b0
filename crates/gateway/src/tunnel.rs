//! What is in TLS: HTTP, by agreement or by its first bytes, or something else that is passed on as it is.

use std::sync::Arc;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::guard::Framing;
use crate::http::{self, Scope, Version};
use crate::peek::{self, First};
use crate::scan::Watched;
use crate::stream::Rewound;
use crate::tls::{HTTP1, HTTP2};
use crate::{Flow, Gateway, Reason};

/// Joins both sides by what they speak.
pub(crate) async fn inside<C, S>(
    gateway: &Arc<Gateway>,
    flow: Arc<Flow>,
    mut client: C,
    mut server: S,
    protocol: Option<&[u8]>,
    http_only: bool,
) where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut said, mut answered) = (BytesMut::new(), BytesMut::new());
    let version = match protocol {
        Some(HTTP2) => Some(Version::Two),
        Some(HTTP1) => Some(Version::One),
        Some(_) => None,
        None => match first(&mut client, &mut said, &mut server, &mut answered).await {
            First::Http1 => Some(Version::One),
            First::Http2 => Some(Version::Two),
            _ => None,
        },
    };
    let (client, server) = (Rewound::new(client, said.freeze()), Rewound::new(server, answered.freeze()));
    match version {
        Some(version) => {
            flow.set_protocol(if version == Version::Two { "h2" } else { "https" });
            http::bridge(client, server, Scope::new(Arc::clone(gateway), flow, version, true)).await;
        }
        None if http_only => {
            flow.set_detail("the rule is for HTTP, and in TLS is something else");
            flow.blocked(Reason::NotHttp);
        }
        None => {
            let scan = gateway.guard.connection(&flow, Framing::None);
            relay(Watched::new(client, scan, flow), server).await;
        }
    }
}

/// What comes first; what was read is kept.
async fn first<C, S>(client: &mut C, said: &mut BytesMut, server: &mut S, answered: &mut BytesMut) -> First
where
    C: AsyncRead + Unpin,
    S: AsyncRead + Unpin,
{
    loop {
        if let Some(first) = peek::classify(said) {
            return first;
        }
        tokio::select! {
            biased;
            read = client.read_buf(said) => if !matches!(read, Ok(length) if length > 0) { return First::Nothing },
            _ = server.read_buf(answered) => return First::Server,
        }
    }
}

async fn relay<C, S>(mut client: C, mut server: S)
where
    C: AsyncRead + AsyncWrite + Unpin,
    S: AsyncRead + AsyncWrite + Unpin,
{
    const BUFFER: usize = 32 << 10;
    let _ = tokio::io::copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER, BUFFER).await;
    let _ = tokio::join!(client.shutdown(), server.shutdown());
}
