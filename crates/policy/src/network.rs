//! What a resolved policy says about hosts and credentials.

use std::cmp::Reverse;
use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ByteSize, Host, HostPattern, Origin};

/// The network part of a [`crate::ResolvedPolicy`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Network {
    /// What happens to a connection that no rule names.
    pub default: NetworkDefault,
    /// Rules. A deny beats all others; else the rule that names the host most closely decides.
    pub rules: Vec<NetworkRule>,
    /// Ports of this machine.
    pub local: LocalPorts,
}

/// What happens to a connection that no rule names. Ordered from strict to loose.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkDefault {
    /// There is no network, whatever the rules say.
    None,
    /// It is refused.
    #[default]
    Deny,
    /// A person is asked.
    Ask,
    /// It is let through.
    Allow,
}

/// One `[[network.rule]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NetworkRule {
    /// Which hosts.
    pub host: HostPattern,
    /// Which ports; empty is every port.
    pub ports: Vec<NonZeroU16>,
    /// What happens.
    pub action: Action,
    /// HTTP methods let through, upper case; empty is every method. Only with `inspect`.
    pub methods: Vec<String>,
    /// Globs of request paths let through; empty is every path. Only with `inspect`.
    pub paths: Vec<String>,
    /// Most bytes a request may carry. Only with `inspect`.
    pub max_upload: Option<ByteSize>,
    /// What happens to a client that refuses our certificate. Only with `inspect`.
    pub pinned: Pinned,
    /// What the host is for, where the rule comes from an agent's preset.
    pub purpose: Option<Purpose>,
    /// Where it was written.
    pub origin: Origin,
}

/// What a rule does with a connection. Ordered from loose to strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Action {
    /// Let it through unseen.
    Allow,
    /// Let it through and look inside.
    Inspect,
    /// Ask a person.
    Ask,
    /// Refuse it.
    Deny,
}

/// What happens to a client that refuses our certificate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pinned {
    /// Its connection is refused.
    #[default]
    Block,
    /// It is let through unseen.
    Opaque,
}

/// What an agent uses a host for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Model requests.
    Api,
    /// Signing in.
    Login,
    /// New versions.
    Update,
    /// Reports about its use.
    Telemetry,
}

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

/// One `[secrets.NAME]`: a credential that stays outside and is put in on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecretRule {
    /// The variable that holds a placeholder inside.
    pub name: String,
    /// Where the real one is.
    pub source: SecretSource,
    /// The only hosts it is sent to.
    pub hosts: Vec<HostPattern>,
    /// The header it replaces the placeholder in; `None` is any header.
    pub header: Option<String>,
    /// Where it was written.
    pub origin: Origin,
}

/// Where a real credential is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretSource {
    /// A variable of the caller's.
    Env(String),
    /// A file's content.
    File(std::path::PathBuf),
    /// An entry of the desktop keyring.
    Keyring(String),
    /// A command's output.
    Command(Vec<String>),
}

/// Why a port was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {wanted}")]
pub struct InvalidPort {
    text: String,
    wanted: &'static str,
}

// === impl Network ===

impl Network {
    /// Whether anything inside could get a connection out, so that the gateway must run.
    #[must_use]
    pub fn needs_gateway(&self) -> bool {
        let opens = |rule: &NetworkRule| rule.action != Action::Deny;
        match self.default {
            NetworkDefault::None => false,
            NetworkDefault::Deny => {
                self.rules.iter().any(opens) || !self.local.reach.is_empty() || !self.local.publish.is_empty()
            }
            NetworkDefault::Ask | NetworkDefault::Allow => true,
        }
    }

    /// The rule that decides about a host and port. A deny beats whatever else matches; then the rule that names the
    /// host most closely, and of those the one that names ports. Of equals the strictest, and of those the first.
    #[must_use]
    pub fn rule_for(&self, host: &Host, port: u16) -> Option<&NetworkRule> {
        // `min_by_key` keeps the first of equals, so the rule shown is the one a reader meets first.
        let matching = self.rules.iter().filter(|rule| rule.matches(host, port));
        matching.min_by_key(|rule| {
            let denies = rule.action == Action::Deny;
            Reverse((denies, rule.host.closeness(), !rule.ports.is_empty(), rule.action))
        })
    }
}

impl NetworkRule {
    /// Whether the rule means a host and port.
    #[must_use]
    pub fn matches(&self, host: &Host, port: u16) -> bool {
        let port_matches = self.ports.is_empty() || self.ports.iter().any(|own| own.get() == port);
        port_matches && self.host.matches(host)
    }
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

impl fmt::Display for NetworkDefault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        })
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Inspect => "inspect",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
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
