//! The one way to sandboxes: the CLI, and later MCP and the dashboard, talk to [`Manager`] alone.

use std::io;
use std::net::SocketAddr;

use redoma_audit::{SessionId, Store};
use redoma_policy::ResolvedPolicy;

use crate::error::RunError;
use crate::homes::Homes;
use crate::machine;
use crate::native;
use crate::proxy::{self, Listening};
use crate::record::{RunRecord, failed};
use crate::retention;
use crate::run::{NetworkSummary, RunOutcome, RunRequest};
use crate::unfinished::{self, Finished};

/// Makes, drives and ends sandboxes.
#[derive(Clone, Debug)]
pub struct Manager {
    homes: Homes,
}

impl Manager {
    /// A manager of what is kept in `homes`.
    pub fn new(homes: Homes) -> Self {
        Self { homes }
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
        if let Some(missing) =
            native::overlay_wanted(&request.policy).then(|| machine::missing_overlay(&probes)).flatten()
        {
            return Err(RunError::NoBoundary { missing });
        }
        let store = Store::open(self.homes.state(), &self.homes.keys())?;
        let told = finish_killed(&self.homes);
        let session = SessionId::random()?;
        let mut record = RunRecord::begin(&store, session, request, tier)?;
        let run = native::Run { homes: &self.homes, store: &store, request, tier, session };
        match run.perform(&mut record) {
            Ok((mut outcome, end, usage)) => {
                record.end(end, usage)?;
                if let Some(keep) = request.policy.audit.retention {
                    retention::once_a_day(&self.homes, &store, keep);
                }
                outcome.notes.splice(0..0, told);
                Ok(outcome)
            }
            Err(error) => {
                record.end(failed(&error), redoma_audit::event::Usage::default())?;
                Err(error)
            }
        }
    }
}

impl Manager {
    /// Serves a proxy in the foreground until a signal ends it: the gateway without a sandbox. `ready` is told where.
    ///
    /// # Errors
    /// [`RunError`] when it cannot listen, or when the record broke.
    pub fn proxy(
        &self,
        policy: &ResolvedPolicy,
        listen: SocketAddr,
        ready: &mut dyn FnMut(&Listening) -> io::Result<()>,
    ) -> Result<NetworkSummary, RunError> {
        require_no_credentials(policy)?;
        proxy::serve(&self.homes, policy, listen, ready)
    }
}

/// What killed keepers left undone is done before a session could take what others made for what had been there.
fn finish_killed(homes: &Homes) -> Vec<String> {
    match unfinished::finish_all(homes) {
        Ok(finished) => finished.iter().flat_map(Finished::told).collect(),
        Err(error) => vec![format!("what killed sessions left could not be looked at: {error}")],
    }
}

/// A credential that would not be put in on the way must not be passed in the open instead.
fn require_no_credentials(policy: &ResolvedPolicy) -> Result<(), RunError> {
    policy.secrets.first().map_or(Ok(()), |secret| Err(RunError::NoCredentials { name: secret.name.clone() }))
}
