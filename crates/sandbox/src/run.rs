//! What a run is asked to do, and what came of it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use redoma_audit::event::{Flow, Visibility};
use redoma_audit::{Event, SessionId};
use redoma_jail::limits::Hit;
use redoma_jail::{Ending, Enforced};
use redoma_policy::{Origin, ResolvedPolicy, Tier};

use serde::Serialize;

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
    /// Whether what goes over the wire is kept, with the secrets that decrypt it.
    pub capture: bool,
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
    /// What went over the network.
    pub network: NetworkSummary,
    /// What the user should know besides.
    pub notes: Vec<String>,
}

/// What went over the network, each kind of visibility by itself: what was let through unseen was not seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NetworkSummary {
    /// Flows that were looked into.
    pub inspected: u64,
    /// Flows that passed unseen.
    pub opaque: u64,
    /// Flows that were refused or cut off.
    pub blocked: u64,
    /// What was refused, each target and reason once.
    pub refused: Vec<Refused>,
    /// Targets that were allowed for good, to be written into the policy.
    pub always: Vec<String>,
}

/// A target that was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The name or address, and the port.
    pub target: String,
    /// Why, as flows have it.
    pub reason: String,
    /// What would let it through.
    pub change: Option<String>,
    /// How often it was tried.
    pub times: u64,
}

impl NetworkSummary {
    /// More targets than anybody reads.
    const MOST: usize = 256;

    /// Takes note of a flow that ended.
    pub(crate) fn add(&mut self, event: &Event) {
        let Event::Flow(flow) = event else { return };
        if flow.open {
            return;
        }
        match flow.visibility {
            Visibility::Inspected => self.inspected += 1,
            Visibility::Opaque => self.opaque += 1,
            Visibility::Blocked => {
                self.blocked += 1;
                self.refuse(flow);
            }
        }
    }

    fn refuse(&mut self, flow: &Flow) {
        let host = flow.host.as_ref().map(|host| host.as_str().to_owned());
        let host = host.or_else(|| flow.address.map(|address| address.to_string())).unwrap_or_default();
        let target = if host.contains(':') {
            format!("[{host}]:{}", flow.port)
        } else {
            format!("{host}:{}", flow.port)
        };
        let reason = flow.reason.as_str();
        let full = self.refused.len() >= Self::MOST;
        match self.refused.iter_mut().find(|known| known.target == target && known.reason == reason) {
            Some(known) => known.times += 1,
            None if !full => self.refused.push(Refused {
                target,
                reason: reason.to_owned(),
                change: flow.change.as_ref().map(|change| change.as_str().to_owned()),
                times: 1,
            }),
            None => {}
        }
    }
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
