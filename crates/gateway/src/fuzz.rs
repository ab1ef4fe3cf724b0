//! What the fuzz targets feed: each takes any bytes.

use crate::dns::{self, Names};
use crate::tls::hello::{self, Peek};

/// A connection's first bytes: what a prefix is taken for does not change when more comes.
pub fn first_bytes(bytes: &[u8]) {
    let whole = hello::peek(bytes);
    let _ = crate::peek::classify(bytes);
    let half = hello::peek(&bytes[..bytes.len() / 2]);
    let settled = !matches!(half, Peek::Incomplete | Peek::Malformed);
    assert!(!settled || half == whole, "{half:?} became {whole:?}");
}

/// A question for a name; what is answered is an answer to it.
pub fn question(bytes: &[u8]) {
    let names = Names::default();
    let opinion = |_: &redoma_policy::HostName| dns::Opinion {
        verdict: redoma_audit::event::Verdict::Allow,
        rule: String::new(),
    };
    if let Some(answer) = dns::answer(bytes, &names, &opinion).bytes {
        assert!(answer.len() >= 12 && answer[..2] == bytes[..2] && answer[2] & 0x80 != 0);
    }
}

/// What a client says to the proxy.
pub fn proxy(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let Ok(runtime) = runtime else { return };
    let mut client = tokio::io::join(bytes, tokio::io::sink());
    let _ = runtime.block_on(crate::proxy::greet(&mut client));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn whatever_comes_first_is_told_apart(mut bytes: Vec<u8>, begins in 0usize..4) {
            bytes.splice(0..0, [&b""[..], b"\x16\x03\x01", b"GET ", b"PRI * "][begins].iter().copied());
            super::first_bytes(&bytes);
        }

        #[test]
        fn whatever_is_asked_is_answered_or_dropped(bytes: Vec<u8>) {
            super::question(&bytes);
        }

        #[test]
        fn whatever_is_said_to_the_proxy_ends(mut bytes: Vec<u8>, begins in 0usize..3) {
            bytes.splice(0..0, [&b""[..], b"\x05\x01\x00\x05\x01\x00", b"CONNECT "][begins].iter().copied());
            super::proxy(&bytes);
        }
    }
}
