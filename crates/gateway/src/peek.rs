//! What a connection speaks, by its first bytes.

use std::time::Duration;

use bytes::BytesMut;
use tokio::net::TcpStream;

use crate::tls::hello::{self, ClientHello, Peek};

/// What came first.
#[derive(Debug)]
pub(crate) enum First {
    /// A TLS client's first message.
    Tls(Box<ClientHello>),
    /// A request by HTTP/1.
    Http1,
    /// The beginning of HTTP/2 without TLS (RFC 9113, section 3.3).
    Http2,
    /// Something that a lenient server may take for TLS or HTTP, but that is not well-formed.
    Malformed,
    /// Something else.
    Other,
    /// The server spoke first.
    Server,
    /// Nothing: the client sends no more.
    Nothing,
}

impl First {
    /// The protocol's name in records; empty where it is not known.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Tls(_) => "tls",
            Self::Http1 => "http",
            Self::Http2 => "h2c",
            Self::Malformed | Self::Other | Self::Server | Self::Nothing => "",
        }
    }
}

/// As long as a request's first line may be; servers take no longer ones either.
const LONGEST_LINE: usize = 16 << 10;
/// Longer than any method that is registered.
const LONGEST_METHOD: usize = 24;
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How long a client has for the rest of what it began: less than people wait, more than a slow line takes.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads until it is clear what the client speaks. What was read stays in `buffer`. It can be dropped and called again.
///
/// Somebody who begins like HTTP or TLS and waits would go on when nobody looks any more, so that is malformed.
pub(crate) async fn first(client: &TcpStream, buffer: &mut BytesMut) -> std::io::Result<First> {
    loop {
        if let Some(first) = classify(buffer) {
            return Ok(first);
        }
        if buffer.is_empty() {
            client.readable().await?;
        } else if tokio::time::timeout(PATIENCE, client.readable()).await.is_err() {
            return Ok(First::Malformed);
        }
        match client.try_read_buf(buffer) {
            Ok(0) => return Ok(if buffer.is_empty() { First::Nothing } else { First::Other }),
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// The same where it only matters whether it is TLS.
pub(crate) async fn tls(client: &TcpStream, buffer: &mut BytesMut) -> std::io::Result<First> {
    if buffer.is_empty() {
        let mut byte = [0];
        if client.peek(&mut byte).await? > 0 && byte[0] != HANDSHAKE {
            return Ok(First::Other);
        }
    }
    first(client, buffer).await
}

/// What these first bytes are; none if more are needed to tell.
pub(crate) fn classify(bytes: &[u8]) -> Option<First> {
    match *bytes.first()? {
        HANDSHAKE => match hello::peek(bytes) {
            Peek::Incomplete => None,
            Peek::Hello(hello) => Some(First::Tls(Box::new(hello))),
            Peek::Malformed => Some(First::Malformed),
            Peek::NotTls => Some(First::Other),
        },
        _ if bytes.len() < HTTP2.len() && HTTP2.starts_with(bytes) => None,
        _ if bytes.starts_with(HTTP2) => Some(First::Http2),
        _ => http1(bytes),
    }
}

/// The content type of TLS handshake records (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;

/// A request line names its version at the end (RFC 9112, section 3). A line that does so in another way than it should, is
/// what one server takes for a request and another doesn't.
fn http1(bytes: &[u8]) -> Option<First> {
    let blank = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let method =
        bytes[blank..].iter().take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-').count();
    if blank > LONGEST_METHOD || method > LONGEST_METHOD {
        return Some(First::Other);
    }
    match bytes.get(blank + method) {
        None => None,
        Some(b' ' | b'\t') if method > 0 => {
            let line = &bytes[blank..];
            let end = memchr::memchr(b'\n', line);
            match end {
                None if line.len() > LONGEST_LINE => Some(First::Malformed),
                None => None,
                Some(end) => Some(request_line(&line[..end], blank > 0)),
            }
        }
        Some(_) => Some(First::Other),
    }
}

fn request_line(line: &[u8], after_blank: bool) -> First {
    let names_http = line.windows(5).any(|five| five.eq_ignore_ascii_case(b"http/"));
    let well_formed =
        line.strip_suffix(b"\r").unwrap_or(line).split(|byte| *byte == b' ').collect::<Vec<_>>();
    match well_formed[..] {
        [method, _, b"HTTP/1.1" | b"HTTP/1.0"] if !after_blank && method.iter().all(is_upper) => First::Http1,
        _ if names_http => First::Malformed,
        _ => First::Other,
    }
}

fn is_upper(byte: &u8) -> bool {
    byte.is_ascii_uppercase() || *byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(bytes: &[u8]) -> &'static str {
        match classify(bytes) {
            None => "more",
            Some(First::Tls(_)) => "tls",
            Some(First::Http1) => "http/1",
            Some(First::Http2) => "http/2",
            Some(First::Malformed) => "malformed",
            Some(First::Other) => "other",
            Some(First::Server | First::Nothing) => "nothing",
        }
    }

    #[test]
    fn protocols_show_in_their_first_bytes() {
        let expected: &[(&[u8], &str)] = &[
            (b"", "more"),
            (b"GET / HTTP/1.1\r\n", "http/1"),
            (b"M-SEARCH * HTTP/1.1\r\n", "http/1"),
            (b"GET /a b HTTP/1.1\r\n", "malformed"),
            (b"GET /", "more"),
            (b"get / HTTP/1.1\r\n", "malformed"),
            (b"\r\nGET / HTTP/1.1\r\n", "malformed"),
            (b"GET / http/1.1\n", "malformed"),
            (b"GET /\r\n", "other"),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "http/2"),
            (b"PRI * HTTP/2.0\r\n\r\nSM", "more"),
            (b"SSH-2.0-OpenSSH_9.2\r\n", "other"),
            (b"EHLO mail.example\r\n", "other"),
            (b"PING\r\n", "other"),
            (b"*1\r\n$4\r\nPING\r\n", "other"),
            (b"\0\0\0\x08\x04\xd2\x16\x2f", "other"),
            (b"\x16\x03\x01", "more"),
        ];
        for (bytes, expected) in expected {
            assert_eq!(name(bytes), *expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_line_without_end_is_not_waited_for() {
        let line = [b"GET /".to_vec(), vec![b'a'; LONGEST_LINE]].concat();
        assert_eq!(name(&line), "malformed");
        assert_eq!(name(&[b'A'; LONGEST_METHOD + 1]), "other");
        assert_eq!(name(&[b' '; LONGEST_METHOD + 1]), "other");
    }
}
