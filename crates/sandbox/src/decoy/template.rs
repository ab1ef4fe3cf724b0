//! Fills the templates of `data/decoys.toml`.

use data_encoding::BASE64;

use super::Canary;
use super::draw::{self, Draw};

/// The text with every `{{…}}` drawn, and the canaries among them.
pub(super) fn fill(template: &str, draw: &mut Draw) -> (Vec<u8>, Vec<Canary>) {
    let (mut content, mut canaries) = (String::new(), Vec::new());
    let mut rest = template;
    while let Some((before, placeholder, after)) = split(rest) {
        content.push_str(before);
        match placeholder {
            "openssh-key" => key(&mut content, &mut canaries, "OPENSSH PRIVATE KEY", &openssh(draw)),
            "pem-key" => key(&mut content, &mut canaries, "PRIVATE KEY", &pkcs8(draw)),
            random => value(&mut content, &mut canaries, random, draw),
        }
        rest = after;
    }
    content.push_str(rest);
    (content.into_bytes(), canaries)
}

fn split(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("{{")?;
    let (placeholder, after) = rest.split_once("}}")?;
    Some((before, placeholder, after))
}

fn value(content: &mut String, canaries: &mut Vec<Canary>, placeholder: &str, draw: &mut Draw) {
    let mut parts = placeholder.split(':');
    let alphabet = alphabet(parts.next().unwrap_or_default());
    let length = parts.next().and_then(|length| length.parse().ok()).unwrap_or(0);
    let value = draw.text(alphabet, length);
    content.push_str(&value);
    if let Some(name) = parts.next() {
        canaries.push(Canary { name: name.to_owned(), value });
    }
}

fn alphabet(name: &str) -> &'static [u8] {
    match name {
        "upper" => draw::UPPER,
        "lower" => draw::LOWER,
        "digit" => draw::DIGIT,
        "hex" => draw::HEX,
        "base64" => draw::BASE64,
        "urlsafe" => draw::URLSAFE,
        _ => draw::ALNUM,
    }
}

/// RFC 7468, with lines of 70 characters as ssh-keygen writes them. The canary is a line from the secret's midst.
fn key(content: &mut String, canaries: &mut Vec<Canary>, label: &str, der: &[u8]) {
    let body = BASE64.encode(der);
    let lines: Vec<&str> =
        body.as_bytes().chunks(70).map(|line| std::str::from_utf8(line).unwrap_or("")).collect();
    content.push_str(&format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n")));
    if let Some(line) = lines.get(lines.len() / 2) {
        canaries.push(Canary { name: label.to_lowercase().replace(' ', "_"), value: (*line).to_owned() });
    }
}

/// An unencrypted Ed25519 key as OpenSSH's PROTOCOL.key lays it out. The halves do not fit: it can sign nothing.
fn openssh(draw: &mut Draw) -> Vec<u8> {
    let public: [u8; 32] = draw.bytes();
    let secret: [u8; 32] = draw.bytes();
    let check: [u8; 4] = draw.bytes();
    let public_blob = [string(b"ssh-ed25519"), string(&public)].concat();
    let mut private = [check, check].concat();
    private.extend(
        [public_blob.clone(), string(&[secret, public].concat()), string(b"user@localhost")].concat(),
    );
    for pad in 1.. {
        if private.len().is_multiple_of(8) {
            break;
        }
        private.push(pad);
    }
    let head = [string(b"none"), string(b"none"), string(b""), 1_u32.to_be_bytes().to_vec()].concat();
    [b"openssh-key-v1\0".to_vec(), head, string(&public_blob), string(&private)].concat()
}

/// RFC 4251: a length in four bytes, then the bytes.
fn string(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [length.to_be_bytes().as_slice(), bytes].concat()
}

/// RFC 8410: an Ed25519 private key in PKCS #8.
fn pkcs8(draw: &mut Draw) -> Vec<u8> {
    let head =
        [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
    [head.as_slice(), &draw.bytes::<32>()].concat()
}
