use std::fmt;
use std::str::FromStr;

use redoma_audit::SessionId;
use serde::{Deserialize, Serialize};

/// The name of a sandbox that Redoma gives: ten base32 characters. A safe file name, and never a path or an escape.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SandboxId(SessionId);

/// A name that a person gives, to a sandbox or a snapshot: up to 63 letters, digits, `-`, `_` and `.`, with a letter or
/// digit first. As safe a file name as an id is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// Whose sandbox it is: the user's own, or one client's of an MCP server. Who owns none of it does not see it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Owner(pub Option<Name>);

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no name: up to 63 letters, digits, `-`, `_` and `.`, beginning with a letter or digit, and not like an id"
)]
pub struct InvalidName(String);

// === impl SandboxId ===

impl SandboxId {
    /// A new one.
    ///
    /// # Errors
    /// When the kernel gives no random bytes.
    pub fn random() -> Result<Self, redoma_audit::Error> {
        SessionId::random().map(Self)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl FromStr for SandboxId {
    type Err = redoma_audit::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

impl fmt::Display for SandboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for SandboxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// === impl Name ===

impl Name {
    const LONGEST: usize = 63;

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let starts = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        // A name that could be an id would make an id ambiguous.
        let is_id = text.parse::<SandboxId>().is_ok();
        if starts && !is_id && text.len() <= Self::LONGEST && text.bytes().all(plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidName(text.chars().take(Self::LONGEST + 1).collect()))
        }
    }
}

impl TryFrom<String> for Name {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_safe_file_name_and_no_id() {
        for good in ["db", "web-1", "a.b_c", "9lives", "python"] {
            assert!(good.parse::<Name>().is_ok(), "{good}");
        }
        let long = "x".repeat(64);
        for bad in ["", ".", "..", "-x", "a/b", "a b", "é", "a\n", "abcdefghij", long.as_str()] {
            assert!(bad.parse::<Name>().is_err(), "{bad}");
        }
    }
}
