//! The policy model: layers, trust, resolution, and one decision function per question.
//!
//! This crate is pure. It opens no file, reads no clock and no environment: whatever it must know about the
//! machine comes in through [`Surroundings`]. The way in is [`resolve`], which turns [`Source`]s (what the user
//! wrote) into a [`ResolvedPolicy`] (what is enforced); the way out is [`ResolvedPolicy::decide`], which answers
//! a [`Question`] with a [`Verdict`]. What is enforced and what `redoma why` says both come from it.

mod address;
mod agent;
mod check;
mod decide;
mod diff;
mod document;
pub mod edit;
mod environment;
mod error;
mod file;
mod filesystem;
mod host;
mod nearest;
mod network;
mod origin;
mod pattern;
mod preset;
mod profile;
mod quantity;
mod resolve;
mod resolved;
mod schema;
mod secret;
mod show;
mod surroundings;
mod template;
#[cfg(test)]
mod testbed;

pub use address::{Scope, scope};
pub use agent::{AgentPreset, agent_for_program, agents};
pub use decide::{
    Connection, Effect, PRIVATE_FOLDERS, Place, Question, SmallestChange, Unreachable, Verdict, devices,
};
pub use diff::{Difference, diff};
pub use document::{MAX_FILE, check};
pub use environment::{EnvRule, EnvSet, Environment, InvalidName, NamePattern, VariableKind};
pub use error::{Located, PolicyError};
pub use filesystem::{Access, Alias, Filesystem, Grant, PathRule, Workspace};
pub use host::{Authority, Host, HostName, HostPattern, InvalidHost};
pub use network::{
    Action, InvalidPort, InvalidProxy, LeakAction, Leaks, LocalPorts, Network, NetworkDefault, NetworkRule,
    Password, Pinned, Protocol, Proxy, Publish, Purpose, Rate, Reach, RequestProblem, Upstream,
    UpstreamProxy,
};
pub use origin::{ContentHash, Layer, Notice, NoticeKind, Origin, Source, content_hash};
pub use pattern::{InvalidGlob, PathGlob, PathPattern};
pub use preset::{Endpoint, Preset, git_service, git_services};
pub use profile::{Profile, profiles};
pub use quantity::{ByteSize, Cpus, InvalidQuantity, TimeSpan};
pub use resolve::resolve;
pub use resolved::{
    AgentName, AgentProfile, Audit, InvalidAgentName, KernelFeatures, Limits, Record, ResolvedPolicy, Tier,
};
pub use schema::schema;
pub use secret::{SecretPlace, SecretRule, SecretSource};
pub use surroundings::{CommandLine, PathFacts, PathKind, Surroundings};
pub use template::template;

pub(crate) use nearest::nearest;
