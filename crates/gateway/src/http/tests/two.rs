//! HTTP/2: many requests at once, each by itself.

use bytes::Bytes;
use h2::{Reason, client, server};
use http::{HeaderMap, Request, Response};
use redoma_audit::event::Visibility;

use super::world::{RULE, World};
use crate::http::Version;

/// A client and a server that speak HTTP/2 through a bridge.
struct Two {
    ask: client::SendRequest<Bytes>,
    server: server::Connection<tokio::net::TcpStream, Bytes>,
    world: World,
}

async fn two(rule: &str) -> Two {
    let mut world = World::new(Version::Two, rule, |_| {}).await;
    let (idle, also) = super::world::pair().await;
    let (client, server) =
        (std::mem::replace(&mut world.client, idle), std::mem::replace(&mut world.server, also));
    let (client, server) = tokio::join!(client::handshake(client), server::handshake(server));
    let (ask, connection) = client.unwrap();
    tokio::spawn(async move { connection.await.ok() });
    Two { ask, server: server.unwrap(), world }
}

fn request(uri: &str) -> Request<()> {
    Request::post(uri).header("te", "trailers").body(()).unwrap()
}

const ECHO: &str = "http://a.example/echo";

/// Drives the server's connection while something else is waited for.
async fn while_serving<T>(
    server: &mut server::Connection<tokio::net::TcpStream, Bytes>,
    what: impl Future<Output = T>,
) -> T {
    let what = async {
        let mut what = std::pin::pin!(what);
        loop {
            tokio::select! {
                biased;
                done = &mut what => return done,
                more = server.accept() => assert!(more.is_none_or(|more| more.is_err()), "one request more"),
            }
        }
    };
    tokio::time::timeout(super::world::SOON, what).await.expect("in time")
}

#[tokio::test]
async fn both_speak_at_once_and_end_with_trailers() {
    let Two { ask, mut server, world: _world } = two(RULE).await;
    let (answer, mut sending) = ask.ready().await.unwrap().send_request(request(ECHO), false).unwrap();
    let (heard, mut respond) = server.accept().await.unwrap().unwrap();
    assert_eq!(heard.headers()["te"], "trailers");
    let mut asked = heard.into_body();
    let mut answering = respond.send_response(Response::new(()), false).unwrap();
    let mut got = while_serving(&mut server, answer).await.unwrap().into_body();
    for turn in 0..3 {
        let message = Bytes::from(format!("message {turn}"));
        sending.send_data(message.clone(), false).unwrap();
        assert_eq!(while_serving(&mut server, asked.data()).await.unwrap().unwrap(), message);
        answering.send_data(message.clone(), false).unwrap();
        assert_eq!(while_serving(&mut server, got.data()).await.unwrap().unwrap(), message);
    }
    let trailers =
        |value: &str| HeaderMap::from_iter([("grpc-status".parse().unwrap(), value.parse().unwrap())]);
    sending.send_trailers(trailers("1")).unwrap();
    assert!(while_serving(&mut server, asked.data()).await.is_none());
    assert_eq!(while_serving(&mut server, asked.trailers()).await.unwrap(), Some(trailers("1")));
    answering.send_trailers(trailers("0")).unwrap();
    assert!(while_serving(&mut server, got.data()).await.is_none());
    assert_eq!(while_serving(&mut server, got.trailers()).await.unwrap(), Some(trailers("0")));
}

#[tokio::test]
async fn a_client_that_cancels_is_heard_by_the_server() {
    let Two { ask, mut server, world: _world } = two(RULE).await;
    // While it waits for the answer, and in the middle of it.
    for answered in [false, true] {
        let mut ask = ask.clone().ready().await.unwrap();
        let (answer, mut sending) = ask.send_request(request(ECHO), false).unwrap();
        let (_, mut respond) = server.accept().await.unwrap().unwrap();
        if answered {
            let mut answering = respond.send_response(Response::new(()), false).unwrap();
            let got = while_serving(&mut server, answer).await.unwrap();
            sending.send_reset(Reason::CANCEL);
            drop(got);
            let reset = std::future::poll_fn(|cx| answering.poll_reset(cx));
            assert_eq!(while_serving(&mut server, reset).await.unwrap(), Reason::CANCEL);
        } else {
            sending.send_reset(Reason::CANCEL);
            drop(answer);
            let reset = std::future::poll_fn(|cx| respond.poll_reset(cx));
            assert_eq!(while_serving(&mut server, reset).await.unwrap(), Reason::CANCEL);
        }
    }
}

