//! WebSocket (RFC 6455): after the server agrees, bytes pass both ways as they come.

use std::sync::Arc;

use http::header::{self, HeaderValue};
use http::request::Parts;
use http::{Method, Response};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use super::Scope;
use super::exchange::Exchange;
use crate::guard::Framing;
use crate::refuse::Answer;
use crate::scan::Watched;

/// A client that wants to change the protocol.
pub(super) struct Upgrading(OnUpgrade);

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
        Some(Self(client))
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
        let exchange = Arc::clone(exchange);
        let flow = Arc::clone(&scope.flow);
        let scan = scope.gateway.guard.connection(&flow, Framing::WebSocket);
        scope.tunnel(async move {
            let (Ok(client), Ok(server)) = tokio::join!(self.0, server) else { return };
            let (client, mut server) = (TokioIo::new(client), TokioIo::new(server));
            let mut client = Watched::new(client, scan, flow);
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            // Its record is written when it is over.
            drop(exchange);
        });
        let mut response = Response::new(Answer::Text(None));
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        response
    }
}
