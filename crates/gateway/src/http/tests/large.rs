//! Bodies that are larger than what anybody would hold.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::world::{SOON, world};
use crate::http::Version;

const LENGTH: usize = 256 << 20;
/// Socket buffers are not counted there, and ours are small.
const MOST_HELD: usize = 48 << 20;

/// What this process has in memory. See `proc_pid_status(5)`.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

async fn send(stream: &mut TcpStream) {
    let piece = vec![b'x'; 1 << 20];
    for _ in 0..LENGTH / piece.len() {
        stream.write_all(&piece).await.unwrap();
    }
}

/// Reads all of it, and how much was in memory at most.
async fn take(stream: &mut TcpStream) -> usize {
    let (mut piece, mut left, mut most) = (vec![0; 1 << 20], LENGTH, 0);
    while left > 0 {
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "{left} left");
        left -= read;
        most = most.max(resident());
    }
    most
}

#[tokio::test]
async fn memory_stays_flat_up_and_down() {
    let mut world = world(Version::One).await;
    let before = resident();
    world.ask(&format!("POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: {LENGTH}\r\n\r\n")).await;
    world.heard("\r\n\r\n").await;
    let ((), up) = tokio::join!(send(&mut world.client), take(&mut world.server));
    world.answer(&format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n")).await;
    world.got("\r\n\r\n").await;
    let ((), down) = tokio::join!(send(&mut world.server), take(&mut world.client));
    let held = up.max(down).saturating_sub(before);
    assert!(held < MOST_HELD, "{} MiB were held", held >> 20);
    let (exchanges, _) = world.told().await;
    let last = exchanges.last().unwrap();
    let (request, response) = (&last.request, last.response.as_ref().unwrap());
    assert_eq!((request.bytes, response.bytes), (LENGTH as u64, LENGTH as u64));
    assert!(request.digest.is_some() && request.digest == response.digest);
}

#[tokio::test]
async fn whoever_does_not_read_holds_up_whoever_sends() {
    let mut world = world(Version::One).await;
    world.ask(&format!("POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: {LENGTH}\r\n\r\n")).await;
    let before = resident();
    let stalled = tokio::time::timeout(Duration::from_secs(2), send(&mut world.client)).await;
    assert!(stalled.is_err(), "{LENGTH} bytes went somewhere");
    let held = resident().saturating_sub(before);
    assert!(held < MOST_HELD, "{} MiB were held", held >> 20);
    // And goes on when it is read.
    let more = tokio::time::timeout(SOON, async { world.server.read_exact(&mut vec![0; 16 << 20]).await });
    let (more, _) = tokio::join!(more, tokio::time::timeout(Duration::from_secs(1), send(&mut world.client)));
    assert!(more.unwrap().is_ok());
}
