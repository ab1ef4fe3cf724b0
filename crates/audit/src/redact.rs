//! Secrets taken out of a text before it is written.
//!
//! This is the last net, not the first: real credentials do not enter a sandbox at all. It looks at each text by itself, so a secret
//! that is split, encoded or encrypted first gets through; a rule with a name beats the guess by entropy.

mod rules;
mod scan;

use std::borrow::Cow;
use std::ops::Range;

pub use rules::Token as TokenShape;
use rules::rules;
use scan::Scan;

/// `text` without the secrets that were recognised, each replaced by `[redacted NAME]`.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let found = Scan::new(text, rules()).secrets();
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for Secret { name, at } in found {
        out.push_str(&text[done..at.start]);
        out.push_str(&marker(name));
        done = at.end;
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// The tokens that issuers gave a shape of their own, for those who look for them elsewhere. Where several fit, the first
/// is meant.
pub fn token_shapes() -> impl Iterator<Item = &'static TokenShape> {
    rules().tokens.iter().filter(|token| token.is_issued())
}

/// What stands in place of a secret.
pub(crate) fn marker(name: &str) -> String {
    format!("[redacted {name}]")
}

/// Whether the argument after this one is a secret, as after `--password`.
pub(crate) fn announces_secret(argument: &str) -> bool {
    argument.starts_with('-') && !argument.contains(['=', ' ']) && rules().names_secret(argument).is_some()
}

/// A secret and where it stands.
struct Secret {
    name: &'static str,
    at: Range<usize>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_rule_finds_a_token_made_for_it() {
        let alphabet = "aB3dE5gH7jK9mN2pQ4sT6vW8xY1zC0fG3hJ5kL7nM9qR2tU4wX6yZ8bD1eF0iA2cS4oP6uV8lI";
        for rule in &rules().tokens {
            let body: String = alphabet
                .chars()
                .filter(|&c| rule.alphabet.contains(c as u8))
                .cycle()
                .take(rule.min.max(48))
                .collect();
            let text = format!("x {}{body} y", rule.prefix);
            let out = redact(&text);
            assert!(out.starts_with("x [redacted ") && out.ends_with(" y"), "{}: {out}", rule.name);
        }
    }

    #[test]
    fn assignments_headers_and_addresses_lose_their_values() {
        for (text, expected) in [
            ("DB_PASSWORD=hunter2 make", "DB_PASSWORD=[redacted password] make"),
            ("password: 'hun ter2'", "password: '[redacted password]'"),
            (r#"{"api_key": "abc", "n": 1}"#, r#"{"api_key": "[redacted apikey]", "n": 1}"#),
            ("--client-secret=abc", "--client-secret=[redacted secret]"),
            ("a?access_token=abc&b=1", "a?access_token=[redacted token]&b=1"),
            ("Authorization: Negotiate YII= x", "Authorization: [redacted authorization]"),
            ("X: Bearer abcdefgh1", "X: [redacted bearer]"),
            ("https://me:pw@host/p", "https://me:[redacted url-password]@host/p"),
            ("https://0123456789abcdef0@host/p", "https://[redacted url-password]@host/p"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nz",
                "[redacted private-key]\nz",
            ),
            ("-----BEGIN PRIVATE KEY-----\nMII", "[redacted private-key]"),
        ] {
            assert_eq!(redact(text), expected);
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "ssh://git@github.com/a/b.git",
            "git checkout 0123456789abcdef0123456789abcdef01234567",
            "target/debug/deps/redoma_audit-0f1e2d3c4b5a69788796a5b4c3d2e1f0.d",
            "/home/Alice/Projects/Redoma2/node_modules/@babel/core9/lib/transformation/normalizeFile.js",
            "TOKEN=$TOKEN",
            "TOKEN=",
            "task-force-and-a-long-name-with-dashes",
            "sha512-aB3dE5gH7jK9mN2pQ4sT6vW8xY1zC0fG3hJ5kL7nM9qR2tU4wX6yZ8bD1eF0iA==",
            "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
            "-----BEGIN PUBLIC KEY-----",
            "a: b = c",
        ] {
            assert_eq!(redact(text), text);
        }
    }

    #[test]
    fn an_announcement_is_a_flag_with_a_telling_name() {
        assert!(
            announces_secret("--password") && announces_secret("--API-Key") && announces_secret("-token")
        );
        assert!(
            !announces_secret("password") && !announces_secret("--token=a") && !announces_secret("--output")
        );
    }

    proptest! {
        #[test]
        fn a_planted_secret_never_comes_out(before in NOISE, secret in "AKIA[A-Z0-9]{16}|ghp_[a-zA-Z0-9]{36}", after in NOISE) {
            let text = format!("{before} {secret} {after}");
            prop_assert!(!redact(&text).contains(&secret), "{}", redact(&text));
        }

        #[test]
        fn what_stands_around_a_secret_stays(before in "[a-z /]{0,30}", after in "[a-z /]{0,30}") {
            let text = format!("{before} AKIAIOSFODNN7EXAMPLE {after}");
            prop_assert_eq!(redact(&text).into_owned(), format!("{before} [redacted aws-access-key] {after}"));
        }
    }

    /// Whatever the scanner reacts to, in any order.
    const NOISE: &str = "([a-z=:'\"$ ]|password|token|cookie|Bearer |://|@|-----BEGIN |sha512-|\\PC){0,30}";
}
