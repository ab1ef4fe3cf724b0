//! The table of `data/secrets.txt`, read once.

use std::sync::LazyLock;

static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::parse(include_str!("../../data/secrets.txt")));

/// The built-in table.
pub(super) fn rules() -> &'static Rules {
    &RULES
}

/// The rules by kind.
#[derive(Default)]
pub(super) struct Rules {
    pub(super) tokens: Vec<Token>,
    names: Vec<Name>,
    kept: Vec<&'static str>,
    /// Which two bytes a prefix can start with: nearly all positions of nearly all texts stop here.
    pairs: Pairs,
}

/// A token known by its prefix, or by its entropy alone.
pub struct Token {
    pub(super) name: &'static str,
    pub(super) prefix: String,
    pub(super) alphabet: ByteSet,
    pub(super) min: usize,
    pub(super) entropy: f64,
    issued: bool,
}

/// A word that announces a secret.
pub(super) struct Name {
    pub(super) word: &'static str,
    pub(super) to_line_end: bool,
}

// === impl Rules ===

impl Rules {
    fn parse(table: &'static str) -> Self {
        let mut rules = Self::default();
        for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut fields = line.split_ascii_whitespace();
            // A line that does not fit is caught by the test below, not by a user.
            let _ = rules.add(fields.next(), &mut fields);
        }
        rules
    }

    fn add(&mut self, kind: Option<&str>, fields: &mut dyn Iterator<Item = &'static str>) -> Option<()> {
        match kind? {
            kind @ ("token" | "guess") => {
                let token = Token::parse(kind == "token", fields)?;
                self.pairs.insert(token.prefix.as_bytes());
                self.tokens.push(token);
            }
            "name" => self.names.push(Name { word: fields.next()?, to_line_end: false }),
            "header" => self.names.push(Name { word: fields.next()?, to_line_end: true }),
            "keep" => {
                let prefix = fields.next()?;
                self.pairs.insert(prefix.as_bytes());
                self.kept.push(prefix);
            }
            _ => return None,
        }
        Some(())
    }

    /// The rule whose prefix `rest` starts with and whose body follows, and the length of both.
    pub(super) fn prefixed(&self, rest: &str, word_start: bool) -> Option<(&'static str, usize)> {
        if !self.pairs.contains(rest.as_bytes()) {
            return None;
        }
        self.tokens.iter().find_map(|token| {
            let fits = !token.prefix.is_empty() && (word_start || token.prefix.len() >= 4);
            let body = rest.strip_prefix(&token.prefix).filter(|_| fits)?;
            Some((token.name, token.prefix.len() + token.body_len(body)?))
        })
    }

    /// The rule for a token without a known prefix that is random enough, and its length.
    pub(super) fn random(&self, rest: &str) -> Option<(&'static str, usize)> {
        let token = self.tokens.iter().find(|token| token.prefix.is_empty())?;
        let body = rest.as_bytes().iter().take_while(|&&byte| token.alphabet.contains(byte));
        let body = &rest.as_bytes()[..body.count()];
        let has = |is: fn(&u8) -> bool| body.iter().any(is);
        let random = body.len() >= token.min
            && has(u8::is_ascii_digit)
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_lowercase)
            && entropy(body) >= token.entropy
            && !self.is_kept(rest);
        random.then_some((token.name, body.len()))
    }

    pub(super) fn is_kept(&self, rest: &str) -> bool {
        self.pairs.contains(rest.as_bytes()) && self.kept.iter().any(|prefix| rest.starts_with(prefix))
    }

    /// The word in `name` that announces a secret. Case, `-` and `_` do not matter.
    pub(super) fn names_secret(&self, name: &str) -> Option<&Name> {
        let plain: String =
            name.chars().filter(|c| !matches!(c, '-' | '_')).map(|c| c.to_ascii_lowercase()).collect();
        self.names.iter().find(|name| plain.contains(name.word))
    }
}

