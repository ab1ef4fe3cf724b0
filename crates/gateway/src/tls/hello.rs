//! A TLS client's first message (RFC 8446, section 4.1.2), read for what it says about the server that is wanted.

use redoma_policy::{Host, HostName};

use super::{HTTP1, HTTP2};

/// What the first bytes of a connection are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Peek {
    /// The beginning of a message.
    Incomplete,
    /// No TLS.
    NotTls,
    /// TLS, but no message that a server would take.
    Malformed,
    /// The whole message.
    Hello(ClientHello),
}

/// What a client says about the server that it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientHello {
    /// The name (RFC 6066, section 3).
    pub(crate) server_name: ServerName,
    /// The protocols it speaks, best first (RFC 7301).
    pub(crate) alpn: Vec<Vec<u8>>,
    /// Whether it says, or pretends to say, more in an encrypted one.
    pub(crate) encrypted: bool,
}

/// The name of the server that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerName {
    /// None was given.
    Absent,
    /// This one.
    Named(HostName),
    /// Something that is no name.
    Malformed,
}

/// Larger than any that a client sends; servers take no larger ones either.
const LARGEST: usize = 64 << 10;
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
/// RFC 8446, section 5.1.
const LARGEST_RECORD: usize = 1 << 14;

const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;

/// Looks at the first bytes of a connection.
pub(crate) fn peek(bytes: &[u8]) -> Peek {
    match message(bytes) {
        Message::Incomplete if bytes.len() > LARGEST => Peek::Malformed,
        Message::Incomplete => Peek::Incomplete,
        Message::NotTls => Peek::NotTls,
        Message::Malformed => Peek::Malformed,
        Message::Whole(message) => hello(&message).map_or(Peek::Malformed, Peek::Hello),
    }
}

enum Message {
    Incomplete,
    NotTls,
    Malformed,
    Whole(Vec<u8>),
}

/// The first handshake message, put together from the records that it is spread over.
fn message(bytes: &[u8]) -> Message {
    let mut rest = Reader(bytes);
    let mut message = Vec::new();
    loop {
        if let Some(length) = length_of(&message) {
            if length > LARGEST {
                return Message::Malformed;
            }
            if let Some(body) = message.get(4..4 + length) {
                return Message::Whole(body.to_vec());
            }
        }
        let first = message.is_empty();
        match rest.0 {
            [kind, ..] if *kind != HANDSHAKE => {
                return if first { Message::NotTls } else { Message::Malformed };
            }
            // The version is the one of TLS 1.0 or close, whatever is spoken.
            [_, major, ..] if *major != 3 => return if first { Message::NotTls } else { Message::Malformed },
            _ => {}
        }
        let mut record = Reader(rest.0);
        let Some(length) = record.skip(3).and_then(|()| record.u16()) else { return Message::Incomplete };
        let length = usize::from(length);
        if length == 0 || length > LARGEST_RECORD {
            return Message::Malformed;
        }
        let Some(part) = record.take(length) else {
            let kind = record.0.first().filter(|_| first);
            return if kind.is_some_and(|kind| *kind != CLIENT_HELLO) {
                Message::Malformed
            } else {
                Message::Incomplete
            };
        };
        message.extend_from_slice(part);
        if message.first() != Some(&CLIENT_HELLO) {
            return Message::Malformed;
        }
        rest = record;
    }
}

fn length_of(message: &[u8]) -> Option<usize> {
    let [_, a, b, c, ..] = message else { return None };
    Some(usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c))
}

fn hello(body: &[u8]) -> Option<ClientHello> {
    const RANDOM: usize = 32;
    let mut hello = ClientHello { server_name: ServerName::Absent, alpn: Vec::new(), encrypted: false };
    let mut body = Reader(body);
    body.skip(2 + RANDOM)?;
    body.short_list()?; // session
    body.list()?; // cipher suites
    body.short_list()?; // compression
    if body.0.is_empty() {
        return Some(hello);
    }
    let mut extensions = Reader(body.list()?);
    let mut seen = Vec::new();
    while !extensions.0.is_empty() {
        let kind = extensions.u16()?;
        let content = extensions.list()?;
        // Of two, one server reads the first and another the last.
        if seen.contains(&kind) {
            return None;
        }
        seen.push(kind);
        match kind {
            SERVER_NAME => hello.server_name = server_name(content),
            ALPN => hello.alpn = protocols(content)?,
            ENCRYPTED_CLIENT_HELLO => hello.encrypted = true,
            _ => {}
        }
    }
    body.0.is_empty().then_some(hello)
}

