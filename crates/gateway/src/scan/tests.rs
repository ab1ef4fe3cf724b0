//! What is found and what is not, in whatever pieces.

use std::io::Write;
use std::sync::Arc;

use data_encoding::{BASE64, BASE64URL, HEXLOWER};
use proptest::prelude::*;
use redoma_policy::{LeakAction, Leaks};

use super::decode::Undecodable;
use super::*;
use crate::secrets::Secret;

const VALUE: &str = "sk-ant-api03-Qm7/x\"T2v+Zk9pLw4sRd8fYh3jNb6";

fn everything() -> Leaks {
    let block = LeakAction::Block;
    Leaks { decoys: block, private_keys: block, tokens: block, personal: block }
}

fn scanner() -> Scanner {
    let known =
        |name: &str, class, value: &str| Known { name: name.into(), class, value: Secret::new(value.into()) };
    let known = [
        known("API_KEY", Class::Placeholder, VALUE),
        known("DB", Class::Decoy, "postgres://ab12cd34ef56"),
        known("PIN", Class::Decoy, "1234"),
    ];
    Scanner::new(&known, &everything())
}

fn names(text: &str) -> Vec<String> {
    scanner().all(text.as_bytes()).into_iter().map(|finding| finding.name.into_owned()).collect()
}

/// What should be found, by what is found of it.
const FOUND: &[(&str, &str)] = &[
    ("aws-access-key", "key = AKIAQ3EGRTWPLM5KX7ZN;"),
    ("github-token", "ghp_16C7e42F292c6912E7710c838347Ae178B4a"),
    ("github-token", "{\"t\":\"github_pat_11ABCDEFG0q8Zr5TyUiOpA_sDfGhJk\"}"),
    ("anthropic-key", "sk-ant-api03-Zt9Qw8Er7Ty6Ui5Op4As3Df2"),
    ("openrouter-key", "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"),
    ("api-key", "key: sk-7f3c9a1b5d2e8f4a6c0b9d1e3f5a7c2b"),
    ("google-key", "AIzaSyD3f8Gh2Jk9Lm4Np6Qr1St5Uv7Wx0Yz2Ab"),
    ("npm-token", "//r/:_authToken=npm_a8K2mZ7qR4tV9xB3nL6pW1sD5fG0hJ2kQ4eT"),
    ("private-key", "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQ"),
    ("private-key", r#"{"k":"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC"}"#),
    ("private-key", "-----BEGIN RSA PRIVATE KEY-----\r\nProc-Type: 4,ENCRYPTED\r\n"),
    (
        "private-key",
        "client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVBdzZqOFRtS3FQUm9z",
    ),
    ("visa", "card 4539 5787 6362 1486 exp"),
    ("visa", "\"4539578763621486\""),
    ("amex", "3714-496353-98456"),
    ("elo", "6362970000457013"),
    ("cpf", "CPF 529.982.247-25"),
    ("cpf", "\"cpf\": \"52998224725\""),
    ("cnpj", "33.000.167/0001-01"),
    ("cnpj", "cnpj=33000167000101&x"),
    ("cnpj", "A1.B2C.3D4/0001-93"),
    ("telephone", "tel: +55 11 91234-5678"),
    ("telephone", "ligue (11) 91234-5678 ok"),
    ("telephone", "\"+4930901820123\""),
    ("e-mail", "from maria.silva@empresa.com.br, today"),
    ("e-mail", "<x@uni-bonn.de>"),
];

#[test]
fn what_must_not_leave_is_found() {
    for (name, text) in FOUND {
        assert_eq!(names(text), [*name], "{text}");
    }
}

/// What looks like it and is none.
const NOT_FOUND: &[&str] = &[
    "0f8fad5b-d9cb-469f-a165-70867728950e 6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "commit 0123456789abcdef0123456789abcdef01234567",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  file",
    "\"integrity\": \"sha512-aB3dE5gH7jK9mN2pQ4sT6vW8xY1zC0fG3hJ5kL7nM9qR2tU4wX6yZ8bD1eF0iA==\"",
    "h1:4111111111111111aaaa+Zk= go.sum 4539578763621486abc",
    "1733011200 1733011200000 1733011200000000 1733011200000000000 2026-12-01T10:12:00.123456Z 20261201101200",
    "0.4539578763621486 -3.4539578763621486e10 x=1.4539578763621486",
    "!function(e,t){for(var n=e.sk-1,r=0;r<n;r++)t[r]=e.AKIA?e.ghp_:0}(a,b),c=function(){return d[4539578763621487]};",
    ".sk-folding-cube .sk-circle-fade-dot1 .sk-chasing-dot{animation:sk-bounce 2.0s}",
    "task-force-and-a-long-name-with-dashes disk-encryption-set-name-of-mine",
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlc2lnbmF0dXJl",
    "AKIAIOSFODNN7EXAMPLE ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx sk-ant-api03-XXXXXXXXXXXXXXXXXXXXXXXX",
    "AKIA ghp_short sk-ant-api03- npm_config_registry hf_transfer_enabled_in_this_environment",
    "if text.startswith('-----BEGIN PRIVATE KEY-----'): # or \"-----BEGIN RSA PRIVATE KEY-----\"",
    "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----\nyour private key goes right here",
    "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJRTES",
    "4111 1111 1111 1111 4242424242424242 5555-5555-5555-4444 0000 0000 0000 0000",
    "id 4503599627370495 9007199254740991 4294967296 18446744073709551615 4539-5787-6362-1487",
    "52998224725 52998224726 529.982.247-26 111.111.111-11 000.000.000-00 123.456.789-09 cpf 12345678900",
    "11.222.333/0001-81 12.ABC.345/01DE-35 00.000.000/0000-00 11222333000181 33000167000101",
    "192.168.100.200/24 10.000.000-11 2001:db8::1 1.2.3.4/32 v1.22.333/4444-55",
    "\n+1700000000\n+        return 1234567890;\n@@ -1203,45 +1203,45 @@ a+4930901820123",
    "+1 (555) 010-0123 (00) 91234-5678 f(11) (12) 3456",
    "git@github.com:a/b.git ssh://git@example.org me@example.com root@build.internal icon@2x.png @scope/pkg@1.2.3",
    "https://user:pw@host.tld/ 1234+ab@users.noreply.github.com lib@4.17.21.js postgres@localhost a@b @Override.java",
    "getty@tty1.service user@1000.service x = matrix@other.T",
    "1234 the pin is too short to be looked for",
];

#[test]
fn what_only_looks_like_it_is_not_found() {
    for text in NOT_FOUND {
        assert_eq!(names(text), Vec::<String>::new(), "{text}");
    }
}

/// The value in the ways that a body may have it.
fn encoded(value: &str) -> Vec<String> {
    let json = serde_json::Value::from(value).to_string();
    let form: String = value
        .bytes()
        .map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect();
    vec![
        value.to_owned(),
        BASE64.encode(value.as_bytes()),
        BASE64.encode(format!("a{value}b").as_bytes()),
        BASE64.encode(format!("ab{value}").as_bytes()),
        BASE64URL.encode(format!("user:{value}").as_bytes()),
        HEXLOWER.encode(value.as_bytes()),
        form.replace("%2F", "%2f").replace("%2B", "%2b"),
        form,
        json.replace('/', "\\/"),
        json,
    ]
}

#[test]
fn known_values_are_found_as_encodings_write_them() {
    for text in encoded(VALUE) {
        assert!(names(&format!("x={text}&y")).contains(&"API_KEY".to_owned()), "{text}");
    }
    assert_eq!(names("postgres://ab12cd34ef56"), ["DB"]);
}

#[test]
fn a_finding_names_and_does_not_repeat() {
    for (_, text) in FOUND {
        for finding in scanner().all(text.as_bytes()) {
            let told = format!("{finding:?}");
            let longest = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.len() > 12);
            longest.for_each(|word| assert!(!told.contains(word), "{told}"));
        }
    }
    let finding = &scanner().all(b"abc ghp_16C7e42F292c6912E7710c838347Ae178B4a")[0];
    assert_eq!((finding.offset, finding.excerpt.as_str()), (4, "ghp_…"));
}

