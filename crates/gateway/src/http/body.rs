//! Bodies on their way: counted, hashed and looked at, and never held back.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use tokio::sync::{Semaphore, oneshot};

use super::client::Asides;
use super::exchange::{Exchange, Side};
use super::judge::Meter;
use super::serve::unless_it_panics;
use crate::Reason;
use crate::guard::Scan;
use crate::refuse::Refusal;

/// A request's body on its way out.
pub(crate) struct OutBody {
    inner: Source,
    exchange: Arc<Exchange>,
    meter: Option<Meter>,
    scan: Option<Box<dyn Scan>>,
    /// Tells when the server wants the body, or that it never will (RFC 9110, section 10.1.1).
    gate: Option<Pin<Box<dyn Future<Output = bool> + Send>>>,
}

/// What a body that waits to be asked for hears.
enum Wanted {
    Yes,
    /// The answer came first. What is waited for then is its end.
    Answered(oneshot::Receiver<()>),
}

/// The server, as such a body listens to it.
#[derive(Clone, Default)]
pub(super) struct Asking(Arc<Mutex<Option<oneshot::Sender<Wanted>>>>);

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
    /// What came with the head.
    first: Option<First>,
    exchange: Arc<Exchange>,
    /// Told when this is over: a request's body that nobody asked for.
    _unwanted: Option<oneshot::Sender<()>>,
}

/// As a body says it: none is its end.
pub(super) type First = Option<hyper::Result<Frame<Bytes>>>;

/// Why a request's body does not go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("{}", .0.in_words())]
    Stopped(Reason),
    #[error("the server answered without it")]
    Unwanted,
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

    fn pass(&mut self, frame: &Frame<Bytes>) -> Result<(), Reason> {
        if let Some(piece) = frame.data_ref() {
            self.look_at(piece)?;
            self.exchange.piece(Side::Request, piece);
        }
        match frame.trailers_ref() {
            Some(trailers) => self.look_at_trailers(trailers),
            None => Ok(()),
        }
    }

    /// They leave as well.
    fn look_at_trailers(&mut self, trailers: &HeaderMap) -> Result<(), Reason> {
        if let Some(meter) = &mut self.meter {
            let length =
                |(name, value): (&HeaderName, &HeaderValue)| (name.as_str().len() + value.len()) as u64;
            meter.count(trailers.iter().map(length).sum())?;
        }
        match &mut self.scan {
            Some(scan) => unless_it_panics(|| scan.trailers(trailers))?,
            None => Ok(()),
        }
    }

    fn look_at(&mut self, piece: &[u8]) -> Result<(), Reason> {
        if let Some(meter) = &mut self.meter {
            meter.count(piece.len() as u64)?;
        }
        match &mut self.scan {
            Some(scan) => unless_it_panics(|| scan.push(piece))?,
            None => Ok(()),
        }
    }

    /// Nobody asks for more where the length is known.
    fn end_if_over(&mut self) -> Result<(), Reason> {
        if self.inner.is_over() { self.end() } else { Ok(()) }
    }

    fn end(&mut self) -> Result<(), Reason> {
        if let Some(mut scan) = self.scan.take() {
            unless_it_panics(|| scan.end())??;
        }
        self.exchange.end_of(Side::Request);
        Ok(())
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

    fn is_over(&self) -> bool {
        match self {
            Self::Client(body) => body.is_end_stream(),
            Self::Here(body) => body.is_none(),
        }
    }
}

/// Listens for what the server says before it answers. A body that waits to be asked for goes when it is: reading it is what
/// asks the client for it.
pub(super) fn listen(request: &mut Request<OutBody>, expects: bool, asides: Option<&Arc<Asides>>) -> Asking {
    let asking = Asking::default();
    let Some(asides) = asides.cloned() else { return asking };
    if expects {
        let (open, opened) = oneshot::channel();
        *asking.lock() = Some(open);
        request.body_mut().gate = Some(Box::pin(wanted(opened)));
    }
    // RFC 9110, section 15.2: none for clients of HTTP/1.0.
    let is_heard = request.version() == http::Version::HTTP_11;
    let open = asking.clone();
    hyper::ext::on_informational(request, move |answer| match answer.status() {
        StatusCode::CONTINUE => open.say(Wanted::Yes),
        _ if is_heard => asides.say(answer.status(), answer.headers()),
        _ => {}
    });
    asking
}

async fn wanted(mut opened: oneshot::Receiver<Wanted>) -> bool {
    match tokio::time::timeout(SILENT, &mut opened).await {
        Ok(Ok(Wanted::Answered(over))) => over.await.is_ok(),
        Ok(Ok(Wanted::Yes)) | Err(_) => true,
        Ok(Err(_)) => false,
    }
}

impl Asking {
    /// The answer is there. If the body still waits, the client will not send it, and what it sends next could be taken for it:
    /// the connection is good for nothing more when the answer is over, which is when what is returned is dropped.
    pub(super) fn answered(&self) -> Option<oneshot::Sender<()>> {
        let open = self.lock().take()?;
        let (over, wait) = oneshot::channel();
        open.send(Wanted::Answered(wait)).is_ok().then_some(over)
    }

    fn say(&self, wanted: Wanted) {
        if let Some(open) = self.lock().take() {
            let _ = open.send(wanted);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<oneshot::Sender<Wanted>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Body for OutBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(gate) = &mut self.gate {
            let wanted = std::task::ready!(gate.as_mut().poll(cx));
            self.gate = None;
            if !wanted {
                return Poll::Ready(Some(Err(BodyError::Unwanted)));
            }
        }
        match std::task::ready!(self.inner.poll_frame(cx)) {
            Some(Ok(frame)) => match self.pass(&frame).and_then(|()| self.end_if_over()) {
                Ok(()) => Poll::Ready(Some(Ok(frame))),
                Err(reason) => self.stop(reason),
            },
            Some(Err(error)) => Poll::Ready(Some(Err(error.into()))),
            None => match self.end() {
                Ok(()) => Poll::Ready(None),
                Err(reason) => self.stop(reason),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Source::Client(body) => body.size_hint(),
            Source::Here(body) => SizeHint::with_exact(body.as_ref().map_or(0, |body| body.len() as u64)),
        }
    }
}

impl AnswerBody {
    pub(super) fn new(
        inner: Incoming,
        first: Option<First>,
        exchange: Arc<Exchange>,
        unwanted: Option<oneshot::Sender<()>>,
    ) -> Self {
        Self { inner, first, exchange, _unwanted: unwanted }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = match self.first.take() {
            Some(first) => first,
            None => std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx)),
        };
        match &frame {
            Some(Ok(frame)) => {
                if let Some(piece) = frame.data_ref() {
                    self.exchange.piece(Side::Response, piece);
                }
                if self.inner.is_end_stream() {
                    self.exchange.end_of(Side::Response);
                }
            }
            Some(Err(_)) => {}
            None => self.exchange.end_of(Side::Response),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, first) = (self.inner.size_hint(), self.first.as_ref().map_or(0, length));
        let mut whole = SizeHint::new();
        whole.set_lower(rest.lower().saturating_add(first));
        if let Some(upper) = rest.upper() {
            whole.set_upper(upper.saturating_add(first));
        }
        whole
    }
}

fn length(first: &First) -> u64 {
    let frame = first.as_ref().and_then(|frame| frame.as_ref().ok());
    frame.and_then(Frame::data_ref).map_or(0, |piece| piece.len() as u64)
}
