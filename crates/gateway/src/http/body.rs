//! Bodies on their way: counted, hashed and looked at, and never held back.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use tokio::sync::{Semaphore, oneshot};

use super::exchange::{Exchange, Side};
use super::judge::Meter;
use crate::Reason;
use crate::guard::Scan;
use crate::refuse::Refusal;

/// A request's body on its way out.
pub(crate) struct OutBody {
    inner: Source,
    exchange: Arc<Exchange>,
    meter: Option<Meter>,
    scan: Option<Box<dyn Scan>>,
    /// Opens when the server wants the body (RFC 9110, section 10.1.1).
    gate: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// Where a request's body comes from.
pub(super) enum Source {
    /// The client, as it sends it.
    Client(Incoming),
    /// It is here already.
    Here(Option<Bytes>),
}

/// An answer's body on its way in.
pub(crate) struct AnswerBody {
    inner: Incoming,
    exchange: Arc<Exchange>,
}

/// Why a request's body does not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("{}", .0.in_words())]
    Stopped(Reason),
    #[error(transparent)]
    Client(#[from] hyper::Error),
}

/// Servers that don't know of `100 Continue` say nothing and wait for the body.
const SILENT: Duration = Duration::from_secs(1);

impl OutBody {
    pub(super) fn new(
        inner: Source,
        exchange: Arc<Exchange>,
        meter: Option<Meter>,
        scan: Option<Box<dyn Scan>>,
    ) -> Self {
        Self { inner, exchange, meter, scan, gate: None }
    }

    fn pass(&mut self, piece: &Bytes) -> Result<(), Reason> {
        if let Some(meter) = &mut self.meter {
            meter.count(piece.len() as u64)?;
        }
        if let Some(scan) = &mut self.scan {
            scan.push(piece)?;
        }
        self.exchange.piece(Side::Request, piece);
        Ok(())
    }

    fn pass_trailers(&mut self, trailers: &HeaderMap) -> Result<(), Reason> {
        self.scan.as_mut().map_or(Ok(()), |scan| scan.trailers(trailers))
    }

    fn stop(&mut self, reason: Reason) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        self.exchange.refused(reason);
        Poll::Ready(Some(Err(BodyError::Stopped(reason))))
    }
}

/// As much as is held until a signature can be made; and how many at once.
const LARGEST_SIGNED: usize = 8 << 20;
static SIGNED_AT_ONCE: Semaphore = Semaphore::const_new(16);
/// How long a client may take to send it.
const SIGNED_TIME: Duration = Duration::from_secs(60);

/// Takes the whole body in, for what cannot go on without it: bounded in size, number and time, since this is the only
/// place where a client can have us hold anything.
pub(super) async fn whole(body: Incoming) -> Result<Bytes, Refusal> {
    let unfit = |why: &str| Refusal::new(Reason::Malformed, format!("what is signed for AWS {why}"));
    let collect = async {
        let _turn = SIGNED_AT_ONCE.acquire().await;
        Limited::new(body, LARGEST_SIGNED).collect().await
    };
    match tokio::time::timeout(SIGNED_TIME, collect).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(_)) => Err(unfit("without its body's hash in the head must not be larger than 8 MiB")),
        Err(_) => Err(unfit("did not arrive in time")),
    }
}

impl Source {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self {
            Self::Client(body) => Pin::new(body).poll_frame(cx),
            Self::Here(body) => Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
        }
    }
}

/// Lets the body go when the server asks for it: reading it is what asks the client for it.
pub(super) fn wait_for_continue(request: &mut Request<OutBody>) {
    let (open, opened) = oneshot::channel();
    let open = std::sync::Mutex::new(Some(open));
    hyper::ext::on_informational(request, move |answer| {
        if answer.status() == http::StatusCode::CONTINUE
            && let Some(open) = open.lock().ok().and_then(|mut open| open.take())
        {
            let _ = open.send(());
        }
    });
    request.body_mut().gate = Some(Box::pin(async move {
        let _ = tokio::time::timeout(SILENT, opened).await;
    }));
}

impl Body for OutBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(gate) = &mut self.gate {
            std::task::ready!(gate.as_mut().poll(cx));
            self.gate = None;
        }
        match std::task::ready!(self.inner.poll_frame(cx)) {
            Some(Ok(frame)) => {
                if let Some(piece) = frame.data_ref().cloned()
                    && let Err(reason) = self.pass(&piece)
                {
                    return self.stop(reason);
                }
                if let Some(trailers) = frame.trailers_ref()
                    && let Err(reason) = self.pass_trailers(&trailers.clone())
                {
                    return self.stop(reason);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => Poll::Ready(Some(Err(error.into()))),
            None => match self.scan.as_mut().map_or(Ok(()), |scan| scan.end()) {
                Ok(()) => {
                    self.exchange.end_of(Side::Request);
                    Poll::Ready(None)
                }
                Err(reason) => self.stop(reason),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Source::Client(body) => body.is_end_stream(),
            Source::Here(body) => body.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Source::Client(body) => body.size_hint(),
            Source::Here(body) => SizeHint::with_exact(body.as_ref().map_or(0, |body| body.len() as u64)),
        }
    }
}

impl AnswerBody {
    pub(super) fn new(inner: Incoming, exchange: Arc<Exchange>) -> Self {
        Self { inner, exchange }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(piece) = frame.data_ref() {
                    self.exchange.piece(Side::Response, piece);
                }
            }
            Some(Err(_)) => {}
            None => self.exchange.end_of(Side::Response),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
