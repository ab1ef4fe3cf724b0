//! Which hosts a rule means.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Host, HostName, InvalidHost};

/// Which hosts a rule means.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
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

/// How closely a pattern names a host: an address or a whole name above all, then the longer name, then what lies below
/// a name alone before the name with what lies below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Closeness {
    whole: bool,
    labels: usize,
    below_only: bool,
}

// === impl HostPattern ===

impl HostPattern {
    /// Whether the pattern means a host.
    #[must_use]
    pub fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Address(own), Host::Address(address)) => *own == address.to_canonical(),
            (_, Host::Name(name)) => self.matches_name(name),
            _ => false,
        }
    }

    /// Whether the pattern means a name.
    #[must_use]
    pub fn matches_name(&self, name: &HostName) -> bool {
        match self {
            Self::Address(_) => false,
            Self::Exact(own) => name == own,
            Self::Subdomains(own) => name.is_below(own),
            Self::Tree(own) => name == own || name.is_below(own),
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

    /// The one host it means, if it means only one.
    #[must_use]
    pub fn only_host(&self) -> Option<Host> {
        match self {
            Self::Exact(name) => Some(Host::Name(name.clone())),
            Self::Address(address) => Some(Host::Address(*address)),
            Self::Subdomains(_) | Self::Tree(_) => None,
        }
    }

    pub(crate) fn closeness(&self) -> Closeness {
        let (whole, labels, below_only) = match self {
            Self::Address(_) | Self::Exact(_) => (true, 0, false),
            Self::Subdomains(name) => (false, name.labels(), true),
            Self::Tree(name) => (false, name.labels(), false),
        };
        Closeness { whole, labels, below_only }
    }
}

impl FromStr for HostPattern {
    type Err = InvalidHost;

    fn from_str(text: &str) -> Result<Self, InvalidHost> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        if let Some((name, below)) = text.split_once(',') {
            let name: HostName = name.parse()?;
            let below = below.strip_prefix("*.").and_then(|below| below.parse::<HostName>().ok());
            if below.as_ref() == Some(&name) {
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

impl From<Host> for HostPattern {
    fn from(host: Host) -> Self {
        match host {
            Host::Name(name) => Self::Exact(name),
            Host::Address(address) => Self::Address(address),
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