/// A list of names by kind, of which there is one kind and may be one of each.
fn server_name(content: &[u8]) -> ServerName {
    const HOST_NAME: u8 = 0;
    let name = || {
        let mut content = Reader(content);
        let mut names = Reader(content.list()?);
        let kind = names.u8()?;
        let name = names.list()?;
        (content.0.is_empty() && names.0.is_empty() && kind == HOST_NAME).then_some(name)
    };
    match name().map(HostName::from_bytes) {
        Some(Ok(name)) => ServerName::Named(name),
        _ => ServerName::Malformed,
    }
}

fn protocols(content: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut list = Reader(Reader(content).list()?);
    let mut protocols = Vec::new();
    while !list.0.is_empty() {
        protocols.push(list.short_list()?.to_vec());
    }
    Some(protocols)
}

/// What is left to read; `None` where it is too short.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn skip(&mut self, length: usize) -> Option<()> {
        self.take(length).map(drop)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// With its length in one byte.
    fn short_list(&mut self) -> Option<&'b [u8]> {
        let length = self.u8()?;
        self.take(length.into())
    }

    /// With its length in two bytes.
    fn list(&mut self) -> Option<&'b [u8]> {
        let length = self.u16()?;
        self.take(length.into())
    }
}

// === impl ClientHello ===

impl ClientHello {
    /// Whether the name is this host's. A client that connects to an address gives none.
    pub(crate) fn means(&self, host: &Host) -> bool {
        match (&self.server_name, host) {
            (ServerName::Absent, _) => true,
            (ServerName::Named(name), Host::Name(host)) => name == host,
            (ServerName::Named(_), Host::Address(_)) | (ServerName::Malformed, _) => false,
        }
    }

    /// The host that a certificate is expected for.
    pub(crate) fn name_or(&self, host: &Host) -> Host {
        match &self.server_name {
            ServerName::Named(name) => Host::Name(name.clone()),
            ServerName::Absent | ServerName::Malformed => host.clone(),
        }
    }

    /// The versions of HTTP that it speaks, best first; all protocols where it speaks no HTTP.
    pub(crate) fn protocols(&self) -> Vec<Vec<u8>> {
        let http = |protocol: &&Vec<u8>| [HTTP2, HTTP1].contains(&protocol.as_slice());
        if self.alpn.iter().any(|protocol| http(&protocol)) {
            self.alpn.iter().filter(http).cloned().collect()
        } else {
            self.alpn.clone()
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prefixed(length: usize, content: &[u8]) -> Vec<u8> {
        let size = content.len().to_be_bytes();
        [&size[size.len() - length..], content].concat()
    }

    fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &prefixed(2, content)].concat()
    }

    fn sni(name: &[u8]) -> Vec<u8> {
        extension(SERVER_NAME, &prefixed(2, &[&[0][..], &prefixed(2, name)].concat()))
    }

    fn alpn(protocols: &[&[u8]]) -> Vec<u8> {
        let list: Vec<u8> = protocols.iter().flat_map(|protocol| prefixed(1, protocol)).collect();
        extension(ALPN, &prefixed(2, &list))
    }

    fn handshake(extensions: &[Vec<u8>]) -> Vec<u8> {
        let body = [
            &[3, 3][..],
            &[7; 32],
            &prefixed(1, &[9; 32]),
            &prefixed(2, &[0x13, 0x01]),
            &prefixed(1, &[0]),
            &prefixed(2, &extensions.concat()),
        ];
        [&[CLIENT_HELLO][..], &prefixed(3, &body.concat())].concat()
    }

