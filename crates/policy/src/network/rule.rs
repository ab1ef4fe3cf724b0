//! One rule about hosts.

use std::cmp::Reverse;
use std::fmt;
use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Rate;
use crate::host::Closeness;
use crate::{ByteSize, Host, HostPattern, Origin};

/// One `[[network.rule]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NetworkRule {
    /// Which hosts.
    pub host: HostPattern,
    /// Which ports; empty is every port.
    pub ports: Vec<NonZeroU16>,
    /// What happens.
    pub action: Action,
    /// What the connection must turn out to be.
    pub protocol: Protocol,
    /// HTTP methods let through, upper case; empty is every method. Only with `inspect`.
    pub methods: Vec<String>,
    /// Globs of request paths let through, matched against the decoded path; empty is every path. Only with `inspect`.
    pub paths: Vec<String>,
    /// Most bytes a request may carry. Only with `inspect`.
    pub max_upload: Option<ByteSize>,
    /// Most bytes a session may send to the rule's hosts altogether.
    pub max_upload_session: Option<ByteSize>,
    /// How many requests a session may make by this rule; where nothing is looked into, how many connections.
    pub rate: Option<Rate>,
    /// What happens to a client that refuses our certificate. Only with `inspect`.
    pub pinned: Pinned,
    /// Whether a name may lead to an address of a private network.
    pub private: bool,
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

/// What a connection must turn out to be by its first bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// Anything.
    #[default]
    Any,
    /// TLS, whatever is inside.
    Tls,
    /// HTTP, in TLS or plain.
    Http,
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

// === impl NetworkRule ===

impl NetworkRule {
    /// Whether the rule means a host and port.
    #[must_use]
    pub fn matches(&self, host: &Host, port: u16) -> bool {
        self.means_port(port) && self.host.matches(host)
    }

    pub(crate) fn means_port(&self, port: u16) -> bool {
        self.ports.is_empty() || self.ports.iter().any(|own| own.get() == port)
    }

    /// What makes one matching rule decide before another.
    pub(crate) fn rank(&self) -> (bool, Closeness, Reverse<usize>) {
        let ports = if self.ports.is_empty() { usize::MAX } else { self.ports.len() };
        (self.action == Action::Deny, self.host.closeness(), Reverse(ports))
    }

    /// Whether connections that the rule means get out, if only after a person agreed.
    pub(crate) fn opens(&self) -> bool {
        self.action != Action::Deny
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Any => "any",
            Self::Tls => "tls",
            Self::Http => "http",
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
