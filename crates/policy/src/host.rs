//! Host names, parsed in one place: the policy, the resolver and the dialler all use these types.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A DNS name (RFC 1123, plus `_` as it occurs in practice): ASCII, lower case, no trailing dot, at most 253 bytes.
///
/// A name with letters beyond ASCII must be written in its `xn--` form (RFC 5891), so that what is compared is what
/// is dialled and no look-alike can hide. A name whose last label is a number is refused: resolvers would read it
/// as an address (inet_aton(3) accepts `127.1`, `0x7f.1` and `017700000001`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);

/// Which hosts a rule means.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum HostPattern {
    /// `example.com`: this name only.
    Exact(HostName),
    /// `*.example.com`: what lies below the name, not the name.
    Subdomains(HostName),
    /// `example.com,*.example.com`: both.
    Tree(HostName),
    /// One address, in its usual spelling.
    Address(IpAddr),
}

/// Why a host was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a host: {problem}", text.escape_debug())]
pub struct InvalidHost {
    /// As written.
    pub text: String,
    /// What is wrong with it.
    pub problem: &'static str,
}

// === impl HostName ===

impl HostName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this name lies strictly below `parent`, label by label.
    #[must_use]
    pub fn is_below(&self, parent: &Self) -> bool {
        self.0.strip_suffix(parent.as_str()).is_some_and(|front| front.len() > 1 && front.ends_with('.'))
    }
}

impl FromStr for HostName {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        let name = text.strip_suffix('.').unwrap_or(text);
        match problem_of(name) {
            Some(problem) => Err(InvalidHost { text: text.to_owned(), problem }),
            None => Ok(Self(name.to_ascii_lowercase())),
        }
    }
}

/// What is wrong with a name, if anything.
fn problem_of(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("it is empty");
    }
    if !name.is_ascii() {
        return Some("write names beyond ASCII in their `xn--` form");
    }
    if name.len() > 253 {
        return Some("a name has at most 253 characters");
    }
    if let Some(problem) = name.bytes().find_map(character_problem) {
        return Some(problem);
    }
    if let Some(problem) = name.split('.').find_map(label_problem) {
        return Some(problem);
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    let number = last.bytes().all(|b| b.is_ascii_digit()) || last.to_ascii_lowercase().starts_with("0x");
    number.then_some("it looks like an address in an unusual spelling; write `192.0.2.1` or `2001:db8::1`")
}

fn character_problem(byte: u8) -> Option<&'static str> {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => None,
        0 | b'\r' | b'\n' | b'\t' | b' ' => Some("spaces and control characters have no place in a name"),
        b'%' => Some("percent-encoding has no place in a name"),
        b'@' => Some("leave out the user name"),
        b'/' | b'?' | b'#' => Some("give the host alone, without scheme or path"),
        b'[' | b']' | b':' => Some("give ports in `ports`, and addresses without brackets or zone"),
        b'*' => Some("`*` may stand only in front, as in `*.example.com`"),
        _ => Some("a name has letters, digits, `-` and `.`"),
    }
}

fn label_problem(label: &str) -> Option<&'static str> {
    match label {
        "" => Some("two dots in a row, or one in front"),
        label if label.len() > 63 => Some("a label has at most 63 characters"),
        label if label.starts_with('-') || label.ends_with('-') => {
            Some("a label neither begins nor ends with `-`")
        }
        _ => None,
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for HostName {
    type Error = InvalidHost;

    fn try_from(text: String) -> Result<Self, InvalidHost> {
        text.parse()
    }
}

impl From<HostName> for String {
    fn from(name: HostName) -> Self {
        name.0
    }
}

// === impl HostPattern ===

impl HostPattern {
    /// Whether the pattern means a host as a client asked for it. What is no well-formed host matches nothing.
    #[must_use]
    pub fn matches(&self, host: &str) -> bool {
        match self {
            Self::Address(address) => canonical_address(host) == Some(*address),
            Self::Exact(name) => parsed(host).is_some_and(|host| host == *name),
            Self::Subdomains(name) => parsed(host).is_some_and(|host| host.is_below(name)),
            Self::Tree(name) => parsed(host).is_some_and(|host| host == *name || host.is_below(name)),
        }
    }

    /// Whether every host that `other` means is meant by this pattern too.
    #[must_use]
    pub fn contains(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(own), Self::Exact(name)) => own == name,
            (Self::Subdomains(own), Self::Exact(name)) => name.is_below(own),
            (Self::Subdomains(own), Self::Subdomains(name)) => name == own || name.is_below(own),
            (Self::Subdomains(own), Self::Tree(name)) => name.is_below(own),
            (Self::Tree(own), Self::Exact(name) | Self::Subdomains(name) | Self::Tree(name)) => {
                name == own || name.is_below(own)
            }
            (Self::Address(own), Self::Address(address)) => own == address,
            _ => false,
        }
    }
}

