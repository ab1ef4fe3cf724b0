//! Answers as they are passed on: whole, in order and at once.

use redoma_audit::event::Visibility;
use tokio::io::AsyncWriteExt;

use super::world::{World, in_memory, read_to, world};
use crate::http::Version;

const GET: &str = "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";

/// What the client gets for this answer, without the date that we add.
async fn passed(request: &str, answer: &str, last: &str) -> String {
    let mut world = world(Version::One).await;
    world.ask(request).await;
    world.heard("\r\n\r\n").await;
    world.answer(answer).await;
    let got = world.got(last).await;
    // The connection goes on, so nothing was left over on either side.
    world.ask("GET /next HTTP/1.1\r\nHost: a.example\r\n\r\n").await;
    assert!(world.heard("\r\n\r\n").await.starts_with("GET /next "), "{answer:?}");
    world.answer("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext").await;
    assert!(world.got("next").await.starts_with("HTTP/1.1 200 OK\r\n"), "{answer:?}");
    got.lines().filter(|line| !line.to_ascii_lowercase().starts_with("date:")).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn answers_end_where_the_server_says() {
    let head = GET.replace("GET", "HEAD");
    for (request, answer, last, expected) in [
        (
            GET,
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
            "hi",
            "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
        ),
        (
            &head,
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
            "\r\n\r\n",
            "HTTP/1.1 200 OK\nContent-Length: 5\n",
        ),
        (&head, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "\r\n\r\n", "HTTP/1.1 200 OK\n"),
        (GET, "HTTP/1.1 204 No Content\r\n\r\n", "\r\n\r\n", "HTTP/1.1 204 No Content\n"),
        (
            GET,
            "HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n",
            "\r\n\r\n",
            "HTTP/1.1 304 Not Modified\nETag: x\n",
        ),
        (
            GET,
            "HTTP/1.1 418 Teapot Says No\r\nContent-Length: 0\r\n\r\n",
            "\r\n\r\n",
            "HTTP/1.1 418 Teapot Says No\nContent-Length: 0\n",
        ),
        (
            GET,
            "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            "\r\n\r\n",
            "HTTP/1.1 404 Not Found\ncontent-length: 0\n",
        ),
        (
            GET,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhi\r\n1\r\n!\r\n0\r\n\r\n",
            "0\r\n\r\n",
            "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nhi\n1\n!\n0\n",
        ),
        // Of two lengths, the client gets one.
        (
            GET,
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            "0\r\n\r\n",
            "HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n2\nhi\n0\n",
        ),
        // Cookies stay apart and in order.
        (
            GET,
            "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\nKeep-Alive: 5\r\n\r\n",
            "\r\n\r\n",
            "HTTP/1.1 200 OK\nSet-Cookie: a=1\nSet-Cookie: b=2\nContent-Length: 0\n",
        ),
    ] {
        assert_eq!(passed(request, answer, last).await, expected, "{answer:?}");
    }
}

#[tokio::test]
async fn trailers_pass_both_ways() {
    let mut world = world(Version::One).await;
    world
        .ask(
            "POST / HTTP/1.1\r\nHost: a.example\r\nTE: trailers\r\nTrailer: x-sum\r\nTransfer-Encoding: chunked\r\n\r\n\
             2\r\nhi\r\n0\r\nX-Sum: 1\r\n\r\n",
        )
        .await;
    let heard = world.heard("0\r\nx-sum: 1\r\n\r\n").await;
    assert!(heard.contains("\r\n\r\n2\r\nhi\r\n"), "{heard:?}");
    world
        .answer("HTTP/1.1 200 OK\r\nTrailer: x-sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nho\r\n0\r\nX-Sum: 2\r\n\r\n")
        .await;
    let got = world.got("0\r\nx-sum: 2\r\n\r\n").await;
    assert!(got.contains("\r\n\r\n2\r\nho\r\n"), "{got:?}");
}

#[tokio::test]
async fn an_answer_that_ends_with_the_connection_is_whole() {
    let mut world = world(Version::One).await;
    world.ask(GET).await;
    world.heard("\r\n\r\n").await;
    world.answer("HTTP/1.1 200 OK\r\n\r\nto the end").await;
    world.server = super::world::pair().await.0;
    let (got, in_order) = world.got_all().await;
    assert!(in_order && got.contains("to the end"), "{got:?}");
    assert!(got.ends_with("0\r\n\r\n") || got.ends_with("to the end"), "{got:?}");
}

#[tokio::test]
async fn connections_end_as_server_and_client_say() {
    let mut world = world(Version::One).await;
    world.ask("GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n").await;
    let heard = world.heard("\r\n\r\n").await;
    assert!(heard.to_ascii_lowercase().contains("connection: close"), "{heard:?}");
    world.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi").await;
    let (got, in_order) = world.got_all().await;
    assert!(
        in_order && got.ends_with("hi") && got.to_ascii_lowercase().contains("connection: close"),
        "{got:?}"
    );
}

#[tokio::test]
async fn events_arrive_one_by_one() {
    let mut world = world(Version::One).await;
    world.ask(GET).await;
    world.heard("\r\n\r\n").await;
    world.answer("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").await;
    world.got("\r\n\r\n").await;
    for _ in 0..3 {
        world.answer("data: x\n\n").await;
        // Nothing more comes before the client has it.
        world.got("data: x\n\n").await;
    }
}

#[tokio::test]
async fn a_body_that_waits_to_be_asked_for_waits() {
    let request = "POST / HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    let mut world = world(Version::One).await;
    world.ask(request).await;
    world.heard("\r\n\r\n").await;
    // The client hears nothing before the server speaks: the informational answer comes first, and alone.
    world.answer("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n").await;
    assert_eq!(world.got("\r\n\r\n").await, "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n");
    assert_eq!(world.got("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    world.ask("body").await;
    world.heard("body").await;
    world.answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await;
    assert!(world.got("\r\n\r\n").await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn a_server_that_wants_no_body_gets_none() {
    let request = "POST / HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    let mut world = world(Version::One).await;
    world.ask(request).await;
    world.heard("\r\n\r\n").await;
    world.answer("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n").await;
    let (got, _) = world.got_all().await;
    assert!(got.starts_with("HTTP/1.1 417 ") && !got.contains("100 Continue"), "{got:?}");
    assert_eq!(world.heard_all().await.0, "");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_knows_of_no_continuing_gets_the_body_after_a_moment() {
    let request = "POST / HTTP/1.1\r\nHost: a.example\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    let (mut client, mut server) = in_memory();
    client.write_all(request.as_bytes()).await.unwrap();
    read_to(&mut server, "\r\n\r\n").await;
    assert_eq!(read_to(&mut client, "\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"body").await.unwrap();
    read_to(&mut server, "body").await;
}

#[tokio::test]
async fn hints_come_before_the_answer() {
    let mut world = world(Version::One).await;
    world.ask(GET).await;
    world.heard("\r\n\r\n").await;
    world.answer("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nLink: </b>\r\n\r\n").await;
    assert_eq!(world.got("\r\n\r\n").await, "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\nlink: </b>\r\n\r\n");
    world.answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await;
    assert!(world.got("hi").await.starts_with("HTTP/1.1 200 OK\r\n"));
}

const UPGRADE: &str = "GET /socket HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive, Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n\r\n";
const SWITCHED: &str =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

#[tokio::test]
async fn websockets_pass_both_ways_and_end_as_one() {
    let mut world = world(Version::One).await;
    world.ask(UPGRADE).await;
    let heard = world.heard("\r\n\r\n").await.to_ascii_lowercase();
    assert!(
        heard.contains("connection: upgrade\r\n") && heard.contains("upgrade: websocket\r\n"),
        "{heard:?}"
    );
    // The first frame may come with the answer.
    world.answer(&format!("{SWITCHED}first")).await;
    let got = world.got("first").await;
    assert!(got.starts_with("HTTP/1.1 101 "), "{got:?}");
    for turn in 0..3 {
        world.ask(&format!("ask {turn}.")).await;
        assert_eq!(world.heard(".").await, format!("ask {turn}."));
        world.answer(&format!("answer {turn}.")).await;
        assert_eq!(world.got(".").await, format!("answer {turn}."));
    }
    drop(world.server);
    world.server = super::world::pair().await.0;
    assert_eq!(world.got_all().await, (String::new(), true));
    let (exchanges, flow) = world.told().await;
    assert_eq!((flow.visibility, flow.protocol.as_str()), (Visibility::Inspected, "websocket"));
    // When it began, and when it was over.
    assert_eq!(exchanges.len(), 2);
    assert!(exchanges[1].finished_us.is_some() && exchanges[1].status == Some(101));
}

#[tokio::test]
async fn what_a_websocket_sends_is_limited_as_a_body_is() {
    for limit in ["max_upload = \"100B\"", "max_upload_session = \"1KiB\""] {
        let rule = format!("{}{limit}\n", super::world::RULE);
        let mut world = World::new(Version::One, &rule, |_| {}).await;
        world.ask(UPGRADE).await;
        world.heard("\r\n\r\n").await;
        world.answer(SWITCHED).await;
        world.got("\r\n\r\n").await;
        world.ask(&"x".repeat(2000)).await;
        let (heard, _) = world.heard_all().await;
        assert_eq!(heard, "", "{limit}");
        let (_, flow) = world.told().await;
        assert_eq!((flow.visibility, flow.reason.as_str()), (Visibility::Blocked, "budget"));
    }
}

#[tokio::test]
async fn nobody_changes_the_protocol_unasked() {
    for request in
        [GET, &UPGRADE.replace("Upgrade: websocket", "Upgrade: h2c"), &UPGRADE.replace("GET", "POST")]
    {
        let mut world = world(Version::One).await;
        world.ask(request).await;
        let heard = world.heard("\r\n\r\n").await;
        assert!(!heard.contains("pgrade"), "{heard:?}");
        world.answer(&SWITCHED.replace("websocket", "h2c")).await;
        let (got, _) = world.got_all().await;
        assert!(!got.starts_with("HTTP/1.1 101"), "{got:?}");
    }
}
