//! The frame of a log: how a session starts, ends and is signed.

use serde::{Deserialize, Serialize};

use crate::{Argv, Digest, SessionId, Text};

/// What is known when a session starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionMeta {
    /// Its name.
    pub session: SessionId,
    /// The version of Redoma.
    pub version: Text,
    /// The command.
    pub argv: Argv,
    /// Where it was started.
    pub cwd: Text,
    /// The project folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<Text>,
    /// The agent preset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Text>,
    /// The sandbox, where it outlives the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Text>,
    /// The driver, `native` for instance.
    pub driver: Text,
    /// What the kernel enforces.
    pub tier: Tier,
    /// The network mode: `none`, `deny`, `ask` or `allow`.
    pub net: Text,
    /// The BLAKE3 hash of the resolved policy.
    pub policy: Digest,
    /// The user who started it.
    pub uid: u32,
    /// The keeper's process.
    pub keeper: u32,
    /// The kernel release, as `uname(2)` gives it.
    pub kernel: Text,
}

/// What the kernel enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Namespaces, Landlock and seccomp.
    Full,
    /// Landlock and seccomp.
    Landlock,
}

/// How a session ended and what it used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionEnd {
    /// How it ended.
    pub outcome: Outcome,
    /// What it used.
    pub usage: Usage,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Outcome {
    /// The command returned.
    Exited {
        /// Its exit code.
        code: i32,
    },
    /// The command died by a signal.
    Signaled {
        /// The signal's number.
        signal: i32,
    },
    /// The time limit ended it.
    TimedOut,
    /// The keeper was asked to end it.
    Cancelled,
    /// It could not be started, or the keeper had to end it.
    Failed {
        /// The step that failed, and why.
        reason: Text,
    },
}

/// What a session used, as far as the kernel told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Time on the wall clock, in microseconds.
    pub wall_us: u64,
    /// Processor time in user mode, in microseconds.
    pub user_us: u64,
    /// Processor time in the kernel, in microseconds.
    pub system_us: u64,
    /// The most memory held at once, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_memory: Option<u64>,
    /// The most processes alive at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_pids: Option<u64>,
}

/// A signature over everything before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The key that signed: the first eight bytes of the BLAKE3 hash of its public half.
    pub key: String,
    /// The Ed25519 signature (RFC 8032) in hexadecimal.
    pub sig: String,
}
