//! The one way to sandboxes: the CLI, and later MCP and the dashboard, talk to [`Manager`] alone.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use redoma_audit::{SessionId, Store};
use redoma_jail::limits::{Hit, Leftover, Scraps};
use redoma_jail::{Ending, Enforced};
use redoma_policy::{Action, NetworkDefault, Origin, ResolvedPolicy, Tier};

use crate::error::RunError;
use crate::folder;
use crate::homes::Homes;
use crate::machine;
use crate::native;
use crate::quarantine::Quarantined;
use crate::record::{RunRecord, failed};

/// Makes, drives and ends sandboxes.
#[derive(Clone, Debug)]
pub struct Manager {
    homes: Homes,
}

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

impl Manager {
    /// A manager of what is kept in `homes`.
    pub fn new(homes: Homes) -> Self {
        Self { homes }
    }

    /// Finds what killed keepers have left, and removes it unless `dry_run`. What a living session holds stays.
    pub fn gc(&self, dry_run: bool) -> Vec<Leftover> {
        let places = Scraps { folders: vec![self.homes.run().to_owned()], remove: folder::remove };
        redoma_jail::limits::gc(&places, dry_run)
    }

    /// Creates a sandbox, runs the command in it on the caller's streams, and destroys it.
    ///
    /// The process must have no other threads: init is a fork of it.
    ///
    /// # Errors
    /// [`RunError`] when there is no boundary, and then nothing has run; or when the boundary or the record broke while
    /// the command ran, and then everything was ended.
    pub fn run(&self, request: &RunRequest) -> Result<RunOutcome, RunError> {
        let probes = machine::probes(&self.homes);
        let tier = machine::choose_tier(&probes, request.policy.tier)?;
        require_no_gateway(&request.policy)?;
        if let Some(missing) =
            native::overlay_wanted(&request.policy).then(|| machine::missing_overlay(&probes)).flatten()
        {
            return Err(RunError::NoBoundary { missing });
        }
        let store = Store::open(self.homes.state(), &self.homes.keys())?;
        let session = SessionId::random()?;
        let mut record = RunRecord::begin(&store, session, request, tier)?;
        let run = native::Run { homes: &self.homes, request, tier, session };
        match run.perform(&mut record) {
            Ok((outcome, end, usage)) => {
                record.end(end, usage)?;
                Ok(outcome)
            }
            Err(error) => {
                record.end(failed(&error), redoma_audit::event::Usage::default())?;
                Err(error)
            }
        }
    }
}

/// Without a gateway the only honest networks are none at all, and one that allows nothing.
fn require_no_gateway(policy: &ResolvedPolicy) -> Result<(), RunError> {
    let network = &policy.network;
    let needs = |what: String| Err(RunError::NeedsGateway { what });
    match network.default {
        NetworkDefault::None => return Ok(()),
        NetworkDefault::Allow => return needs("every host (`default = \"allow\"`)".into()),
        NetworkDefault::Ask => return needs("any host that you approve (`default = \"ask\"`)".into()),
        NetworkDefault::Deny => {}
    }
    match network.rules.iter().find(|rule| rule.action != Action::Deny) {
        Some(rule) => needs(format!("{} ({})", rule.host, rule.origin)),
        None if network.local != Default::default() => {
            needs("ports of this machine ([network.local])".into())
        }
        None => Ok(()),
    }
}