fn parsed(host: &str) -> Option<HostName> {
    host.parse().ok()
}

/// An address in its one usual spelling; a mapped address (`::ffff:192.0.2.1`) is the IPv4 address it hides.
fn canonical_address(text: &str) -> Option<IpAddr> {
    text.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

impl FromStr for HostPattern {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        if let Some(address) = canonical_address(text) {
            return Ok(Self::Address(address));
        }
        if let Some((name, below)) = text.split_once(',') {
            let name: HostName = name.parse()?;
            if below.strip_prefix("*.").and_then(parsed).as_ref() == Some(&name) {
                return Ok(Self::Tree(name));
            }
            let problem = "a comma joins a name and what lies below it, as in `x.org,*.x.org`";
            return Err(InvalidHost { text: text.to_owned(), problem });
        }
        match text.strip_prefix("*.") {
            Some(name) => name.parse().map(Self::Subdomains),
            None => text.parse().map(Self::Exact),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => name.fmt(f),
            Self::Subdomains(name) => write!(f, "*.{name}"),
            Self::Tree(name) => write!(f, "{name},*.{name}"),
            Self::Address(address) => address.fmt(f),
        }
    }
}

impl TryFrom<String> for HostPattern {
    type Error = InvalidHost;

    fn try_from(text: String) -> Result<Self, InvalidHost> {
        text.parse()
    }
}

impl From<HostPattern> for String {
    fn from(pattern: HostPattern) -> Self {
        pattern.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(text: &str) -> HostPattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_name_means_itself_and_a_star_only_what_is_below() {
        assert!(pattern("example.com").matches("EXAMPLE.com."));
        assert!(!pattern("example.com").matches("a.example.com"));
        assert!(pattern("*.example.com").matches("a.b.example.com"));
        assert!(!pattern("*.example.com").matches("example.com"));
        assert!(pattern("example.com,*.example.com").matches("example.com"));
        assert!(pattern("example.com,*.example.com").matches("a.example.com"));
    }

    #[test]
    fn suffixes_are_compared_label_by_label() {
        for host in
            ["evilexample.com", "example.com.evil.com", "xample.com", ".example.com", "a..example.com"]
        {
            assert!(!pattern("example.com,*.example.com").matches(host), "{host}");
        }
    }

    #[test]
    fn odd_spellings_are_refused() {
        let long = format!("{}.com", "a".repeat(300));
        for text in [
            "",
            ".",
            "a b.com",
            "a\tb",
            "a\0.com",
            "a\r\n.com",
            "a%2e.com",
            "u@a.com",
            "http://a.com",
            "a.com/x",
            "a.com:443",
            "[::1]",
            "fe80::1%eth0",
            "2130706433",
            "0x7f.1",
            "127.1",
            "017700000001",
            "1.2.3.4.5",
            "bücher.example",
            "-a.com",
            "a-.com",
            "a..b",
            "*",
            "*a.com",
            "a.*.com",
            "a.com,b.com",
            &long,
        ] {
            assert!(text.parse::<HostPattern>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn an_address_has_one_spelling() {
        assert!(pattern("192.0.2.1").matches("::ffff:192.0.2.1"));
        assert!(pattern("2001:db8::1").matches("2001:db8:0:0::1"));
        assert!(!pattern("192.0.2.1").matches("192.0.2.01"));
    }

    proptest! {
        #[test]
        fn a_pattern_survives_its_text_form(text in "(\\*\\.)?[a-z0-9_]{1,8}(\\.[a-z0-9]{1,8}){0,3}") {
            if let Ok(pattern) = text.parse::<HostPattern>() {
                prop_assert_eq!(pattern.to_string().parse::<HostPattern>().unwrap(), pattern);
            }
        }

        #[test]
        fn nothing_odd_ever_matches(host in ".*") {
            let tree = pattern("example.com,*.example.com");
            if tree.matches(&host) {
                let plain = host.trim_end_matches('.').to_ascii_lowercase();
                prop_assert!(plain == "example.com" || plain.ends_with(".example.com"));
                prop_assert!(plain.bytes().all(|b| b.is_ascii_graphic()));
            }
        }

        #[test]
        fn containment_agrees_with_matching(
            own in "(\\*\\.)?([ab]\\.){0,2}c",
            other in "([ab]\\.){0,2}c",
        ) {
            let (own, other) = (pattern(&own), pattern(&other));
            prop_assert_eq!(own.contains(&other), own.matches(&other.to_string()));
        }
    }
}
