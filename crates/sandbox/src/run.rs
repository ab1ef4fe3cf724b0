//! What a run is asked to do, and what came of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use redoma_audit::SessionId;
use redoma_jail::limits::Hit;
use redoma_jail::{Ending, Enforced};
use redoma_policy::{Origin, ResolvedPolicy, Tier};

use crate::quarantine::Quarantined;

/// A command to run in place.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// What is enforced.
    pub policy: ResolvedPolicy,
    /// The command and its arguments.
    pub argv: Vec<OsString>,
    /// Where it runs; canonical.
    pub cwd: PathBuf,
    /// Git folders outside the project that belong to it.
    pub git_dirs: Vec<PathBuf>,
    /// The caller's environment, of which the policy lets some through.
    pub variables: Vec<(OsString, OsString)>,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// The session in the record.
    pub session: SessionId,
    /// How it ended.
    pub end: RunEnd,
    /// The tier it ran in.
    pub tier: Tier,
    /// What really confined it.
    pub enforced: Enforced,
    /// Denied paths of the project that were hidden, with the rule.
    pub hidden: Vec<(PathBuf, Origin)>,
    /// Protected paths that appeared and were moved away.
    pub quarantined: Vec<Quarantined>,
    /// Limits that were reached.
    pub hits: Vec<Hit>,
    /// From the first step to the last process's end.
    pub wall: Duration,
    /// Processor time and memory.
    pub usage: redoma_sys::Usage,
    /// What the user should know besides.
    pub notes: Vec<String>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The command ended by itself.
    Command(Ending),
    /// The time limit ended it.
    TimedOut,
}

impl RunEnd {
    /// What `redoma run` exits with: the command's own code, 128 + N for signal N, 124 for the time limit.
    pub fn exit_code(self) -> i32 {
        match self {
            Self::Command(Ending::Exited(code)) => code,
            Self::Command(Ending::Signaled(signal)) => 128 + signal,
            Self::TimedOut => 124,
        }
    }
}
