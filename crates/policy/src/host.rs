//! Hosts, parsed in one place: the policy, the resolver and the dialler all use these types.
//!
//! What comes from inside (a SOCKS name, a `Host` header, an SNI, a DNS question) is hostile. It becomes a [`Host`]
//! or it is refused; after that there is one spelling of everything, so what is compared is what is dialled.

mod authority;
mod pattern;

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use authority::Authority;
pub(crate) use pattern::Closeness;
pub use pattern::HostPattern;

/// A DNS name (RFC 1123, plus `_` as it occurs in practice): ASCII, lower case, no trailing dot, at most 253 bytes.
///
/// A name with letters beyond ASCII must be written in its `xn--` form (RFC 5891), so that what is compared is what
/// is dialled and no look-alike can hide. A name whose last label is a number is refused: resolvers would read it
/// as an address (inet_aton(3) accepts `127.1`, `0x7f.1` and `017700000001`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);

/// What is connected to: a name or an address.
///
/// Addresses have their one usual spelling, and a mapped one (`::ffff:192.0.2.1`) is the IPv4 address it hides. Make
/// them with [`Host::from`] or by parsing, which see to that.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Host {
    /// A name, to be resolved.
    Name(HostName),
    /// An address.
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

// === impl Host ===

impl Host {
    /// Reads a host as it came over a wire: any bytes may stand there.
    ///
    /// # Errors
    /// When they are neither a name nor an address.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidHost> {
        text(bytes)?.parse()
    }

    /// This machine, by its name.
    #[must_use]
    pub fn localhost() -> Self {
        Self::Name(HostName("localhost".to_owned()))
    }

    /// The name, if it is one.
    #[must_use]
    pub fn name(&self) -> Option<&HostName> {
        match self {
            Self::Name(name) => Some(name),
            Self::Address(_) => None,
        }
    }

    /// Whether it means the machine itself, without asking a resolver: RFC 6761, section 6.3, and the loopback
    /// addresses. Connecting to `0.0.0.0` or `::` reaches loopback as well.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        match self {
            Self::Name(name) => name.as_str() == "localhost" || name.as_str().ends_with(".localhost"),
            Self::Address(address) => crate::scope(*address) == crate::Scope::Loopback,
        }
    }
}

impl FromStr for Host {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        match text.parse::<IpAddr>() {
            Ok(address) => Ok(Self::from(address)),
            Err(_) => text.parse().map(Self::Name),
        }
    }
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

impl From<HostName> for Host {
    fn from(name: HostName) -> Self {
        Self::Name(name)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Address(address) => address.fmt(f),
        }
    }
}

impl TryFrom<String> for Host {
    type Error = InvalidHost;

    fn try_from(text: String) -> Result<Self, InvalidHost> {
        text.parse()
    }
}

impl From<Host> for String {
    fn from(host: Host) -> Self {
        host.to_string()
    }
}

// === impl HostName ===

impl HostName {
    /// Reads a name as it came over a wire. An address is none (RFC 6066, section 3, has no address in an SNI).
    ///
    /// # Errors
    /// When the bytes are no name.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidHost> {
        text(bytes)?.parse()
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// How many labels it has: two for `example.com`.
    #[must_use]
    pub fn labels(&self) -> usize {
        self.0.split('.').count()
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

/// Bytes as text. Longer ones than any host are not even copied into the error.
fn text(bytes: &[u8]) -> Result<&str, InvalidHost> {
    let shown = || String::from_utf8_lossy(&bytes[..bytes.len().min(64)]).into_owned();
    if bytes.len() > MAX_TEXT {
        return Err(InvalidHost { text: shown(), problem: TOO_LONG });
    }
    std::str::from_utf8(bytes).map_err(|_| InvalidHost { text: shown(), problem: NOT_ASCII })
}

/// The longest host with a port and brackets.
const MAX_TEXT: usize = 253 + "[.]:65535".len();
const TOO_LONG: &str = "a name has at most 253 characters";
const NOT_ASCII: &str = "write names beyond ASCII in their `xn--` form";

/// What is wrong with a name, if anything.
fn problem_of(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("it is empty");
    }
    if !name.is_ascii() {
        return Some(NOT_ASCII);
    }
    if name.len() > 253 {
        return Some(TOO_LONG);
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

#[cfg(test)]
mod tests;
