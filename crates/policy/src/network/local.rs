//! Ports of this machine.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Ports of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LocalPorts {
    /// Host to sandbox, loopback only.
    pub publish: Vec<Publish>,
    /// Sandbox to host, port by port.
    pub reach: Vec<Reach>,
}

/// `"3000"` or `"8080:3000"`: a port on the host's loopback that leads to a port inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Publish {
    /// On the host.
    pub outside: NonZeroU16,
    /// In the sandbox.
    pub inside: NonZeroU16,
}

/// `"localhost:5432"`: a port on the host's loopback that the sandbox may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Reach {
    /// On the host's loopback.
    pub port: NonZeroU16,
}

/// Why a port was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wanted}")]
pub struct InvalidPort {
    text: String,
    wanted: &'static str,
}

// === text forms ===

fn port(text: &str, wanted: &'static str) -> Result<NonZeroU16, InvalidPort> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let number = digits.then(|| text.parse::<NonZeroU16>().ok()).flatten();
    number.ok_or_else(|| InvalidPort { text: text.to_owned(), wanted })
}

impl FromStr for Publish {
    type Err = InvalidPort;

    fn from_str(text: &str) -> Result<Self, InvalidPort> {
        const WANTED: &str = "a port to publish, such as \"3000\" or \"8080:3000\"";
        let (outside, inside) = text.split_once(':').unwrap_or((text, text));
        Ok(Self { outside: port(outside, WANTED)?, inside: port(inside, WANTED)? })
    }
}

impl FromStr for Reach {
    type Err = InvalidPort;

    fn from_str(text: &str) -> Result<Self, InvalidPort> {
        const WANTED: &str = "a port of this machine, such as \"localhost:5432\"";
        let after = ["localhost:", "127.0.0.1:", "[::1]:"].iter().find_map(|front| text.strip_prefix(front));
        let number = after.ok_or_else(|| InvalidPort { text: text.to_owned(), wanted: WANTED })?;
        Ok(Self { port: port(number, WANTED)? })
    }
}

impl fmt::Display for Publish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.outside == self.inside {
            true => write!(f, "{}", self.inside),
            false => write!(f, "{}:{}", self.outside, self.inside),
        }
    }
}

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "localhost:{}", self.port)
    }
}

impl TryFrom<String> for Publish {
    type Error = InvalidPort;

    fn try_from(text: String) -> Result<Self, InvalidPort> {
        text.parse()
    }
}

impl TryFrom<String> for Reach {
    type Error = InvalidPort;

    fn try_from(text: String) -> Result<Self, InvalidPort> {
        text.parse()
    }
}

impl From<Publish> for String {
    fn from(publish: Publish) -> Self {
        publish.to_string()
    }
}

impl From<Reach> for String {
    fn from(reach: Reach) -> Self {
        reach.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_strictly() {
        assert_eq!("8080:3000".parse::<Publish>().unwrap().to_string(), "8080:3000");
        assert_eq!("3000".parse::<Publish>().unwrap().to_string(), "3000");
        assert_eq!("127.0.0.1:5432".parse::<Reach>().unwrap().to_string(), "localhost:5432");
        for text in ["0", "", "65536", "+80", "a", "80:", ":80", "1:2:3"] {
            assert!(text.parse::<Publish>().is_err(), "{text}");
        }
        for text in ["5432", "example.com:5432", "localhost:0", "localhost:"] {
            assert!(text.parse::<Reach>().is_err(), "{text}");
        }
    }
}
