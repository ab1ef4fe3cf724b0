//! Clients that were told to use a proxy: HTTP (RFC 9110, section 9.3.6, and absolute-form) and SOCKS 5 (RFC 1928).
//!
//! What is asked for becomes a target and is treated like any captured connection. The client hears at once that it may
//! speak: what is refused is told by an answer inside.

use std::io;

use bytes::{Buf, BytesMut};
use redoma_policy::{Authority, Host};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::Target;

/// What a client asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) target: Target,
    /// What the client said already to its target.
    pub(crate) already: BytesMut,
    /// Whether what follows may be for others: then the connection is good for one request.
    pub(crate) one_request: bool,
}

const SOCKS5: u8 = 5;
const LONGEST_HEAD: usize = 64 << 10;

/// Hears what a client wants and answers it.
pub(crate) async fn greet<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) -> io::Result<Asked> {
    let mut buffer = BytesMut::new();
    more(stream, &mut buffer).await?;
    if buffer[0] == SOCKS5 { socks(stream, buffer).await } else { http(stream, buffer).await }
}

async fn more<S: AsyncRead + Unpin>(stream: &mut S, buffer: &mut BytesMut) -> io::Result<()> {
    match stream.read_buf(buffer).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ if buffer.len() > LONGEST_HEAD => Err(io::ErrorKind::InvalidData.into()),
        _ => Ok(()),
    }
}

async fn http<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, mut buffer: BytesMut) -> io::Result<Asked> {
    let end = loop {
        match memchr::memmem::find(&buffer, b"\r\n\r\n") {
            Some(end) => break end + 4,
            None => more(stream, &mut buffer).await?,
        }
    };
    let line = buffer[..end].split(|byte| *byte == b'\r').next().unwrap_or_default();
    let Some(asked) = request_target(line) else {
        stream.write_all(BAD_REQUEST).await?;
        return Err(io::ErrorKind::InvalidData.into());
    };
    match asked {
        Wanted::Tunnel(target) => {
            buffer.advance(end);
            stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
            Ok(Asked { target, already: buffer, one_request: false })
        }
        Wanted::Request(target) => Ok(Asked { target, already: buffer, one_request: true }),
    }
}

const BAD_REQUEST: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n\r\n\
    This is Redoma's proxy: it takes CONNECT host:port and http:// URLs.\n";

enum Wanted {
    Tunnel(Target),
    Request(Target),
}

fn request_target(line: &[u8]) -> Option<Wanted> {
    const HTTP: u16 = 80;
    let line = std::str::from_utf8(line).ok()?;
    let [method, target, "HTTP/1.1" | "HTTP/1.0"] = line.split(' ').collect::<Vec<_>>()[..] else {
        return None;
    };
    if method == "CONNECT" {
        let Authority { host, port } = target.parse().ok()?;
        return Some(Wanted::Tunnel(Target { host, port: port? }));
    }
    let uri: http::Uri = target.parse().ok()?;
    let authority = uri.authority().filter(|_| uri.scheme_str() == Some("http"))?;
    let Authority { host, port } = authority.as_str().parse().ok()?;
    Some(Wanted::Request(Target { host, port: port.unwrap_or(HTTP) }))
}

async fn socks<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, mut buffer: BytesMut) -> io::Result<Asked> {
    const NO_AUTHENTICATION: u8 = 0;
    const NONE_ACCEPTABLE: u8 = 0xff;
    need(stream, &mut buffer, 2).await?;
    let methods = usize::from(buffer[1]);
    need(stream, &mut buffer, 2 + methods).await?;
    let method =
        if buffer[2..2 + methods].contains(&NO_AUTHENTICATION) { NO_AUTHENTICATION } else { NONE_ACCEPTABLE };
    buffer.advance(2 + methods);
    stream.write_all(&[SOCKS5, method]).await?;
    match socks_request(stream, &mut buffer).await? {
        Ok(target) => {
            stream.write_all(&reply(SUCCEEDED)).await?;
            Ok(Asked { target, already: buffer, one_request: false })
        }
        Err(code) => {
            stream.write_all(&reply(code)).await?;
            Err(io::ErrorKind::InvalidData.into())
        }
    }
}

const SUCCEEDED: u8 = 0;
const GENERAL_FAILURE: u8 = 1;
const COMMAND_NOT_SUPPORTED: u8 = 7;
const ADDRESS_NOT_SUPPORTED: u8 = 8;

fn reply(code: u8) -> [u8; 10] {
    const IPV4: u8 = 1;
    [SOCKS5, code, 0, IPV4, 0, 0, 0, 0, 0, 0]
}

