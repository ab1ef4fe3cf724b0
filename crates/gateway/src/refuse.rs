//! What a client hears when something is not let through: in its own protocol, with the reason and what would change it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::http::{AnswerBody, Lingering, Version};
use crate::{Flow, Reason};

/// Why something is refused.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    because: String,
    hint: Option<String>,
    /// Where it says more than the reason's own.
    status: Option<StatusCode>,
}

/// The body of an answer.
pub(crate) struct Answer {
    said: Said,
    /// Shows that it is on its way.
    _speaking: Arc<()>,
}

/// The server's own words, or ours.
pub(crate) enum Said {
    Passed(AnswerBody),
    Text(Option<Bytes>),
}

/// How long a refused client is listened to.
const PATIENCE: Duration = Duration::from_secs(10);

impl Refusal {
    pub(crate) fn new(reason: Reason, because: impl Into<String>) -> Self {
        Self { reason, because: because.into(), hint: None, status: None }
    }

    /// With the command or line that would let it through.
    pub(crate) fn unless(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }

    /// With this status.
    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status: Some(status), ..self }
    }

    /// What is wrong, in words.
    pub(crate) fn because(&self) -> &str {
        &self.because
    }

    /// The answer to a request.
    pub(crate) fn answer(&self, flow: &Flow) -> Response<Bytes> {
        let target = flow.target();
        let hint = self.hint.as_ref().map(|hint| format!("hint: {hint}\n")).unwrap_or_default();
        let text = match self.reason {
            Reason::UpstreamFailed => {
                format!("redoma could not pass this on to {target}: {}\n{hint}", self.because)
            }
            reason => format!("redoma blocked {target} ({reason}): {}\n{hint}", self.because),
        };
        let (status, phrase) = match self.reason {
            Reason::UpstreamFailed => (StatusCode::BAD_GATEWAY, None),
            Reason::Budget => (StatusCode::PAYLOAD_TOO_LARGE, Some(BLOCKED)),
            Reason::Malformed => (StatusCode::BAD_REQUEST, Some(BLOCKED)),
            Reason::Internal => (StatusCode::INTERNAL_SERVER_ERROR, Some(BLOCKED)),
            _ => (StatusCode::FORBIDDEN, Some(BLOCKED)),
        };
        let mut answer = Response::new(Bytes::from(text));
        *answer.status_mut() = self.status.unwrap_or(status);
        if let Some(phrase) = phrase {
            answer.extensions_mut().insert(hyper::ext::ReasonPhrase::from_static(phrase));
        }
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert("redoma-reason", HeaderValue::from_static(self.reason.name()));
        answer
    }
}

const BLOCKED: &[u8] = b"Blocked by redoma";

/// Answers whatever is asked for with a refusal, and ends the connection.
pub(crate) async fn serve<S>(stream: S, version: Version, refusal: Refusal, flow: Arc<Flow>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |_: Request<Incoming>| {
        let mut answer = refusal.answer(&flow).map(Full::new);
        if version == Version::One {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        std::future::ready(Ok::<_, Infallible>(answer))
    });
    let stream = TokioIo::new(Lingering::new(stream));
    let _ = match version {
        Version::One => {
            let mut builder = hyper::server::conn::http1::Builder::new();
            let builder = builder.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
            tokio::time::timeout(PATIENCE, builder.serve_connection(stream, service)).await
        }
        Version::Two => {
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::time::timeout(PATIENCE, builder.serve_connection(stream, service)).await
        }
    };
}

impl Answer {
    pub(crate) fn new(said: Said, speaking: Arc<()>) -> Self {
        Self { said, _speaking: speaking }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut self.get_mut().said {
            Said::Passed(body) => Pin::new(body).poll_frame(cx),
            Said::Text(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.said {
            Said::Passed(body) => body.is_end_stream(),
            Said::Text(text) => text.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.said {
            Said::Passed(body) => body.size_hint(),
            Said::Text(text) => SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64)),
        }
    }
}
