use serde::Serialize;

use super::id::Name;
use super::spec::{DriverName, ImageName, Spec};

/// A sandbox, as its driver finds it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Info {
    /// What it is to be.
    #[serde(flatten)]
    pub spec: Spec,
    /// Whose it is to make.
    pub driver: DriverName,
    /// What goes on in it.
    pub state: State,
    /// What its image is called for sure: a digest, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What its image starts: the beginning of the command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub entrypoint: Vec<String>,
    /// The rest of it, or all.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cmd: Vec<String>,
    /// When a command last ran or ended in it, in seconds since 1970.
    pub used: i64,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// What goes on in a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// No process is alive.
    Stopped,
    /// Processes are alive.
    Running,
    /// They are, and none goes on.
    Paused,
    /// What is left of it is not whole; it can only be removed.
    Broken,
}

/// A frozen file system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SnapshotInfo {
    /// Its name.
    pub name: Name,
    /// What it was taken of.
    pub of: Spec,
    /// Whose it is.
    pub driver: DriverName,
    /// What its file system began as.
    pub image: ImageName,
    /// Bytes of its own, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Seconds since 1970.
    pub created: i64,
}

/// What a sandbox uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Bytes of memory now.
    pub memory: Option<u64>,
    /// The most it had.
    pub peak_memory: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// Processor time in microseconds.
    pub cpu_us: Option<u64>,
    /// Bytes changed on its file system.
    pub disk: Option<u64>,
}

/// A command that ran in a sandbox.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Past {
    /// Name and arguments, as the record has them.
    pub argv: Vec<String>,
    /// When it began, in microseconds since 1970.
    pub began_us: i64,
    /// How long it ran; none while it does.
    pub ran_us: Option<u64>,
    /// What it exited with: 128 + N for signal N, 124 for the time limit; none while it runs.
    pub exit: Option<i32>,
    /// The session in the record.
    pub session: Option<String>,
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Stopped => "stopped",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Broken => "broken",
        })
    }
}