#[test]
fn what_is_off_is_not_looked_for() {
    let off = LeakAction::Off;
    let leaks = Leaks { decoys: off, private_keys: off, tokens: off, personal: off };
    let decoy = Known { name: "D".into(), class: Class::Decoy, value: Secret::new(VALUE.into()) };
    let scanner = Scanner::new(&[decoy], &leaks);
    assert!(scanner.is_idle());
    FOUND.iter().for_each(|(_, text)| assert_eq!(scanner.all(text.as_bytes()), []));
    let placeholder = Known { name: "P".into(), class: Class::Placeholder, value: Secret::new(VALUE.into()) };
    assert_eq!(
        Scanner::new(&[placeholder], &leaks).all(VALUE.as_bytes()).len(),
        1,
        "not the policy's to let go"
    );
}

#[test]
fn a_known_value_is_found_in_the_piece_that_completes_it() {
    let (scanner, mut stream) = (scanner(), Stream::new());
    let (most, last) = VALUE.split_at(VALUE.len() - 1);
    assert_eq!(stream.push(&scanner, most.as_bytes()), []);
    assert_eq!(stream.push(&scanner, last.as_bytes()).len(), 1);
}

#[test]
fn memory_does_not_grow_with_the_text() {
    let (scanner, mut stream) = (scanner(), Stream::new());
    for piece in ["-----BEGIN ", "LS0tLS1CRUdJTi", "sk-ant-api03-", "1234 ", "@", VALUE] {
        for _ in 0..2000 {
            stream.push(&scanner, piece.as_bytes());
        }
        assert!(stream.held() < 1024, "{piece}: {}", stream.held());
    }
}

