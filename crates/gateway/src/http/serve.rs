//! One request from its head to the answer's head; the bodies follow by themselves.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Body;
use hyper::body::Incoming;

use super::body::{AnswerBody, Asking, First, OutBody, Source};
use super::client::Asides;
use super::exchange::Exchange;
use super::judge::{self, Meter};
use super::upgrade::Upgrading;
use super::{Scope, Version, body};
use crate::Reason;
use crate::guard::Scan;
use crate::refuse::{Answer, Refusal, Said};
use crate::secrets::BodyHash;

/// A request's body and what it goes through.
type Looks = (Source, Option<Meter>, Option<Box<dyn Scan>>);

/// Answers a request, or fails where the client is to see what the server did to us.
pub(super) async fn serve(
    scope: &Arc<Scope>,
    number: u64,
    request: Request<Incoming>,
    asides: Option<&Arc<Asides>>,
    send: impl AsyncFnOnce(Request<OutBody>) -> hyper::Result<Response<Incoming>>,
) -> hyper::Result<Response<Answer>> {
    let (mut parts, body) = request.into_parts();
    let exchange = Exchange::begin(scope, number, &parts);
    let upgrading = Upgrading::asked(&parts);
    let (body, mut meter, scan) = match look_at(scope, &mut parts, body, &exchange).await {
        Ok(looks) => looks,
        Err(refusal) => return Ok(refused(scope, &exchange, &refusal)),
    };
    let upgrading = Upgrading::of(&mut parts, upgrading).map(|upgrading| upgrading.counted(meter.take()));
    let expects = parts.headers.contains_key(header::EXPECT);
    let mut request = Request::from_parts(parts, OutBody::new(body, Arc::clone(&exchange), meter, scan));
    let asking = body::listen(&mut request, expects, asides);
    match send(request).await {
        Ok(answer) => Ok(pass_on(scope, exchange, upgrading, &asking, answer).await),
        Err(error) => match exchange.stopped() {
            Some(reason) => Ok(refused(scope, &exchange, &Refusal::new(reason, reason.in_words()))),
            None if is_for_the_client(scope.version, number, &error) => {
                exchange.refused(Reason::UpstreamFailed);
                Err(error)
            }
            None => {
                let because = format!("the server broke off: {error}");
                Ok(refused(scope, &exchange, &Refusal::new(Reason::UpstreamFailed, because)))
            }
        },
    }
}

async fn look_at(
    scope: &Arc<Scope>,
    parts: &mut Parts,
    body: Incoming,
    exchange: &Exchange,
) -> Result<Looks, Refusal> {
    let failed = |reason: Reason| Refusal::new(reason, reason.in_words());
    let judged = unless_it_panics(|| {
        let meter = judge::judge(scope, parts)?;
        Ok((meter, scope.gateway.guard.needs_body(&scope.flow, parts)))
    });
    let (meter, needs_body) = judged.map_err(failed)??;
    let body = if needs_body { taken_in(parts, body).await? } else { Source::Client(body) };
    let scan = unless_it_panics(|| {
        judge::finish(scope, parts, exchange)?;
        Ok(scope.gateway.guard.body(&scope.flow, parts))
    });
    Ok((body, meter, scan.map_err(failed)??))
}

/// As a whole, where the head cannot go on without it.
async fn taken_in(parts: &mut Parts, body: Incoming) -> Result<Source, Refusal> {
    let body = body::whole(body).await?;
    parts.extensions.insert(BodyHash::of(&body));
    Ok(Source::Here(Some(body).filter(|body| !body.is_empty())))
}

/// What is looked at is hostile: where looking fails, nothing goes on, and nothing else ends.
pub(super) fn unless_it_panics<T>(look: impl FnOnce() -> T) -> Result<T, Reason> {
    catch_unwind(AssertUnwindSafe(look)).map_err(|_| Reason::Internal)
}

/// Whether the client knows better what to do about it than to read words of ours: it asks again on a new connection when a
/// kept one was closed just then (RFC 9110, section 9.2.2), and resets of HTTP/2 say what to do (RFC 9113, section 8.7).
fn is_for_the_client(version: Version, number: u64, error: &hyper::Error) -> bool {
    match version {
        Version::One => number > 0 && !error.is_parse(),
        Version::Two => {
            let causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
            causes.filter_map(|cause| cause.downcast_ref::<h2::Error>()).any(h2::Error::is_reset)
        }
    }
}

async fn pass_on(
    scope: &Scope,
    exchange: Arc<Exchange>,
    upgrading: Option<Upgrading>,
    asking: &Asking,
    mut answer: Response<Incoming>,
) -> Response<Answer> {
    exchange.answered(&answer);
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        judge::clean_answer(&mut answer, scope);
        let unwanted = asking.answered();
        if unwanted.is_some() {
            answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        let first = at_hand(answer.body_mut()).await;
        let pass = |body| Said::Passed(AnswerBody::new(body, first, exchange, unwanted));
        return answer.map(|body| Answer::new(pass(body), Arc::clone(&scope.answering)));
    }
    match upgrading {
        Some(upgrading) => upgrading.join(&mut answer, &exchange, scope),
        None => {
            let because = "the server changed the protocol without being asked";
            refused(scope, &exchange, &Refusal::new(Reason::UpstreamFailed, because))
        }
    }
}

/// What has arrived of a body with its head, so that it leaves with it as well. Nothing is waited for: the other connection
/// is looked at once more, and that is all.
async fn at_hand(body: &mut Incoming) -> Option<First> {
    let mut looked = false;
    poll_fn(|cx| {
        if body.is_end_stream() {
            return Poll::Ready(None);
        }
        match Pin::new(&mut *body).poll_frame(cx) {
            Poll::Ready(frame) => Poll::Ready(Some(frame)),
            Poll::Pending if looked => Poll::Ready(None),
            Poll::Pending => {
                looked = true;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    })
    .await
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
    let speaking = Arc::clone(&scope.answering);
    answer.map(|text| Answer::new(Said::Text(Some(text)), speaking))
}
