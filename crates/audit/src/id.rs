//! The name of one session.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Error;

/// RFC 4648 base32 in lower case: no digit that looks like a letter, safe as a file name and in a shell.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The name of a session: ten base32 characters, fifty random bits.
///
/// Parsing is the only way in from outside, so an id never holds a `/`, a dot or an escape sequence,
/// and can be joined to a path or printed as it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId([u8; SessionId::LEN]);

impl SessionId {
    /// The number of characters in an id.
    pub const LEN: usize = 10;

    /// A new id from the kernel's random source (`getrandom(2)`).
    ///
    /// # Errors
    /// [`Error::Random`] if the kernel gives no random bytes.
    pub fn random() -> Result<Self, Error> {
        let bytes = crate::random::<{ Self::LEN }>()?;
        // 256 is a multiple of 32, so that dropping three bits of each byte keeps every character equally likely.
        Ok(Self(bytes.map(|byte| ALPHABET[usize::from(byte & 31)])))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only ASCII gets in: see `random` and `from_str`.
        str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Whether `text` could be the start of an id: the check before a prefix is looked up.
pub(crate) fn is_prefix(text: &str) -> bool {
    (1..=SessionId::LEN).contains(&text.len()) && text.bytes().all(|byte| ALPHABET.contains(&byte))
}

// === impl SessionId ===

impl FromStr for SessionId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bytes = <[u8; Self::LEN]>::try_from(text.as_bytes());
        bytes.ok().filter(|_| is_prefix(text)).map(Self).ok_or_else(|| Error::SessionId { text: text.into() })
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_id_parses_back_and_differs_from_the_next() {
        let (one, two) = (SessionId::random().unwrap(), SessionId::random().unwrap());
        assert_ne!(one, two);
        assert_eq!(one.to_string().parse::<SessionId>().unwrap(), one);
    }

    #[test]
    fn nothing_but_an_id_parses() {
        for text in
            ["", "abc", "../../etc/", "ABCDEFGHIJ", "abcdefghi1", "abcdefghijk", "abcdefghi\n", "abcdé2345"]
        {
            assert!(text.parse::<SessionId>().is_err(), "{text:?}");
        }
    }
}
