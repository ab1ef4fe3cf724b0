//! WebSocket (RFC 6455): after the server agrees, bytes pass both ways as they come.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::header::{self, HeaderValue};
use http::request::Parts;
use http::{Method, Response};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Scope;
use super::exchange::Exchange;
use super::judge::Meter;
use crate::Reason;
use crate::guard::Framing;
use crate::refuse::{Answer, Said};
use crate::scan::Watched;

/// A client that wants to change the protocol, and what it may send then.
pub(super) struct Upgrading {
    client: OnUpgrade,
    meter: Option<Meter>,
}

/// What comes from the client, counted.
struct Counted<C> {
    client: C,
    meter: Option<Meter>,
    exchange: Arc<Exchange>,
}

const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");

impl Upgrading {
    /// Whether a request asks for a WebSocket. No other protocol may be changed to: what follows would be looked at as
    /// something that it is not.
    pub(super) fn asked(parts: &Parts) -> bool {
        let upgrades: Vec<_> = parts.headers.get_all(header::UPGRADE).iter().collect();
        parts.method == Method::GET
            && parts.version == http::Version::HTTP_11
            && matches!(upgrades[..], [one] if one.as_bytes().eq_ignore_ascii_case(b"websocket"))
    }

    /// Takes the client's end and asks the server for the same.
    pub(super) fn of(parts: &mut Parts, asked: bool) -> Option<Self> {
        let client = parts.extensions.remove::<OnUpgrade>()?;
        if !asked {
            return None;
        }
        parts.headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        parts.headers.insert(header::UPGRADE, WEBSOCKET);
        // The only extensions there are compress: what is said could not be looked at.
        parts.headers.remove(header::SEC_WEBSOCKET_EXTENSIONS);
        Some(Self { client, meter: None })
    }

    /// What the client says then is limited as a body is.
    pub(super) fn counted(self, meter: Option<Meter>) -> Self {
        Self { meter, ..self }
    }

    /// The server agreed.
    pub(super) fn join(
        self,
        answer: &mut Response<Incoming>,
        exchange: &Arc<Exchange>,
        scope: &Scope,
    ) -> Response<Answer> {
        let server = hyper::upgrade::on(&mut *answer);
        exchange.goes_on();
        scope.flow.set_protocol("websocket");
        let (exchange, meter, flow) = (Arc::clone(exchange), self.meter, Arc::clone(&scope.flow));
        let scan = scope.gateway.guard.connection(&flow, Framing::WebSocket);
        scope.tunnel(async move {
            let (Ok(client), Ok(server)) = tokio::join!(self.client, server) else { return };
            // Its record is written when it is over.
            let client = Watched::new(TokioIo::new(client), scan, flow);
            let mut client = Counted { client, meter, exchange };
            let _ = tokio::io::copy_bidirectional(&mut client, &mut TokioIo::new(server)).await;
        });
        let mut response = Response::new(Answer::new(Said::Text(None), Arc::clone(&scope.answering)));
        *response.status_mut() = answer.status();
        *response.headers_mut() = std::mem::take(answer.headers_mut());
        response
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for Counted<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.client).poll_read(cx, buf))?;
        let length = buf.filled().len() - before;
        let counted = self.meter.as_mut().map_or(Ok(()), |meter| meter.count(length as u64));
        Poll::Ready(counted.map_err(|reason: Reason| {
            self.exchange.refused(reason);
            io::ErrorKind::QuotaExceeded.into()
        }))
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Counted<C> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.client).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.client).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.client).poll_shutdown(cx)
    }
}