#[tokio::test]
async fn a_server_that_resets_is_heard_by_the_client() {
    let Two { ask, mut server, world } = two(RULE).await;
    for reason in [Reason::REFUSED_STREAM, Reason::HTTP_1_1_REQUIRED, Reason::ENHANCE_YOUR_CALM] {
        let mut ask = ask.clone().ready().await.unwrap();
        let (answer, _sending) = ask.send_request(request(ECHO), false).unwrap();
        let (_, mut respond) = server.accept().await.unwrap().unwrap();
        respond.send_reset(reason);
        let error = while_serving(&mut server, answer).await.unwrap_err();
        assert_eq!(error.reason(), Some(reason));
    }
    // In the middle of the answer.
    let mut ask = ask.ready().await.unwrap();
    let (answer, _sending) = ask.send_request(request(ECHO), false).unwrap();
    let (_, mut respond) = server.accept().await.unwrap().unwrap();
    let mut answering = respond.send_response(Response::new(()), false).unwrap();
    answering.send_data("half".into(), false).unwrap();
    let mut got = while_serving(&mut server, answer).await.unwrap().into_body();
    assert_eq!(while_serving(&mut server, got.data()).await.unwrap().unwrap(), "half");
    answering.send_reset(Reason::INTERNAL_ERROR);
    let error = while_serving(&mut server, got.data()).await.unwrap().unwrap_err();
    assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
    drop((ask, server));
    let (_, flow) = world.told().await;
    assert_eq!(flow.visibility, Visibility::Inspected);
}

#[tokio::test]
async fn requests_are_judged_as_in_http_1() {
    for (request, status, reason) in [
        (request("http://other.example/"), 403, "host-mismatch"),
        (request("http://a.example:81/"), 403, "host-mismatch"),
        (Request::get(ECHO).header("host", "other.example").body(()).unwrap(), 403, "host-mismatch"),
        (Request::connect("a.example:80").body(()).unwrap(), 400, "malformed"),
        (Request::get(ECHO).header("x", "x".repeat(140 << 10)).body(()).unwrap(), 431, "malformed"),
    ] {
        let Two { ask, mut server, world } = two(RULE).await;
        let (answer, _) = ask.ready().await.unwrap().send_request(request, true).unwrap();
        let answer = while_serving(&mut server, answer).await.unwrap();
        assert_eq!(answer.status(), status);
        assert_eq!(answer.headers()["redoma-reason"], reason);
        drop((answer, server));
        let (_, flow) = world.told().await;
        assert_eq!((flow.visibility, flow.reason.as_str()), (Visibility::Blocked, reason));
    }
}

#[tokio::test]
async fn more_than_may_be_sent_is_cut_off() {
    let Two { ask, mut server, world } = two(&format!("{RULE}max_upload = \"1000B\"\n")).await;
    let (answer, mut sending) = ask.ready().await.unwrap().send_request(request(ECHO), false).unwrap();
    let (heard, _respond) = server.accept().await.unwrap().unwrap();
    sending.send_data(vec![0; 4000].into(), true).unwrap();
    let answer = while_serving(&mut server, answer).await.unwrap();
    assert_eq!(answer.status(), 413);
    let mut asked = heard.into_body();
    let end = while_serving(&mut server, asked.data()).await;
    assert!(matches!(end, Some(Err(_))), "{end:?}");
    drop((answer, sending, server));
    let (_, flow) = world.told().await;
    assert_eq!((flow.visibility, flow.reason.as_str()), (Visibility::Blocked, "budget"));
}
