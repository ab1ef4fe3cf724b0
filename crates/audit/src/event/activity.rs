//! What commands do and what is done about it.

use serde::{Deserialize, Serialize};

use super::{Outcome, Verdict};
use crate::{Argv, Digest, Text};

/// A program was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Exec {
    /// The process, as the host numbers it.
    pub pid: u32,
    /// The program file, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Text>,
    /// Its arguments.
    pub argv: Argv,
    /// Its working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Text>,
}

/// A program that was started has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecEnd {
    /// The process, as [`Exec`] had it.
    pub pid: u32,
    /// How.
    pub outcome: Outcome,
    /// How long it ran, in microseconds.
    pub wall_us: u64,
}

/// Something happened to a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FileEvent {
    /// What happened.
    pub action: FileAction,
    /// The file.
    pub path: Text,
    /// Where it is now, if it was moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<Text>,
    /// The process that did it, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileAction {
    /// It is new.
    Created,
    /// Its content, mode or owner changed.
    Changed,
    /// It is gone.
    Removed,
    /// A decoy or an empty cover stands in its place.
    Covered,
    /// It appeared where the policy allows none, and was moved away.
    Quarantined,
    /// A decoy was opened.
    DecoyRead,
    /// A change was brought from the overlay into the workspace.
    Applied,
    /// A change was thrown away.
    Discarded,
    /// It was brought back to what it was before the session.
    Restored,
}

/// A rule matched that a human should know about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alert {
    /// The rule's name.
    pub rule: Text,
    /// How bad it is.
    pub severity: Severity,
    /// What was seen.
    pub message: Text,
    /// The file it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Text>,
    /// The process it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

/// How bad an alert is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing.
    Notice,
    /// Worth looking at.
    Warning,
    /// An attempt to get out or to plant something.
    Critical,
}

/// A limit was reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Which.
    pub limit: LimitKind,
    /// What was allowed: bytes, processes, microseconds, or thousandths of a processor.
    pub allowed: u64,
    /// What was asked for or used, in the same unit, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<u64>,
    /// What it led to.
    pub action: LimitAction,
    /// What enforced it: `cgroup2`, `cgroup1`, `rlimit`, `timer`.
    pub by: Text,
}

/// A limit of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Processors.
    Cpus,
    /// Memory.
    Memory,
    /// Processes and threads.
    Pids,
    /// Space on disk.
    Disk,
    /// Time on the wall clock.
    Time,
    /// Open files.
    Files,
}

/// What reaching a limit led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitAction {
    /// The call failed.
    Refused,
    /// The sandbox was slowed down.
    Throttled,
    /// A process was killed.
    Killed,
    /// The session was ended.
    Ended,
}

/// A step in the life of the sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lifecycle {
    /// Which.
    pub phase: Phase,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Text>,
}

/// The steps in the life of a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The policy was merged and expanded.
    Resolved,
    /// The kernel was probed.
    Probed,
    /// The bell stands.
    Built,
    /// The canary's forbidden attempts all failed, as they must.
    CanaryPassed,
    /// A forbidden attempt of the canary worked: nothing was started.
    CanaryFailed,
    /// The command runs.
    Started,
    /// The sandbox was stopped for a while.
    Paused,
    /// It goes on.
    Resumed,
    /// Everything it needed on the host was removed.
    Cleaned,
}

/// A frozen state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// What was done.
    pub action: SnapshotAction,
    /// Its name.
    pub name: Text,
    /// The number of files in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Its size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
}

/// What was done with a frozen state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotAction {
    /// It was taken.
    Taken,
    /// It was brought back.
    Restored,
    /// A new sandbox was made from it.
    Forked,
    /// It was removed.
    Removed,
}

/// One call of an MCP tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct McpCall {
    /// The server.
    pub server: Text,
    /// The tool.
    pub tool: Text,
    /// What was decided.
    pub verdict: Verdict,
    /// The rule that decided.
    pub rule: Text,
    /// The hash of the arguments, which may hold secrets and are not written.
    pub arguments: Digest,
}
