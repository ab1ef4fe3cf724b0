//! What breaks off on one side breaks off on the other, and never looks like a success.

use std::sync::Arc;

use http::HeaderMap;
use http::request::Parts;
use redoma_audit::event::Visibility;
use tokio::io::AsyncWriteExt;

use super::world::{RULE, World, world};
use crate::guard::{Framing, Guard, Scan};
use crate::http::Version;
use crate::refuse::Refusal;
use crate::{Flow, Reason};

const GET: &str = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";

#[tokio::test]
async fn a_server_that_breaks_off_is_no_success() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ] {
        let mut world = world(Version::One).await;
        world.ask(GET).await;
        world.heard("\r\n\r\n").await;
        world.answer(answer).await;
        world.got("half").await;
        world.server = super::world::pair().await.0;
        let (got, _) = world.got_all().await;
        assert!(!got.contains("0\r\n\r\n"), "{got:?}");
        let (exchanges, _) = world.told().await;
        assert_eq!(exchanges[0].response.as_ref().unwrap().digest, None, "it is not whole");
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_told_in_words_first_and_by_hanging_up_later() {
    let mut world = world(Version::One).await;
    world.ask(GET).await;
    world.heard("\r\n\r\n").await;
    world.server = super::world::pair().await.0;
    let (got, _) = world.got_all().await;
    assert!(got.starts_with("HTTP/1.1 502 ") && got.contains("redoma could not pass this on"), "{got:?}");
    let (_, flow) = world.told().await;
    assert_eq!(flow.visibility, Visibility::Inspected, "it is the server's fault");

    let mut world = super::world::world(Version::One).await;
    for _ in 0..2 {
        world.ask(GET).await;
        world.heard("\r\n\r\n").await;
        world.answer("HTTP/1.1 204 No Content\r\n\r\n").await;
        world.got("\r\n\r\n").await;
    }
    world.ask(GET).await;
    world.heard("\r\n\r\n").await;
    world.server = super::world::pair().await.0;
    // As without us; clients ask again.
    assert_eq!(world.got_all().await.0, "");
}

#[tokio::test]
async fn a_client_that_leaves_is_gone_for_the_server() {
    // In the middle of its own body, and of the answer's.
    let mut world = world(Version::One).await;
    world.ask("POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 10\r\n\r\nhalf").await;
    world.heard("half").await;
    world.client = super::world::pair().await.0;
    assert_eq!(world.heard_all().await.0, "");

    let mut world = super::world::world(Version::One).await;
    world.ask(GET).await;
    world.heard("\r\n\r\n").await;
    world.answer("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n").await;
    world.got("x\r\n").await;
    world.client = super::world::pair().await.0;
    let server = &mut world.server;
    let flood = async {
        while server.write_all(&[b"1000\r\n", &[b'x'; 4096][..], b"\r\n"].concat()).await.is_ok() {}
    };
    tokio::time::timeout(super::world::SOON, flood).await.expect("it is told");
}

#[tokio::test]
async fn a_client_that_has_said_all_still_hears() {
    let mut world = world(Version::One).await;
    world.ask(GET).await;
    world.client.shutdown().await.unwrap();
    world.heard("\r\n\r\n").await;
    world.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await;
    let (got, in_order) = world.got_all().await;
    assert!(in_order && got.ends_with("hi"), "{got:?}");
}

#[tokio::test]
async fn more_than_may_be_sent_is_cut_off_and_told() {
    let limits = ["max_upload = \"1000B\"", "max_upload_session = \"1200B\""];
    let framings = [("Content-Length: 4000", 4000), ("Transfer-Encoding: chunked", 0)];
    for (limit, (framing, announced)) in
        limits.iter().flat_map(|limit| framings.map(|framing| (limit, framing)))
    {
        let mut world = World::new(Version::One, &format!("{RULE}{limit}\n"), |_| {}).await;
        world.ask(&format!("POST / HTTP/1.1\r\nHost: a.example\r\n{framing}\r\n\r\n")).await;
        if announced == 0 {
            world.heard("\r\n\r\n").await;
            for _ in 0..40 {
                world.ask(&format!("64\r\n{}\r\n", "x".repeat(100))).await;
            }
            world.ask("0\r\n\r\n").await;
        }
        let (got, in_order) = world.got_all().await;
        assert!(in_order && got.starts_with("HTTP/1.1 413 "), "{limit} {framing} {got:?}");
        let (heard, _) = world.heard_all().await;
        assert!(heard.len() < 1300 && !heard.contains("0\r\n\r\n"), "{limit} {framing} {heard:?}");
        let (exchanges, flow) = world.told().await;
        assert_eq!((flow.visibility, flow.reason.as_str()), (Visibility::Blocked, "budget"));
        assert_eq!(exchanges[0].refused.as_ref().unwrap().as_str(), "budget");
    }
}

#[tokio::test]
async fn many_small_requests_are_no_way_around_a_budget() {
    let mut world = World::new(Version::One, &format!("{RULE}max_upload_session = \"2KiB\"\n"), |_| {}).await;
    let mut passed = 0;
    loop {
        world.ask(&format!("GET /{} HTTP/1.1\r\nHost: a.example\r\n\r\n", "x".repeat(400))).await;
        let (mut one, mut other) = ([0; 1], [0; 1]);
        tokio::select! {
            read = world.server.peek(&mut one) => if read.unwrap() == 0 { break },
            _ = world.client.peek(&mut other) => break,
        }
        world.heard("\r\n\r\n").await;
        world.answer("HTTP/1.1 204 No Content\r\n\r\n").await;
        world.got("\r\n\r\n").await;
        passed += 1;
    }
    assert_eq!(passed, 4);
    assert!(world.got_all().await.0.starts_with("HTTP/1.1 413 "));
}

#[tokio::test]
async fn the_refusal_reaches_a_client_that_is_still_sending() {
    let mut world = world(Version::One).await;
    let body = "x".repeat(8 << 20);
    let request =
        format!("POST / HTTP/1.1\r\nHost: other.example\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    let (mut reader, mut writer) = world.client.split();
    let sent = async { writer.write_all(request.as_bytes()).await };
    let got = async { super::world::head(&mut reader).await };
    let (sent, got) = tokio::join!(sent, got);
    assert!(sent.is_ok() && got.starts_with("HTTP/1.1 403 "), "{sent:?} {got:?}");
}

/// Falls over.
struct Panics {
    at_head: bool,
}

impl Guard for Panics {
    fn head(&self, _: &Flow, _: &mut Parts) -> Result<Vec<String>, Refusal> {
        assert!(!self.at_head, "a guard that fails");
        Ok(Vec::new())
    }

    fn body(&self, _: &Arc<Flow>, _: &Parts) -> Option<Box<dyn Scan>> {
        Some(Box::new(Self { at_head: false }))
    }

    fn needs_body(&self, _: &Flow, _: &Parts) -> bool {
        false
    }

    fn connection(&self, _: &Arc<Flow>, _: Framing) -> Option<Box<dyn Scan>> {
        None
    }
}

impl Scan for Panics {
    fn push(&mut self, _: &[u8]) -> Result<(), Reason> {
        panic!("a guard that fails")
    }

    fn trailers(&mut self, _: &HeaderMap) -> Result<(), Reason> {
        Ok(())
    }

    fn end(&mut self) -> Result<(), Reason> {
        Ok(())
    }
}

#[tokio::test]
async fn where_looking_fails_nothing_passes() {
    for at_head in [true, false] {
        let mut world = World::guarded(Version::One, Panics { at_head }).await;
        world.ask("POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 6\r\n\r\nsecret").await;
        let (got, _) = world.got_all().await;
        assert!(got.starts_with("HTTP/1.1 500 ") && got.contains("redoma-reason: internal-error"), "{got:?}");
        assert!(!world.heard_all().await.0.contains("secret"));
        let (_, flow) = world.told().await;
        assert_eq!((flow.visibility, flow.reason.as_str()), (Visibility::Blocked, "internal-error"));
    }
}

/// Looks for a word.
struct Finds(Vec<u8>);

impl Guard for Finds {
    fn head(&self, _: &Flow, _: &mut Parts) -> Result<Vec<String>, Refusal> {
        Ok(Vec::new())
    }

    fn body(&self, _: &Arc<Flow>, _: &Parts) -> Option<Box<dyn Scan>> {
        Some(Box::new(Self(Vec::new())))
    }

    fn needs_body(&self, _: &Flow, _: &Parts) -> bool {
        false
    }

    fn connection(&self, _: &Arc<Flow>, _: Framing) -> Option<Box<dyn Scan>> {
        None
    }
}

impl Scan for Finds {
    fn push(&mut self, piece: &[u8]) -> Result<(), Reason> {
        self.0.extend_from_slice(piece);
        let found = memchr::memmem::find(&self.0, b"secret").is_some();
        if found { Err(Reason::SecretDetected) } else { Ok(()) }
    }

    fn trailers(&mut self, trailers: &HeaderMap) -> Result<(), Reason> {
        trailers.values().try_for_each(|value| self.push(value.as_bytes()))
    }

    fn end(&mut self) -> Result<(), Reason> {
        Ok(())
    }
}

#[tokio::test]
async fn secrets_are_found_in_bodies_and_in_trailers() {
    for rest in ["3\r\nsec\r\n3\r\nret\r\n0\r\n\r\n", "1\r\nx\r\n0\r\nX-Sum: secret\r\n\r\n"] {
        let mut world = World::guarded(Version::One, Finds(Vec::new())).await;
        world
            .ask(&format!(
                "POST / HTTP/1.1\r\nHost: a.example\r\nTrailer: x-sum\r\nTransfer-Encoding: chunked\r\n\r\n{rest}"
            ))
            .await;
        let (got, _) = world.got_all().await;
        assert!(got.starts_with("HTTP/1.1 403 ") && got.contains("secret-detected"), "{rest:?} {got:?}");
        let (heard, _) = world.heard_all().await;
        assert!(!heard.contains("ret") && !heard.contains("0\r\n"), "{rest:?} {heard:?}");
    }
}
