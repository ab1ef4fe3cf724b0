//! HTTP on both sides of the gateway: each request is judged, recorded and passed on as it streams.
//!
//! One connection of the client's is joined with one of the server's, in the same version. So neither side waits for
//! anything that it would not wait for without us, and what ends on one side ends on the other.

mod body;
mod client;
mod exchange;
mod judge;
mod pair;
mod serve;
#[cfg(test)]
mod tests;
mod upgrade;

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use hyper::server::conn::http1::{self, UpgradeableConnection};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub(crate) use body::AnswerBody;
use body::OutBody;
use client::ClientSide;
pub(crate) use client::Lingering;
use exchange::Record;

use crate::{Flow, Gateway};

/// Which HTTP both sides speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// HTTP/1.1 or 1.0.
    One,
    /// HTTP/2.
    Two,
}

/// What one bridge knows.
pub(crate) struct Scope {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) flow: Arc<Flow>,
    pub(crate) version: Version,
    /// Whether it is in TLS.
    pub(crate) secure: bool,
    /// Whether the client may mean other hosts with its next requests (a proxy's client).
    pub(crate) one_request: bool,
    /// The host as URLs have it, with the port where it is not the usual one.
    authority: String,
    ends: Ends,
    /// What is to be told once the client has its bytes.
    records: Mutex<Vec<Record>>,
    /// Held by everything that is being answered.
    answering: Arc<()>,
}

/// How a bridge comes to its end.
#[derive(Default)]
struct Ends {
    /// Something was refused: what the client wants next, it is to ask for anew.
    refused: Notify,
    /// What goes on after a change of protocol.
    tunnel: Mutex<Option<JoinHandle<()>>>,
}

/// Longer heads are refused with words; servers take no longer ones either.
const LONGEST_HEAD: usize = 128 << 10;
/// As far as heads are read at all.
const LONGEST_PARSED: usize = 2 * LONGEST_HEAD;
/// For HTTP/2, where memory is what counts.
const LARGEST_HEADERS: u32 = 256 << 10;

/// Joins client and server until one of them is gone.
pub(crate) async fn bridge<C, S>(client: C, server: S, scope: Scope)
where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match scope.version {
        Version::One => bridge_one(client, server, scope).await,
        Version::Two => bridge_two(client, server, scope).await,
    }
}

async fn bridge_one<C, S>(client: C, server: S, scope: Scope)
where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let upstream = hyper::client::conn::http1::Builder::new()
        .preserve_header_case(true)
        .max_headers(MOST_HEADERS)
        .max_buf_size(LONGEST_PARSED)
        .handshake::<_, OutBody>(TokioIo::new(server))
        .await;
    let Ok((sender, upstream)) = upstream else { return };
    let sender = Arc::new(tokio::sync::Mutex::new(sender));
    let scope = Arc::new(scope);
    let numbers = AtomicU64::new(0);
    let (client, asides) = ClientSide::new(client, Arc::clone(&scope));
    let serving = Arc::clone(&scope);
    let service = service_fn(move |request| {
        let (scope, sender, asides) = (Arc::clone(&serving), Arc::clone(&sender), Arc::clone(&asides));
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        asides.begin();
        let speaking = Arc::clone(&scope.answering);
        async move {
            let _speaking = speaking;
            let handle = async |request| {
                let mut sender = sender.lock().await;
                sender.ready().await?;
                sender.send_request(request).await
            };
            serve::serve(&scope, number, request, Some(&asides), handle).await
        }
    });
    let downstream = http1::Builder::new()
        .preserve_header_case(true)
        // A client of TLS that says its last is gone; one without may still listen.
        .half_close(!scope.secure)
        .max_headers(MOST_HEADERS)
        .max_buf_size(LONGEST_PARSED)
        // See `ClientSide`.
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(client), service)
        .with_upgrades();
    join(downstream, upstream.with_upgrades(), &scope, UpgradeableConnection::graceful_shutdown).await;
}

/// More than any server takes.
const MOST_HEADERS: usize = 1024;

async fn bridge_two<C, S>(client: C, server: S, scope: Scope)
where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let upstream = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .adaptive_window(true)
        .max_header_list_size(LARGEST_HEADERS)
        .handshake::<_, OutBody>(TokioIo::new(server))
        .await;
    let Ok((sender, upstream)) = upstream else { return };
    let scope = Arc::new(scope);
    let numbers = AtomicU64::new(0);
    let serving = Arc::clone(&scope);
    let service = service_fn(move |request| {
        let (scope, mut sender) = (Arc::clone(&serving), sender.clone());
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        async move {
            let handle = async |request| {
                sender.ready().await?;
                sender.send_request(request).await
            };
            serve::serve(&scope, number, request, None, handle).await
        }
    });
    let downstream = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .adaptive_window(true)
        .max_header_list_size(LARGEST_HEADERS)
        .serve_connection(TokioIo::new(client), service);
    join(downstream, upstream, &scope, http2::Connection::graceful_shutdown).await;
}

/// Drives both connections, in one task: what one hands to the other wakes no other thread. When the server's is over, or
/// something was refused, the client's ends after what it is in the middle of.
async fn join<D: Future, U: Future>(
    downstream: D,
    upstream: U,
    scope: &Scope,
    end: impl FnOnce(Pin<&mut D>),
) {
    let mut refused = pin!(scope.ends.refused.notified());
    let mut end = Some(end);
    pair::both(pin!(upstream), pin!(downstream), |cx, over, downstream| {
        scope.tell();
        let ends = end.is_some() && (over || refused.as_mut().poll(cx).is_ready());
        if ends && let Some(end) = end.take() {
            end(downstream);
        }
        ends
    })
    .await;
    let tunnel = scope.ends.tunnel.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(tunnel) = tunnel {
        let _ = tunnel.await;
    }
}

impl Scope {
    pub(crate) fn new(gateway: Arc<Gateway>, flow: Arc<Flow>, version: Version, secure: bool) -> Self {
        let target = flow.target();
        let usual = if secure { 443 } else { 80 };
        let authority = match target.port == usual {
            true => target.host_in_url(),
            false => target.to_string(),
        };
        Self {
            gateway,
            flow,
            version,
            secure,
            one_request: false,
            authority,
            ends: Ends::default(),
            records: Mutex::default(),
            answering: Arc::default(),
        }
    }

    /// What goes on after the connection has changed its protocol.
    fn tunnel(&self, tunnel: impl Future<Output = ()> + Send + 'static) {
        *self.ends.tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some(tokio::spawn(tunnel));
    }

    /// Tells it when what is at hand is done. In HTTP/2 each request has a task of its own, that holds up nobody.
    fn record(&self, record: Record) {
        match self.version {
            Version::One => self.records().push(record),
            Version::Two => self.flow.sink().tell(record.whole()),
        }
    }

    fn tell(&self) {
        // Telling may take its time.
        let records = std::mem::take(&mut *self.records());
        for record in records {
            self.flow.sink().tell(record.whole());
        }
    }

    fn records(&self) -> std::sync::MutexGuard<'_, Vec<Record>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.tell();
    }
}
