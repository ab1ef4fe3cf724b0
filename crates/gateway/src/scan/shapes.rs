//! Tokens and private keys, known by their shape. The tokens' table is the record's own (`redoma_audit`).

use std::collections::HashMap;

use data_encoding::BASE64;
use redoma_audit::{TokenShape, token_shapes};

use super::{Class, Judged, Spot};

/// Shapes by what they begin with.
pub(super) struct Shapes {
    by_start: HashMap<[u8; 3], Vec<Shape>>,
}

enum Shape {
    Token(&'static TokenShape),
    /// RFC 7468.
    Pem,
    /// The same in base64 once more, as Kubernetes keeps it.
    PemInBase64,
}

const PEM: &[u8] = b"-----BEGIN ";
/// What `-----BEGIN ` becomes.
const PEM_IN_BASE64: &[u8] = b"LS0tLS1CRUdJTi";
/// A label's longest.
const LABEL: usize = 40;
/// What is looked at of a key in base64: its label, and some of it.
const DECODED: usize = 144;
/// So much of a key's content tells it from a text about keys.
const CONTENT: usize = 20;
/// What may stand before the content (RFC 1421, RFC 4880).
const HEADERS: [&[u8]; 3] = [b"Proc-Type: ", b"Version: ", b"Comment: "];

// === impl Shapes ===

impl Shapes {
    pub(super) fn new(tokens: bool, keys: bool) -> Self {
        let mut shapes = Self { by_start: HashMap::new() };
        if tokens {
            token_shapes().for_each(|token| shapes.insert(token.prefix().as_bytes(), Shape::Token(token)));
        }
        if keys {
            shapes.insert(PEM, Shape::Pem);
            shapes.insert(PEM_IN_BASE64, Shape::PemInBase64);
        }
        shapes
    }

    fn insert(&mut self, prefix: &[u8], shape: Shape) {
        if let [one, two, three, ..] = *prefix {
            self.by_start.entry([one, two, three]).or_default().push(shape);
        }
    }

    pub(super) fn beginnings(&self) -> impl Iterator<Item = [u8; 3]> {
        self.by_start.keys().copied()
    }

    /// The first shape that fits; one that may still fit is waited for, so that pieces do not decide which it is.
    pub(super) fn judge(&self, spot: Spot<'_>) -> Judged {
        let [one, two, three, ..] = *spot.rest() else { return Judged::Nothing };
        let shapes = self.by_start.get(&[one, two, three]).into_iter().flatten();
        let mut judged = shapes.map(|shape| shape.judge(spot));
        judged.find(|judged| !matches!(judged, Judged::Nothing)).unwrap_or(Judged::Nothing)
    }
}

// === impl Shape ===

impl Shape {
    fn judge(&self, spot: Spot<'_>) -> Judged {
        match self {
            Self::Token(shape) => token(shape, spot),
            Self::Pem => key(spot.rest(), spot),
            Self::PemInBase64 => key_in_base64(spot),
        }
    }
}

/// Only so many bytes decide as there must be, so that nothing has to be waited for.
fn token(shape: &'static TokenShape, spot: Spot<'_>) -> Judged {
    let prefix = shape.prefix().as_bytes();
    let short = prefix.len() < 4;
    // Random base64 holds every four characters once in some megabytes; between `+` and `/` it has words, too.
    if prefix.len() < 5
        && !(spot.begins_word() && !spot.before().ends_with(b"+") && !spot.before().ends_with(b"/"))
    {
        return Judged::Nothing;
    }
    let rest = spot.rest();
    let (head, body) = rest.split_at(prefix.len().min(rest.len()));
    let body = &body[..shape.shortest_body().min(body.len())];
    if !prefix.starts_with(head) || !body.iter().all(|&byte| shape.can_hold(byte)) {
        return Judged::Nothing;
    }
    if body.len() < shape.shortest_body() {
        return spot.too_short();
    }
    // Names of classes and of files begin like the short ones; they have hardly any digits.
    let digits = body.iter().filter(|byte| byte.is_ascii_digit()).count();
    if (short && digits < 3) || !shape.is_random(body) || is_example(body) {
        return Judged::Nothing;
    }
    Judged::Found(Class::Token, shape.name().into(), format!("{}…", shape.prefix()))
}

/// What documentation shows: one letter again and again, or the word itself.
fn is_example(body: &[u8]) -> bool {
    let mut seen = [false; 256];
    body.iter().for_each(|&byte| seen[usize::from(byte)] = true);
    let different = seen.iter().filter(|seen| **seen).count();
    let upper = body.to_ascii_uppercase();
    let says = |word: &[u8]| upper.windows(word.len()).any(|part| part == word);
    different < 6 || says(b"EXAMPLE") || says(b"XXXX") || says(b"REDACTED") || says(b"PLACEHOLDER")
}

/// A header is in many texts about keys; a key has content behind it.
fn key(text: &[u8], spot: Spot<'_>) -> Judged {
    let Some(text) = text.strip_prefix(PEM) else {
        return if PEM.starts_with(text) { spot.too_short() } else { Judged::Nothing };
    };
    let label =
        text.iter().take(LABEL).take_while(|byte| byte.is_ascii_uppercase() || **byte == b' ').count();
    if label == text.len() {
        return spot.too_short();
    }
    let (label, text) = text.split_at(label);
    if !label.windows(11).any(|part| part == b"PRIVATE KEY") {
        return Judged::Nothing;
    }
    let text = match text.strip_prefix(b"-----") {
        Some(text) => text,
        None if b"-----".starts_with(text) => return spot.too_short(),
        None => return Judged::Nothing,
    };
    content(text, label, spot)
}

fn content(text: &[u8], label: &[u8], spot: Spot<'_>) -> Judged {
    // A line's end, also as strings write it.
    let ends = text.iter().take(12).take_while(|byte| b"\r\n\\rn\t ".contains(byte)).count();
    if ends == text.len() {
        return spot.too_short();
    }
    let text = &text[ends..];
    let heads = |head: &&[u8]| text.starts_with(head) || head.starts_with(text);
    let is_head = HEADERS.iter().find(|head| heads(head)).map(|head| text.len() >= head.len());
    let is_base64 = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let content = &text[..text.iter().take(CONTENT).take_while(is_base64).count()];
    let is_key = content.iter().any(u8::is_ascii_uppercase) && content.iter().any(u8::is_ascii_lowercase);
    match is_head {
        Some(false) => return spot.too_short(),
        _ if ends == 0 => return Judged::Nothing,
        Some(true) => {}
        None if content.len() == CONTENT && is_key => {}
        None if content.len() == text.len() && content.len() < CONTENT => return spot.too_short(),
        None => return Judged::Nothing,
    }
    let label = String::from_utf8_lossy(label).into_owned();
    Judged::Found(Class::PrivateKey, "private-key".into(), label)
}

fn key_in_base64(spot: Spot<'_>) -> Judged {
    let rest = spot.rest();
    let begins = rest.starts_with(PEM_IN_BASE64) || PEM_IN_BASE64.starts_with(rest);
    if !begins {
        return Judged::Nothing;
    }
    let is_base64 = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let length = rest.iter().take(DECODED).take_while(is_base64).count();
    if length == rest.len() && length < DECODED && !spot.ended {
        return Judged::Open;
    }
    let decoded = BASE64.decode(&rest[..length / 4 * 4]).unwrap_or_default();
    key(&decoded, Spot { ended: true, ..spot })
}