    fn records(handshake: &[u8], size: usize) -> Vec<u8> {
        handshake
            .chunks(size)
            .flat_map(|part| [&[HANDSHAKE, 3, 1][..], &prefixed(2, part)].concat())
            .collect()
    }

    fn named(name: &str) -> ServerName {
        ServerName::Named(name.parse().unwrap())
    }

    #[test]
    fn a_hello_says_what_is_wanted() {
        let extensions =
            [sni(b"A.Example."), alpn(&[b"h2", b"http/1.1"]), extension(ENCRYPTED_CLIENT_HELLO, &[0])];
        let Peek::Hello(hello) = peek(&records(&handshake(&extensions), 4096)) else { panic!() };
        assert_eq!(hello.server_name, named("a.example"));
        assert_eq!(hello.alpn, [b"h2".to_vec(), b"http/1.1".to_vec()]);
        assert!(hello.encrypted);
        assert!(hello.means(&"a.example".parse().unwrap()));
        assert!(!hello.means(&"b.example".parse().unwrap()));
        assert!(!hello.means(&"192.0.2.1".parse().unwrap()));
    }

    #[test]
    fn odd_names_mean_no_host() {
        let odd: &[Vec<u8>] = &[
            sni(b"a.example\0.b.example"),
            sni(b"192.0.2.1"),
            sni(b"::1"),
            sni(b""),
            sni("\u{430}.example".as_bytes()),
            extension(SERVER_NAME, &[]),
            extension(SERVER_NAME, &prefixed(2, &[&[0][..], b"\0\x01a", &[0][..], b"\0\x01b"].concat())),
        ];
        for extension in odd {
            let Peek::Hello(hello) = peek(&records(&handshake(std::slice::from_ref(extension)), 4096)) else {
                panic!()
            };
            assert_eq!(hello.server_name, ServerName::Malformed);
            assert!(!hello.means(&"a.example".parse().unwrap()));
        }
    }

    #[test]
    fn two_names_are_malformed() {
        assert_eq!(
            peek(&records(&handshake(&[sni(b"a.example"), sni(b"b.example")]), 4096)),
            Peek::Malformed
        );
    }

    #[test]
    fn other_things_are_told_apart() {
        let expected: &[(&[u8], Peek)] = &[
            (b"", Peek::Incomplete),
            (b"\x16", Peek::Incomplete),
            (b"\x16\x03", Peek::Incomplete),
            (b"\x16\x02\x01", Peek::NotTls),
            (b"GET / HTTP/1.1\r\n", Peek::NotTls),
            (b"\x80\x2e\x01\x03\x01", Peek::NotTls),
            (b"\x16\x03\x01\0\0", Peek::Malformed),
            (b"\x16\x03\x01\xff\xff", Peek::Malformed),
            (b"\x16\x03\x01\0\x05\x02", Peek::Malformed),
            (b"\x16\x03\x01\0\x04\x01\xff\xff\xff", Peek::Malformed),
        ];
        for (bytes, expected) in expected {
            assert_eq!(peek(bytes), *expected, "{}", bytes.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn a_hello_may_be_spread_and_comes_byte_by_byte(size in 1usize..200, cut in 0.0..1.0) {
            let whole = records(&handshake(&[sni(b"a.example"), alpn(&[b"h2"])]), size);
            let cut = (whole.len() as f64 * cut) as usize;
            prop_assert_eq!(peek(&whole[..cut]), Peek::Incomplete);
            prop_assert!(matches!(peek(&whole), Peek::Hello(hello) if hello.server_name == named("a.example")));
        }

        #[test]
        fn whatever_comes_is_classified(mut bytes: Vec<u8>, tls: bool) {
            if tls {
                bytes.splice(0..0, *b"\x16\x03\x01");
            }
            peek(&bytes);
        }

        #[test]
        fn a_changed_hello_is_classified(at in 0usize..150, to: u8) {
            let mut whole = records(&handshake(&[sni(b"a.example"), alpn(&[b"h2"])]), 4096);
            let at = at % whole.len();
            whole[at] = to;
            peek(&whole);
        }
    }
}
