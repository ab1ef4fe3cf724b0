//! A connection whose bytes are looked at as they are read from it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::Flow;
use crate::guard::Scan;

/// What a client says, looked at before anybody gets it.
pub(crate) struct Watched<S> {
    inner: S,
    scan: Option<Box<dyn Scan>>,
    flow: Arc<Flow>,
}

impl<S> Watched<S> {
    pub(crate) fn new(inner: S, scan: Option<Box<dyn Scan>>, flow: Arc<Flow>) -> Self {
        Self { inner, scan, flow }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let Some(scan) = &mut self.scan else { return Poll::Ready(Ok(())) };
        let looked = match &buf.filled()[before..] {
            [] => scan.end(),
            new => scan.push(new),
        };
        if let Err(reason) = looked {
            buf.set_filled(before);
            self.flow.blocked(reason);
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::PermissionDenied, reason.in_words())));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
