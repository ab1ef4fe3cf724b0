//! The resolved policy: what is enforced.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{ByteSize, Cpus, Environment, Filesystem, Network, Notice, SecretRule, TimeSpan};

/// All layers merged, variables expanded, the agent's preset added.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResolvedPolicy {
    /// The built-in profile everything started from.
    pub profile: String,
    /// The project's canonical top folder.
    pub project: PathBuf,
    /// The user's home, canonical where it exists.
    pub home: PathBuf,
    /// The agent whose preset was added.
    pub agent: Option<AgentProfile>,
    /// Files.
    pub filesystem: Filesystem,
    /// Hosts.
    pub network: Network,
    /// Variables.
    pub environment: Environment,
    /// Credentials that stay outside.
    pub secrets: Vec<SecretRule>,
    /// Amounts.
    pub limits: Limits,
    /// Kernel features that stay open.
    pub kernel: KernelFeatures,
    /// The record.
    pub audit: Audit,
    /// The tier that was asked for; `None` is the best there is.
    pub tier: Option<Tier>,
    /// What the user should know.
    pub notices: Vec<Notice>,
}

/// What the kernel here can enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// No user namespaces: Landlock and seccomp.
    Landlock,
    /// Namespaces, Landlock and seccomp.
    Full,
}

/// An agent preset, as far as it is not rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AgentProfile {
    /// Its name.
    pub name: AgentName,
    /// What people call it.
    pub title: String,
    /// What to know when running it.
    pub notes: String,
}

/// The name of an agent preset: lower-case letters, digits and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
pub struct AgentName(String);

/// How much a session may use. `None` is no limit of ours.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Limits {
    /// Processor time per time.
    pub cpus: Option<Cpus>,
    /// Memory, swap included.
    pub memory: Option<ByteSize>,
    /// Processes and threads alive at once.
    pub pids: Option<u32>,
    /// Bytes written to private folders.
    pub disk: Option<ByteSize>,
    /// From start to end.
    pub time: Option<TimeSpan>,
    /// Refuse to start when a limit cannot be enforced here.
    pub strict: bool,
}

/// Kernel features that are closed unless named.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KernelFeatures {
    /// New user namespaces inside, for nested sandboxes.
    pub nested_userns: bool,
}

/// How the record is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// How long before `redoma audit purge` may drop a session.
    pub retention: Option<TimeSpan>,
    /// How much is recorded.
    pub record: Record,
}

/// How much is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Record {
    /// Sessions, decisions, limits and alerts.
    #[default]
    Decisions,
    /// Everything the sensor sees as well.
    Everything,
}

/// Why a name is no agent's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an agent's name (lower-case letters, digits and `-`)")]
pub struct InvalidAgentName(String);

impl AgentName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for AgentName {
    type Error = InvalidAgentName;

    fn try_from(name: String) -> Result<Self, InvalidAgentName> {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        if name.is_empty() || name.len() > 64 || !name.bytes().all(plain) {
            return Err(InvalidAgentName(name));
        }
        Ok(Self(name))
    }
}

impl std::str::FromStr for AgentName {
    type Err = InvalidAgentName;

    fn from_str(name: &str) -> Result<Self, InvalidAgentName> {
        Self::try_from(name.to_owned())
    }
}

impl std::fmt::Display for AgentName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::fmt::Display for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Landlock => "landlock",
            Self::Full => "full",
        })
    }
}
