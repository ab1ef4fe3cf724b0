//! The client's side of HTTP/1, as far as hyper has no words for it: informational answers, an explanation of what is
//! malformed, and an end that does not take the last answer along.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use super::Scope;
use crate::Reason;
use crate::refuse::Refusal;

/// Answers that come before the answer (RFC 9110, section 15.2).
#[derive(Default)]
pub(super) struct Asides {
    waiting: Mutex<Waiting>,
    /// Whether a request is being answered: from when its head was there until all of the answer is on its way.
    busy: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    asides: VecDeque<Bytes>,
    waker: Option<Waker>,
}

/// The client's connection.
pub(super) struct ClientSide<C> {
    stream: Lingering<C>,
    scope: Arc<Scope>,
    asides: Arc<Asides>,
    /// What is said now, before anything else.
    aside: Bytes,
    /// Whether all that was written is on its way, so that something may be said in between.
    flushed: bool,
    /// When the head began that is not there as a whole.
    head_since: Option<Instant>,
    /// One for the connection's life; it is looked at when it is over, since a timer for each request costs a system call.
    timer: Option<Pin<Box<Sleep>>>,
}

/// A stream that listens on after its end: a client that is still sending when it is answered, would lose the answer to the
/// reset that follows when its bytes find nobody (RFC 9112, section 9.6).
pub(crate) struct Lingering<S> {
    stream: S,
    until: Option<Pin<Box<Sleep>>>,
}

/// More than a server has a use for.
const MOST_ASIDES: usize = 16;
/// How long the client has to send a request's head.
const HEAD_TIME: Duration = Duration::from_secs(60);
/// How long is listened on.
const LINGER: Duration = Duration::from_secs(2);

// === impl Asides ===

impl Asides {
    pub(super) fn say(&self, status: StatusCode, headers: &HeaderMap) {
        let mut waiting = self.waiting();
        if waiting.asides.len() < MOST_ASIDES {
            waiting.asides.push_back(head(status, headers).into());
        }
        if let Some(waker) = waiting.waker.take() {
            waker.wake();
        }
    }

    /// A request's head is there, and what is written next is its answer.
    pub(super) fn begin(&self) {
        self.busy.store(true, Ordering::Relaxed);
    }

    fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// The next one, or a promise to wake.
    fn next(&self, cx: &Context<'_>) -> Option<Bytes> {
        let mut waiting = self.waiting();
        let aside = waiting.asides.pop_front();
        if aside.is_none() && waiting.waker.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
            waiting.waker = Some(cx.waker().clone());
        }
        aside
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn head(status: StatusCode, headers: &HeaderMap) -> Vec<u8> {
    let line = format!("HTTP/1.1 {} {}\r\n", status.as_str(), status.canonical_reason().unwrap_or_default());
    let mut head = line.into_bytes();
    for (name, value) in headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

// === impl ClientSide ===

impl<C> ClientSide<C> {
    pub(super) fn new(client: C, scope: Arc<Scope>) -> (Self, Arc<Asides>) {
        let asides = Arc::<Asides>::default();
        let stream = Lingering::new(client);
        let own = Arc::clone(&asides);
        (
            Self {
                stream,
                scope,
                asides: own,
                aside: Bytes::new(),
                flushed: true,
                head_since: None,
                timer: None,
            },
            asides,
        )
    }

    /// What hyper says by itself about a head that it cannot read has no words. It is told from a server's answer by there
    /// being none on its way.
    fn in_words(&self, bytes: &[u8]) -> Option<Bytes> {
        if self.asides.is_busy() {
            return None;
        }
        let code = bytes.strip_prefix(b"HTTP/1.1 ")?.get(..3)?;
        let status = StatusCode::from_bytes(code).ok().filter(StatusCode::is_client_error)?;
        let because = match status {
            StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "its head is too large",
            StatusCode::URI_TOO_LONG => "its URL is too long",
            _ => "it is no well-formed request, or could be read in more than one way",
        };
        let refusal = Refusal::new(Reason::Malformed, because).with_status(status);
        self.scope.flow.set_detail(because);
        self.scope.flow.blocked(refusal.reason);
        let (mut parts, text) = refusal.answer(&self.scope.flow).into_parts();
        parts.headers.insert(header::CONTENT_LENGTH, text.len().into());
        parts.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        Some([&head(parts.status, &parts.headers), &text[..]].concat().into())
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin> ClientSide<C> {
    /// Says what is to be said in between, as a whole.
    fn poll_asides(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            while self.aside.has_remaining() {
                let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.aside))?;
                if written == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.aside.advance(written);
            }
            match self.flushed.then(|| self.asides.next(cx)).flatten() {
                Some(aside) => self.aside = aside,
                None => return Poll::Ready(Ok(())),
            }
        }
    }

    fn poll_say(
        &mut self,
        cx: &mut Context<'_>,
        first: &[u8],
        length: usize,
        write: impl FnOnce(Pin<&mut Lingering<C>>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if let Some(words) = self.in_words(first) {
            self.aside = words;
            self.flushed = false;
            return Poll::Ready(Ok(length));
        }
        ready!(self.poll_asides(cx))?;
        self.flushed = false;
        write(Pin::new(&mut self.stream), cx)
    }
}

impl<C: AsyncRead + Unpin> ClientSide<C> {
    /// Whether the client took too long over a head. A connection on which nothing was begun may wait as long as it likes.
    fn poll_too_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(since) = self.head_since.filter(|_| !self.asides.is_busy()) else { return Poll::Pending };
        let until = since + HEAD_TIME;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        while timer.as_mut().poll(cx).is_ready() {
            if until <= Instant::now() {
                return Poll::Ready(());
            }
            timer.as_mut().reset(until);
        }
        Poll::Pending
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for ClientSide<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buf) {
            Poll::Ready(read) => {
                if buf.filled().len() > before && !self.asides.is_busy() {
                    self.head_since.get_or_insert_with(Instant::now);
                }
                Poll::Ready(read)
            }
            Poll::Pending => self.poll_too_late(cx).map(|()| Err(io::ErrorKind::TimedOut.into())),
        }
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientSide<C> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_say(cx, bytes, bytes.len(), |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = slices.iter().map(|slice| slice.len()).sum();
        let first = slices.first().map_or(&[][..], |slice| slice);
        self.poll_say(cx, first, length, |stream, cx| stream.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_asides(cx))?;
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        self.flushed = true;
        let answered = Arc::strong_count(&self.scope.answering) == 1;
        if answered && self.asides.busy.swap(false, Ordering::Relaxed) {
            self.head_since = None;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_asides(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

// === impl Lingering ===

impl<S> Lingering<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, until: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lingering<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Lingering<S> {
    fn poll_listen(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut room = [0; 16 << 10];
        while self.until.as_mut().is_some_and(|until| until.as_mut().poll(cx).is_pending()) {
            let mut buffer = ReadBuf::new(&mut room);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                _ => break,
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.until.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.until = Some(Box::pin(tokio::time::sleep(LINGER)));
        }
        self.poll_listen(cx).map(Ok)
    }
}
