//! Requests that two servers could read in two ways, or that are for somebody else.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use super::world::{RULE, World, in_memory, read_to, world};
use crate::http::Version;

const HOST: &str = "Host: a.example\r\n";

/// It gets this status, and the server never hears of it.
async fn refused(request: &str, status: &str, reason: &str) {
    let mut world = world(Version::One).await;
    world.ask(request).await;
    let (got, in_order) = world.got_all().await;
    assert!(in_order, "{request:?} {got:?}");
    assert!(got.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?} {got:?}");
    assert!(got.contains("redoma blocked a.example:80"), "{request:?} {got:?}");
    assert!(got.contains(&format!("redoma-reason: {reason}\r\n")), "{request:?} {got:?}");
    world.blocked(reason).await;
}

#[tokio::test]
async fn what_ends_in_two_ways_is_refused() {
    let fields = [
        "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Content-Length: 4, 4\r\n",
        "Content-Length: +4\r\n",
        "Content-Length: 0x4\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 4 4\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length:\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding : chunked\r\n",
        " Transfer-Encoding: chunked\r\n",
        "X: y\r\n Transfer-Encoding: chunked\r\n",
        "X: y\r\n\tfolded\r\n",
        "Content-Length\r\n",
        "Content\0-Length: 4\r\n",
        "X: a\0b\r\n",
        "X: a\rTransfer-Encoding: chunked\r\n",
        ": 4\r\n",
    ];
    for field in fields {
        let request = format!("POST / HTTP/1.1\r\n{HOST}{field}\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n");
        refused(&request, "400", "malformed").await;
    }
    let older = format!("POST / HTTP/1.0\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    refused(&older, "400", "malformed").await;
}

#[tokio::test]
async fn request_lines_have_one_reading() {
    for line in [
        "GET  / HTTP/1.1",
        "GET / HTTP/1.1 x",
        "GET /a b HTTP/1.1",
        "GET / HTTP/2.0",
        "GET / HTTP/1.2",
        "GET / http/1.1",
        "G\0T / HTTP/1.1",
        "GET /\0 HTTP/1.1",
        "GET",
    ] {
        refused(&format!("{line}\r\n{HOST}\r\n"), "400", "malformed").await;
    }
    for line in ["CONNECT a.example:80 HTTP/1.1", "CONNECT other.example:80 HTTP/1.1"] {
        refused(&format!("{line}\r\n{HOST}\r\n"), "400", "malformed").await;
    }
}

#[tokio::test]
async fn requests_are_for_the_host_that_was_decided_on() {
    for (target, fields) in [
        ("/", "Host: other.example\r\n"),
        ("/", "Host: a.example.other.example\r\n"),
        ("/", "Host: a.example:81\r\n"),
        ("/", "Host: a.example, other.example\r\n"),
        ("/", "Host: other.example@a.example\r\n"),
        ("/", "Host: a.example\r\nHost: other.example\r\n"),
        ("/", "Host: a.example\r\nHost: a.example\r\n"),
        ("/", "Host:\r\n"),
        ("/", ""),
        ("http://other.example/", "Host: a.example\r\n"),
        ("http://a.example/", "Host: other.example\r\n"),
        ("http://a.example@other.example/", "Host: a.example\r\n"),
        ("http://a.example:81/", "Host: a.example\r\n"),
    ] {
        refused(&format!("GET {target} HTTP/1.1\r\n{fields}\r\n"), "403", "host-mismatch").await;
    }
}

/// The server hears exactly one request, whose head is this.
async fn passed(request: &str, head: &str) {
    let mut world = world(Version::One).await;
    world.ask(request).await;
    let heard = world.heard("\r\n\r\n").await;
    assert_eq!(heard, head, "{request:?}");
    world.answer("HTTP/1.1 204 No Content\r\n\r\n").await;
    assert!(world.got("\r\n\r\n").await.contains(" 204 "));
    drop(world.client);
    let (heard, _) = super::world::rest(&mut world.server).await;
    assert_eq!(heard, "", "{request:?}");
}

#[tokio::test]
async fn what_passes_is_written_in_one_way() {
    for (request, head) in [
        // The usual spellings of the host, and the target as servers expect it.
        (
            "GET /a?b HTTP/1.1\r\nHost: A.EXAMPLE:80\r\n\r\n",
            "GET /a?b HTTP/1.1\r\nHost: A.EXAMPLE:80\r\n\r\n",
        ),
        (
            "GET http://a.example/a?b HTTP/1.1\r\nHost: a.example\r\n\r\n",
            "GET /a?b HTTP/1.1\r\nHost: a.example\r\n\r\n",
        ),
        // Bare line feeds end lines for some servers and for others do not.
        ("GET / HTTP/1.1\nHost: a.example\nX: y\n\n", "GET / HTTP/1.1\r\nHost: a.example\r\nX: y\r\n\r\n"),
        // What is for us, or for the next connection, goes no further.
        (
            "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n\
             Proxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\nX: y\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.example\r\nX: y\r\nTE: trailers\r\n\r\n",
        ),
        // Nobody takes away what says where it ends and for whom it is.
        (
            "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Host, Content-Length\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
        ),
        // No other protocol is changed to: it remains HTTP.
        (
            "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
             HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
        ),
        ("GET / HTTP/1.0\r\nHost: a.example\r\n\r\n", "GET / HTTP/1.0\r\nHost: a.example\r\n\r\n"),
    ] {
        passed(request, head).await;
    }
}

#[tokio::test]
async fn of_two_lengths_the_server_hears_one() {
    for fields in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
    ] {
        let mut world = world(Version::One).await;
        let smuggled = "GET /smuggled HTTP/1.1\r\nHost: a.example\r\n\r\n";
        world.ask(&format!("POST / HTTP/1.1\r\n{HOST}{fields}\r\n0\r\n\r\n{smuggled}")).await;
        let heard = world.heard("0\r\n\r\n").await;
        assert!(!heard.to_ascii_lowercase().contains("content-length"), "{heard:?}");
        world.answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
        world.got("\r\n\r\n").await;
        // What follows is not taken for a request any more.
        let (heard, _) = world.heard_all().await;
        assert_eq!(heard, "", "{fields:?}");
    }
}

