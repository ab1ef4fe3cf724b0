//! One pass over a text, left to right, that finds secrets.

use super::Secret;
use super::rules::{Name, Rules};

pub(super) struct Scan<'a> {
    text: &'a str,
    rules: &'static Rules,
}

// === impl Scan ===

impl<'a> Scan<'a> {
    pub(super) fn new(text: &'a str, rules: &'static Rules) -> Self {
        Self { text, rules }
    }

    /// The secrets, in order and apart from each other.
    pub(super) fn secrets(&self) -> Vec<Secret> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.text.len() {
            if !self.text.is_char_boundary(at) {
                at += 1;
                continue;
            }
            match self.secret_at(at) {
                Some(secret) => {
                    at = secret.at.end;
                    found.push(secret);
                }
                None => at += self.step(at),
            }
        }
        found
    }

    /// How far to go on: past a public hash, which would look random from its second character on.
    fn step(&self, at: usize) -> usize {
        let rest = &self.text[at..];
        if self.rules.is_kept(rest) {
            return rest
                .find(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ','))
                .unwrap_or(rest.len())
                .max(1);
        }
        1
    }

    fn secret_at(&self, at: usize) -> Option<Secret> {
        let rest = &self.text[at..];
        let word_start = !self.text[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
        match rest.as_bytes()[0] {
            b'=' => self.assigned(at),
            b':' => self.url_password(at).or_else(|| self.assigned(at)),
            b'-' if rest.starts_with("-----BEGIN ") => {
                pem(rest).map(|end| secret("private-key", at, at + end))
            }
            _ => self.token(at, word_start),
        }
    }

    fn token(&self, at: usize, word_start: bool) -> Option<Secret> {
        let rest = &self.text[at..];
        let random = || if word_start { self.rules.random(rest) } else { None };
        let (name, length) = self.rules.prefixed(rest, word_start).or_else(random)?;
        Some(secret(name, at, at + length))
    }

    /// The value after `NAME=` or `NAME:` when the name announces a secret.
    fn assigned(&self, at: usize) -> Option<Secret> {
        let name = self.rules.names_secret(name_before(&self.text[..at]))?;
        let after = &self.text[at + 1..];
        let value = after.trim_start_matches([' ', '\t', '=', ':']);
        let start = self.text.len() - value.len();
        let (open, length) = value_len(value, name);
        let inner = &value[open..open + length];
        let harmless = inner.is_empty() || inner.starts_with('$') || value[open..].starts_with("[redacted ");
        (!harmless).then(|| secret(name.word, start + open, start + open + length))
    }

    /// The password in `scheme://user:password@host`, or a long token in place of the user.
    fn url_password(&self, at: usize) -> Option<Secret> {
        let authority = self.text[at..].strip_prefix("://")?;
        let authority =
            &authority[..authority.find(['/', '?', '#', '"', '\'', ' ', '\n']).unwrap_or(authority.len())];
        let user_info = &authority[..authority.rfind('@')?];
        let (start, length) = match user_info.split_once(':') {
            Some((user, password)) => (user.len() + 1, password.len()),
            // `git@` is no secret; forty characters of token are.
            None => (0, if user_info.len() >= 16 { user_info.len() } else { 0 }),
        };
        let start = at + "://".len() + start;
        let harmless = length == 0 || self.text[start..].starts_with("[redacted ");
        (!harmless).then(|| secret("url-password", start, start + length))
    }
}

fn secret(name: &'static str, start: usize, end: usize) -> Secret {
    Secret { name, at: start..end }
}

/// The identifier that ends where an assignment stands, whatever quote or space is between.
fn name_before(text: &str) -> &str {
    let text = text.trim_end_matches([' ', '"', '\'']);
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    &text[text.trim_end_matches(is_part).len()..]
}

/// Where a value begins behind its quote, and how long it is.
fn value_len(value: &str, name: &Name) -> (usize, usize) {
    if let Some(quote) = value.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        return (1, value[1..].find(quote).unwrap_or(value.len() - 1));
    }
    let ends: fn(char) -> bool = if name.to_line_end {
        |c| matches!(c, '\n' | '\r' | '"' | '\'')
    } else {
        |c| c.is_whitespace() || matches!(c, '"' | '\'' | '&' | ';' | ',' | '}' | ')')
    };
    (0, value.find(ends).unwrap_or(value.len()))
}

/// The length of a private key in PEM (RFC 7468); one whose end is missing goes to the end of the text.
fn pem(rest: &str) -> Option<usize> {
    let label = rest["-----BEGIN ".len()..].split('-').next()?;
    if !label.ends_with("PRIVATE KEY") {
        return None;
    }
    let Some(end) = rest.find("-----END ") else { return Some(rest.len()) };
    let tail = &rest[end + "-----END ".len()..];
    Some(rest.len() - tail.len() + tail.find("-----").map_or(tail.len(), |dashes| dashes + "-----".len()))
}