// === impl Token ===

impl Token {
    /// What kind of token it is.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// What it begins with.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// How many bytes follow the prefix at least.
    #[must_use]
    pub fn shortest_body(&self) -> usize {
        self.min
    }

    /// Whether a byte can follow the prefix.
    #[must_use]
    pub fn can_hold(&self, byte: u8) -> bool {
        self.alphabet.contains(byte)
    }

    /// Whether `body` is as random as such a token's is.
    #[must_use]
    pub fn is_random(&self, body: &[u8]) -> bool {
        entropy(body) >= self.entropy
    }

    /// Whether an issuer chose the prefix, so that what starts with it is nothing else.
    pub(super) fn is_issued(&self) -> bool {
        self.issued
    }

    fn parse(issued: bool, fields: &mut dyn Iterator<Item = &'static str>) -> Option<Self> {
        let (name, prefix, alphabet) = (fields.next()?, fields.next()?, fields.next()?);
        let prefix = if prefix == "-" { String::new() } else { prefix.replace("\\s", " ") };
        let (min, entropy) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Self { name, prefix, alphabet: ByteSet::named(alphabet)?, min, entropy, issued })
    }

    fn body_len(&self, body: &str) -> Option<usize> {
        let length = body.bytes().take_while(|&byte| self.alphabet.contains(byte)).count();
        (length >= self.min && entropy(&body.as_bytes()[..length]) >= self.entropy).then_some(length)
    }
}

/// Shannon entropy in bits for each byte.
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    for &byte in bytes {
        counts[usize::from(byte)] += 1;
    }
    let total = bytes.len() as f64;
    counts
        .iter()
        .filter(|&&count| count > 0)
        .map(|&count| f64::from(count) / total)
        .map(|p| -p * p.log2())
        .sum()
}

/// A set of the first two bytes of prefixes.
struct Pairs(Vec<u64>);

impl Default for Pairs {
    fn default() -> Self {
        Self(vec![0; 1 << 10])
    }
}

impl Pairs {
    fn insert(&mut self, prefix: &[u8]) {
        if let [one, two, ..] = *prefix {
            let pair = usize::from(one) << 8 | usize::from(two);
            self.0[pair >> 6] |= 1 << (pair & 63);
        }
    }

    fn contains(&self, rest: &[u8]) -> bool {
        let [one, two, ..] = *rest else { return false };
        let pair = usize::from(one) << 8 | usize::from(two);
        self.0[pair >> 6] & 1 << (pair & 63) != 0
    }
}

/// A set of bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct ByteSet([u64; 4]);

impl ByteSet {
    fn named(name: &str) -> Option<Self> {
        let is: fn(u8) -> bool = match name {
            "hex" => |byte| byte.is_ascii_hexdigit(),
            "upper" => |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            "alnum" => |byte| byte.is_ascii_alphanumeric(),
            "word" => |byte| byte.is_ascii_alphanumeric() || byte == b'_',
            "url" => |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            "dotted" => |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            "base64" => {
                |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+' | b'/' | b'=')
            }
            _ => return None,
        };
        let mut set = Self::default();
        (0..=u8::MAX).filter(|&byte| is(byte)).for_each(|byte| set.insert(byte));
        Some(set)
    }

    fn insert(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    pub(super) fn contains(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] & 1 << (byte & 63) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_rule_with_a_reason() {
        let table = include_str!("../../data/secrets.txt");
        for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut fields = line.split_ascii_whitespace();
            assert!(Rules::default().add(fields.next(), &mut fields).is_some(), "{line}");
            assert!(fields.next().is_some(), "no reason: {line}");
        }
    }

    #[test]
    fn entropy_is_bits_for_each_byte() {
        assert!(entropy(b"aaaa").abs() < 1e-9);
        assert!((entropy(b"abcd") - 2.0).abs() < 1e-9);
    }
}