async fn socks_request<S: AsyncRead + Unpin>(
    stream: &mut S,
    buffer: &mut BytesMut,
) -> io::Result<Result<Target, u8>> {
    const CONNECT: u8 = 1;
    need(stream, buffer, 5).await?;
    let [version, command, _, kind, first] = [buffer[0], buffer[1], buffer[2], buffer[3], buffer[4]];
    let length = match kind {
        1 => 4,
        3 => 1 + usize::from(first),
        4 => 16,
        _ => return Ok(Err(ADDRESS_NOT_SUPPORTED)),
    };
    need(stream, buffer, 4 + length + 2).await?;
    let address = buffer.split_to(4 + length).split_off(4);
    let port = buffer.get_u16();
    if (version, command) != (SOCKS5, CONNECT) {
        return Ok(Err(COMMAND_NOT_SUPPORTED));
    }
    let host = match kind {
        1 => <[u8; 4]>::try_from(&address[..]).ok().map(|octets| Host::from(std::net::IpAddr::from(octets))),
        4 => <[u8; 16]>::try_from(&address[..]).ok().map(|octets| Host::from(std::net::IpAddr::from(octets))),
        _ => Host::from_bytes(&address[1..]).ok(),
    };
    Ok(host.map(|host| Target { host, port }).ok_or(GENERAL_FAILURE))
}

async fn need<S: AsyncRead + Unpin>(stream: &mut S, buffer: &mut BytesMut, length: usize) -> io::Result<()> {
    while buffer.len() < length {
        more(stream, buffer).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client that says this hears, and what it is taken to ask for.
    async fn hear(said: &[u8]) -> (io::Result<Asked>, Vec<u8>) {
        let (mut client, mut server) = tokio::io::duplex(1 << 17);
        client.write_all(said).await.unwrap();
        client.shutdown().await.unwrap();
        let asked = greet(&mut server).await;
        drop(server);
        let mut heard = Vec::new();
        client.read_to_end(&mut heard).await.unwrap();
        (asked, heard)
    }

    fn target(host: &str, port: u16) -> Target {
        Target { host: host.parse().unwrap(), port }
    }

    #[tokio::test]
    async fn a_tunnel_is_to_where_it_says() {
        let (asked, heard) = hear(b"CONNECT A.example:443 HTTP/1.1\r\nHost: b.example\r\n\r\nhello").await;
        let asked = asked.unwrap();
        assert_eq!(asked.target, target("a.example", 443));
        assert_eq!(&asked.already[..], b"hello");
        assert!(heard.starts_with(b"HTTP/1.1 200"));
    }

    #[tokio::test]
    async fn a_request_for_a_url_is_kept_whole_and_alone() {
        let said = b"GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\n\r\n";
        let (asked, heard) = hear(said).await;
        let asked = asked.unwrap();
        assert_eq!((asked.target, asked.one_request), (target("a.example", 80), true));
        assert_eq!(&asked.already[..], said);
        assert!(heard.is_empty());
    }

    #[tokio::test]
    async fn what_is_no_proxy_request_is_refused() {
        for said in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET https://a.example/ HTTP/1.1\r\n\r\n",
            "CONNECT a.example HTTP/1.1\r\n\r\n",
            "CONNECT a.example:99999 HTTP/1.1\r\n\r\n",
            "CONNECT u:p@a.example:443 HTTP/1.1\r\n\r\n",
            "CONNECT 0x7f.1:443 HTTP/1.1\r\n\r\n",
            "CONNECT a.example:443  HTTP/1.1\r\n\r\n",
        ] {
            let (asked, heard) = hear(said.as_bytes()).await;
            assert!(asked.is_err(), "{said}");
            assert!(heard.starts_with(b"HTTP/1.1 400"), "{said}");
        }
    }

    #[tokio::test]
    async fn socks_takes_names_and_addresses() {
        let greeting = b"\x05\x01\x00";
        let requests: [(&[u8], Target); 3] = [
            (b"\x05\x01\x00\x03\x09a.example\x01\xbbhi", target("a.example", 443)),
            (b"\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50hi", target("127.0.0.1", 80)),
            (b"\x05\x01\x00\x04\0\0\0\0\0\0\0\0\0\0\xff\xff\x0a\0\0\x01\x00\x50hi", target("10.0.0.1", 80)),
        ];
        for (request, expected) in requests {
            let (asked, heard) = hear(&[greeting, request].concat()).await;
            let asked = asked.unwrap();
            assert_eq!(asked.target, expected);
            assert_eq!(&asked.already[..], b"hi");
            assert_eq!(&heard[..4], b"\x05\x00\x05\x00");
        }
    }

    #[tokio::test]
    async fn socks_refuses_what_is_no_connection_to_a_host() {
        let requests: [(&[u8], u8); 4] = [
            (b"\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50", COMMAND_NOT_SUPPORTED),
            (b"\x05\x03\x00\x01\x7f\x00\x00\x01\x00\x50", COMMAND_NOT_SUPPORTED),
            (b"\x05\x01\x00\x03\x05a\0b.c\x01\xbb", GENERAL_FAILURE),
            (b"\x05\x01\x00\x09\x05aaaa", ADDRESS_NOT_SUPPORTED),
        ];
        for (request, code) in requests {
            let (asked, heard) = hear(&[b"\x05\x01\x00", request].concat()).await;
            assert!(asked.is_err());
            assert_eq!(heard[3], code);
        }
        // Only with a password.
        let (asked, heard) = hear(b"\x05\x01\x02").await;
        assert!(asked.is_err());
        assert_eq!(heard, [5, 0xff]);
    }
}