#[tokio::test]
async fn pipelined_requests_are_judged_one_by_one() {
    let mut world = world(Version::One).await;
    let get = |path: &str, host: &str| format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    world.ask(&(get("/1", "a.example") + &get("/2", "a.example") + &get("/3", "other.example"))).await;
    for path in ["/1", "/2"] {
        assert!(world.heard("\r\n\r\n").await.starts_with(&format!("GET {path} ")));
        world.answer("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx").await;
        assert!(world.got("x").await.starts_with("HTTP/1.1 200 "));
    }
    let (got, in_order) = world.got_all().await;
    assert!(in_order && got.contains("redoma-reason: host-mismatch"), "{got:?}");
    let (exchanges, flow) = world.told().await;
    let statuses: Vec<_> = exchanges.iter().map(|exchange| (exchange.number, exchange.status)).collect();
    assert_eq!(statuses, [(0, Some(200)), (1, Some(200)), (2, Some(403))]);
    assert_eq!(flow.reason.as_str(), "host-mismatch");
}

#[tokio::test]
async fn heads_that_are_too_large_are_told_so() {
    // As long as we would pass on, as hyper would read, and longer.
    for kib in [120, 200, 2000] {
        let mut world = world(Version::One).await;
        let (mut client, rest) = (world.client, format!("X: {}\r\n\r\n", "x".repeat(kib << 10)));
        let (reader, mut writer) = client.split();
        let request = format!("GET / HTTP/1.1\r\n{HOST}{rest}");
        let sending = async {
            let _ = writer.write_all(request.as_bytes()).await;
        };
        if kib < 128 {
            sending.await;
            world.client = client;
            assert!(world.heard("\r\n\r\n").await.len() > kib << 10);
            continue;
        }
        let (_, got) = tokio::join!(sending, super::world::head(reader));
        assert!(got.starts_with("HTTP/1.1 431 ") && got.contains("redoma-reason: malformed"), "{got:?}");
        assert!(got.contains("redoma blocked a.example:80 (malformed): its head is"), "{got:?}");
        world.client = client;
        world.blocked("malformed").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_that_never_ends_is_given_up_and_an_idle_connection_is_not() {
    let (mut client, mut server) = in_memory();
    let began = Instant::now();
    for _ in 0..3 {
        tokio::time::advance(Duration::from_secs(300)).await;
        client.write_all(format!("GET / HTTP/1.1\r\n{HOST}\r\n").as_bytes()).await.unwrap();
        read_to(&mut server, "\r\n\r\n").await;
        // Answers may take their time as well.
        tokio::time::advance(Duration::from_secs(300)).await;
        server.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        assert!(read_to(&mut client, "\r\n\r\n").await.starts_with("HTTP/1.1 204 "));
    }
    assert_eq!(began.elapsed().as_secs(), 1800);
    client.write_all(b"GET / HTTP/1.1\r\nX:").await.unwrap();
    let (mut ended, mut sent) = (String::new(), 0);
    while sent < 100 && client.write_all(b"x").await.is_ok() {
        sent += 1;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    client.read_to_string(&mut ended).await.unwrap();
    assert_eq!(ended, "");
    assert!((60..=61).contains(&sent), "{sent}");
}

#[tokio::test]
async fn methods_and_paths_are_limited_by_the_rule() {
    let reason = |line: &str| if line.starts_with("GET") { "path" } else { "method" };
    let rule = format!("{RULE}methods = [\"GET\"]\npaths = [\"/a/**\"]\n");
    for (line, status) in [
        ("POST /a/b", "403"),
        ("GET /b", "403"),
        ("GET /a/../b", "400"),
        ("GET /a/%2e%2e/b", "400"),
        ("OPTIONS *", "403"),
    ] {
        let mut world = World::new(Version::One, &rule, |_| {}).await;
        world.ask(&format!("{line} HTTP/1.1\r\n{HOST}\r\n")).await;
        let (got, _) = world.got_all().await;
        assert!(got.starts_with(&format!("HTTP/1.1 {status} ")), "{line} {got:?}");
        world.blocked(if status == "400" { "malformed" } else { reason(line) }).await;
    }
    let mut world = World::new(Version::One, &rule, |_| {}).await;
    world.ask(&format!("HEAD /a/b HTTP/1.1\r\n{HOST}\r\n")).await;
    assert!(world.heard("\r\n\r\n").await.starts_with("HEAD /a/b "));
}