// === what is encoded ===

fn compressed(encoding: &str, text: &[u8]) -> Vec<u8> {
    let fast = flate2::Compression::fast();
    match encoding {
        "gzip" => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), fast);
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        }
        "deflate" => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), fast);
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        }
        "br" => {
            let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 3, 20);
            encoder.write_all(text).unwrap();
            encoder.into_inner()
        }
        _ => zstd::encode_all(text, 1).unwrap(),
    }
}

fn through(mut decoder: Decoder, body: &[u8], piece: usize) -> Result<Vec<String>, Undecodable> {
    let mut found = Vec::new();
    for piece in body.chunks(piece) {
        found.extend(decoder.push(piece)?);
    }
    found.extend(decoder.end()?);
    Ok(found.into_iter().map(|finding| finding.name.into_owned()).collect())
}

#[test]
fn compressed_bodies_are_looked_into() {
    let scanner = Arc::new(scanner());
    let text = format!("{}{VALUE}{}", "before ".repeat(5000), " after".repeat(5000));
    for encoding in ["gzip", "deflate", "br", "zstd"] {
        let body = compressed(encoding, text.as_bytes());
        for piece in [1, 7, 4096, body.len()] {
            let decoder = Decoder::for_encoding(encoding, &scanner, &body).unwrap().unwrap();
            assert_eq!(
                through(decoder, &body, piece),
                Ok(vec!["API_KEY".to_owned()]),
                "{encoding} by {piece}"
            );
        }
    }
    let mut bare = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    bare.write_all(text.as_bytes()).unwrap();
    let bare = bare.finish().unwrap();
    let decoder = Decoder::for_encoding("deflate", &scanner, &bare).unwrap().unwrap();
    assert_eq!(through(decoder, &bare, 100), Ok(vec!["API_KEY".to_owned()]));
    let file = compressed("gzip", text.as_bytes());
    assert_eq!(
        through(Decoder::for_file(&file, &scanner).unwrap().unwrap(), &file, 100),
        Ok(vec!["API_KEY".to_owned()])
    );
    assert!(
        Decoder::for_encoding("compress", &scanner, b"").unwrap().is_none()
            && Decoder::for_file(b"text", &scanner).unwrap().is_none()
    );
}

#[test]
fn what_cannot_be_decoded_is_told_and_a_bomb_is_stopped() {
    let scanner = Arc::new(scanner());
    for encoding in ["gzip", "deflate", "br", "zstd"] {
        let decoder = Decoder::for_encoding(encoding, &scanner, b"x").unwrap().unwrap();
        assert_eq!(
            through(decoder, b"\xffthis is no such thing at all, is it", 100),
            Err(Undecodable::Broken),
            "{encoding}"
        );
    }
    let bomb = compressed("gzip", &vec![b'0'; 24 << 20]);
    let decoder = Decoder::for_encoding("gzip", &scanner, &bomb).unwrap().unwrap();
    assert_eq!(through(decoder, &bomb, 4096), Err(Undecodable::Bomb));
}

