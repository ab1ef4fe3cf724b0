//! HTTP on both sides of the gateway: each request is judged, recorded and passed on as it streams.
//!
//! One connection of the client's is joined with one of the server's, in the same version. So neither side waits for
//! anything that it would not wait for without us, and what ends on one side ends on the other.

mod body;
mod exchange;
mod judge;
mod upgrade;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::server::conn::http1::{self, UpgradeableConnection};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

pub(crate) use body::AnswerBody;
use body::{OutBody, Source};
use exchange::Exchange;
use upgrade::Upgrading;

use crate::refuse::{Answer, Refusal};
use crate::secrets::BodyHash;
use crate::{Flow, Gateway, Reason};

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
    ends: Ends,
}

/// How a bridge comes to its end.
#[derive(Default)]
struct Ends {
    /// Something was refused: what the client wants next, it is to ask for anew.
    refused: Notify,
    /// What goes on after a change of protocol.
    tunnel: Mutex<Option<JoinHandle<()>>>,
}

/// How the client has time to send a request's head (an idle connection is no head).
const HEAD_TIME: Duration = Duration::from_secs(60);
/// As servers have it; longer heads are refused with 431.
const LONGEST_HEAD: usize = 256 << 10;
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
        .max_headers(1024)
        .handshake::<_, OutBody>(TokioIo::new(server))
        .await;
    let Ok((sender, upstream)) = upstream else { return };
    let sender = Arc::new(tokio::sync::Mutex::new(sender));
    let scope = Arc::new(scope);
    let numbers = Arc::new(AtomicU64::new(0));
    let serving = Arc::clone(&scope);
    let service = service_fn(move |request| {
        let (scope, sender) = (Arc::clone(&serving), Arc::clone(&sender));
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        async move {
            let handle = async |request| {
                let mut sender = sender.lock().await;
                sender.ready().await?;
                sender.send_request(request).await
            };
            Ok::<_, Infallible>(serve(&scope, number, request, handle).await)
        }
    });
    let downstream = http1::Builder::new()
        .preserve_header_case(true)
        .half_close(true)
        .max_headers(1024)
        .max_buf_size(LONGEST_HEAD)
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .serve_connection(TokioIo::new(client), service)
        .with_upgrades();
    join(downstream, upstream.with_upgrades(), &scope, UpgradeableConnection::graceful_shutdown).await;
}

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
    let numbers = Arc::new(AtomicU64::new(0));
    let serving = Arc::clone(&scope);
    let service = service_fn(move |request| {
        let (scope, mut sender) = (Arc::clone(&serving), sender.clone());
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        async move {
            let handle = async |request| {
                sender.ready().await?;
                sender.send_request(request).await
            };
            Ok::<_, Infallible>(serve(&scope, number, request, handle).await)
        }
    });
    let downstream = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .adaptive_window(true)
        .max_header_list_size(LARGEST_HEADERS)
        .serve_connection(TokioIo::new(client), service);
    join(downstream, upstream, &scope, http2::Connection::graceful_shutdown).await;
}

/// Drives both connections. When the server's is over, or something was refused, the client's ends after what it is in the
/// middle of.
async fn join<D, U>(downstream: D, upstream: U, scope: &Scope, end: impl FnOnce(Pin<&mut D>))
where
    D: Future,
    U: Future + Send + 'static,
    U::Output: Send,
{
    let mut upstream = tokio::spawn(upstream);
    let mut downstream = std::pin::pin!(downstream);
    tokio::select! {
        _ = &mut downstream => {}
        () = async { tokio::select! { _ = &mut upstream => {}, () = scope.ends.refused.notified() => {} } } => {
            end(downstream.as_mut());
            let _ = downstream.await;
        }
    }
    let tunnel = scope.ends.tunnel.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(tunnel) = tunnel {
        let _ = tunnel.await;
    }
    // Nobody waits for an answer any more.
    upstream.abort();
}

impl Scope {
    pub(crate) fn new(gateway: Arc<Gateway>, flow: Arc<Flow>, version: Version) -> Self {
        Self { gateway, flow, version, secure: false, one_request: false, ends: Ends::default() }
    }

    /// What goes on after the connection has changed its protocol.
    fn tunnel(&self, tunnel: impl Future<Output = ()> + Send + 'static) {
        *self.ends.tunnel.lock().unwrap_or_else(PoisonError::into_inner) = Some(tokio::spawn(tunnel));
    }
}

/// One request from its head to the answer's head; the bodies follow by themselves.
async fn serve(
    scope: &Arc<Scope>,
    number: u64,
    request: Request<Incoming>,
    send: impl AsyncFnOnce(Request<OutBody>) -> hyper::Result<Response<Incoming>>,
) -> Response<Answer> {
    let (mut parts, body) = request.into_parts();
    let exchange = Exchange::begin(scope, number, &parts);
    let upgrading = Upgrading::asked(&parts);
    let body = match take_in(scope, &mut parts, body).await {
        Ok(body) => body,
        Err(refusal) => return refused(scope, &exchange, &refusal),
    };
    let meter = match judge::judge(scope, &mut parts, &exchange) {
        Ok(meter) => meter,
        Err(refusal) => return refused(scope, &exchange, &refusal),
    };
    let upgrading = Upgrading::of(&mut parts, upgrading);
    let expects = parts.headers.contains_key(header::EXPECT);
    let scan = scope.gateway.guard.body(&scope.flow, &parts);
    let mut request = Request::from_parts(parts, OutBody::new(body, Arc::clone(&exchange), meter, scan));
    if expects {
        body::wait_for_continue(&mut request);
    }
    match send(request).await {
        Ok(answer) => pass_on(scope, exchange, upgrading, answer),
        Err(error) => match exchange.stopped() {
            Some(reason) => refused(scope, &exchange, &Refusal::new(reason, reason.in_words())),
            None => {
                let because = format!("the server broke off: {error}");
                refused(scope, &exchange, &Refusal::new(Reason::UpstreamFailed, because))
            }
        },
    }
}

/// The body as it comes, or as a whole where the head cannot go on without it.
async fn take_in(scope: &Scope, parts: &mut Parts, body: Incoming) -> Result<Source, Refusal> {
    if !scope.gateway.guard.needs_body(&scope.flow, parts) {
        return Ok(Source::Client(body));
    }
    let body = body::whole(body).await?;
    parts.extensions.insert(BodyHash::of(&body));
    Ok(Source::Here(Some(body).filter(|body| !body.is_empty())))
}

fn pass_on(
    scope: &Scope,
    exchange: Arc<Exchange>,
    upgrading: Option<Upgrading>,
    mut answer: Response<Incoming>,
) -> Response<Answer> {
    exchange.answered(&answer);
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        judge::clean_answer(&mut answer, scope);
        return answer.map(|body| Answer::Passed(AnswerBody::new(body, exchange)));
    }
    match upgrading {
        Some(upgrading) => upgrading.join(&mut answer, &exchange, scope),
        None => {
            let because = "the server changed the protocol without being asked";
            refused(scope, &exchange, &Refusal::new(Reason::UpstreamFailed, because))
        }
    }
}

/// The client hears it, and is to connect anew for what it wants next.
fn refused(scope: &Scope, exchange: &Exchange, refusal: &Refusal) -> Response<Answer> {
    exchange.refused(refusal.reason);
    let mut answer = refusal.answer(&scope.flow);
    exchange.answered(&answer);
    if scope.version == Version::One {
        answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    scope.ends.refused.notify_one();
    answer
}
