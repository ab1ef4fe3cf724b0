//! What can happen, as it is written down.
//!
//! Every text that comes from outside is a [`Text`](crate::Text) or an [`Argv`](crate::Argv), which are redacted and capped when they are made, so
//! an event that holds a secret cannot be written by accident.

mod activity;
mod network;
mod session;

pub use activity::{
    Alert, Exec, ExecEnd, FileAction, FileEvent, Lifecycle, Limit, LimitAction, LimitKind, McpCall, Phase,
    Severity, Snapshot, SnapshotAction,
};
pub use network::{
    Answer, Approval, Decision, DecisionBy, Direction, Dns, Exchange, Flow, Message, Process, Question, Tls,
    Verdict, Visibility,
};
pub use session::{Checkpoint, Outcome, SessionEnd, SessionMeta, Tier, Usage};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One thing that happened; `kind` names it in the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A session began: always the first record.
    SessionStart(SessionMeta),
    /// A session ended; only a checkpoint follows.
    SessionEnd(SessionEnd),
    /// The records up to here, signed. Written by the log itself.
    Checkpoint(Checkpoint),
    /// A program was started.
    Exec(Exec),
    /// A program that was started has ended.
    ExecEnd(ExecEnd),
    /// A file was changed, hidden or moved by the keeper, or touched as a sensor saw it.
    File(FileEvent),
    /// A question was decided by the policy.
    Decision(Decision),
    /// A human answered an `ask`.
    Approval(Approval),
    /// A rule of a sensor, the gateway or the keeper matched.
    Alert(Alert),
    /// A limit was reached.
    Limit(Limit),
    /// A step in the life of the sandbox.
    Lifecycle(Lifecycle),
    /// A frozen state was taken, brought back or removed.
    Snapshot(Snapshot),
    /// One connection seen by the gateway.
    Flow(Flow),
    /// One request and its answer inside an inspected flow.
    Exchange(Exchange),
    /// One name asked of the resolver.
    Dns(Dns),
    /// One call of an MCP tool.
    McpCall(McpCall),
    /// A kind that this version does not know, kept whole.
    #[serde(untagged)]
    Other(Unknown),
}

/// An event written by another version. It can only be read, never made: what is written here has been redacted here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unknown(Map<String, Value>);

impl Unknown {
    /// The kind it was written with.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.0.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    /// Its other fields.
    #[must_use]
    pub fn fields(&self) -> &Map<String, Value> {
        &self.0
    }
}