#[test]
fn forms_are_read() {
    let scanner = Arc::new(scanner());
    let form: String = VALUE.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let form = format!("a=b+c&d=%&e=%4&f={form}%");
    for piece in 1..8 {
        let found = through(Decoder::for_form(&scanner), form.as_bytes(), piece);
        assert_eq!(found, Ok(vec!["API_KEY".to_owned()]), "{piece}");
    }
    assert_eq!(percent_decoded(b"%41%+%4g%7e"), b"A% %4g~");
}

// === pieces ===

/// Whatever something reacts to, whole and in parts.
fn texts() -> impl Strategy<Value = String> {
    let whole = prop::sample::select(
        FOUND
            .iter()
            .map(|(_, text)| (*text).to_owned())
            .chain(NOT_FOUND.iter().map(|text| (*text).to_owned()))
            .chain(encoded(VALUE))
            .collect::<Vec<_>>(),
    );
    let part = (whole.clone(), any::<prop::sample::Index>()).prop_map(|(text, at)| {
        let at = text.char_indices().map(|(at, _)| at).nth(at.index(text.chars().count())).unwrap_or(0);
        text[..at].to_owned()
    });
    prop::collection::vec(prop_oneof![whole, part, "[ -~\n]{0,12}"], 0..6).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn pieces_change_nothing(text in texts(), cuts in prop::collection::vec(1usize..60, 1..40)) {
        let scanner = scanner();
        let mut whole = scanner.all(text.as_bytes());
        let (mut stream, mut found, mut rest) = (Stream::new(), Vec::new(), text.as_bytes());
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*cut).min(rest.len()));
            found.extend(stream.push(&scanner, piece));
            rest = after;
        }
        found.extend(stream.end(&scanner));
        whole.sort();
        found.sort();
        prop_assert_eq!(whole, found);
    }

    #[test]
    fn any_bytes_are_looked_at(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        scanner().all(&bytes);
    }

    #[test]
    fn a_value_is_found_wherever_it_stands(before in "[ -~]{0,200}", after in "[ -~]{0,200}") {
        let found = names(&format!("{before}{VALUE}{after}"));
        prop_assert!(found.contains(&"API_KEY".to_owned()));
    }
}

// === speed ===

/// Text as agents send it: code, with names, numbers and quotes.
fn code(length: usize) -> Vec<u8> {
    include_str!("stream.rs")
        .bytes()
        .chain(include_str!("personal/table.rs").bytes())
        .cycle()
        .take(length)
        .collect()
}

/// Bytes in a second, the best of some: the machine has other work.
fn speed(scanner: &Scanner, text: &[u8]) -> f64 {
    let once = |_| {
        let (begun, mut stream) = (std::time::Instant::now(), Stream::new());
        text.chunks(16 << 10).for_each(|piece| assert_eq!(stream.push(scanner, piece), []));
        text.len() as f64 / begun.elapsed().as_secs_f64()
    };
    (0..9).map(once).fold(0.0, f64::max)
}

#[test]
#[ignore = "needs an optimised build and a quiet machine"]
fn a_gigabyte_a_second_is_looked_at() {
    let known = (0..20).map(|n| Known {
        name: format!("K{n}"),
        class: Class::Decoy,
        value: Secret::new(HEXLOWER.encode(&blake3::hash(&[n]).as_bytes()[..20])),
    });
    let known: Vec<Known> = known.collect();
    let usual = Scanner::new(&known, &Leaks::default());
    let personal = Scanner::new(&known, &everything());
    let code = code(32 << 20);
    let mut random = vec![0; 24 << 20];
    blake3::Hasher::new().finalize_xof().fill(&mut random);
    let base64 = BASE64.encode(&random).into_bytes();
    let speeds =
        [speed(&usual, &code), speed(&usual, &base64), speed(&personal, &code)].map(|speed| speed / 1e9);
    assert!(speeds[0] > 1.0 && speeds[1] > 1.0 && speeds[2] > 0.2, "GB/s: {speeds:.2?}");
}
