//! The one way to sandboxes: the CLI, and later MCP and the dashboard, talk to [`Manager`] alone. For one command it makes
//! a sandbox itself; for those that outlive a command it knows the drivers.

use std::io;
use std::net::SocketAddr;
use std::sync::OnceLock;

use redoma_audit::{SessionId, Store};
use redoma_policy::ResolvedPolicy;

use crate::disposable::Native;
use crate::driver::{Driver, DriverError, DriverName, Name, SandboxId};
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
pub struct Manager {
    homes: Homes,
    native: Native,
    others: Vec<Other>,
}

/// Another driver than the native one, reached when it is needed.
struct Other {
    name: DriverName,
    reach: Box<dyn Fn() -> Result<Box<dyn Driver>, DriverError> + Send + Sync>,
    reached: OnceLock<Box<dyn Driver>>,
}

/// A sandbox, and what drives it.
pub struct Driven<'m> {
    /// What drives it.
    pub driver: &'m dyn Driver,
    /// Which it is.
    pub id: SandboxId,
}

impl Manager {
    /// A manager of what is kept in `homes`.
    pub fn new(homes: Homes) -> Self {
        Self { native: Native::new(homes.clone()), homes, others: Vec::new() }
    }

    /// Adds a driver. `reach` is called when somebody needs it, once.
    #[must_use]
    pub fn with_driver(
        mut self,
        name: DriverName,
        reach: impl Fn() -> Result<Box<dyn Driver>, DriverError> + Send + Sync + 'static,
    ) -> Self {
        self.others.push(Other { name, reach: Box::new(reach), reached: OnceLock::new() });
        self
    }

    /// Where everything is kept.
    pub fn homes(&self) -> &Homes {
        &self.homes
    }

    /// The native driver, for what only it has.
    pub fn native(&self) -> &Native {
        &self.native
    }

    /// A driver by its name.
    ///
    /// # Errors
    /// [`DriverError::Unsupported`] where there is none, or why it cannot be reached.
    pub fn driver(&self, name: DriverName) -> Result<&dyn Driver, DriverError> {
        if name == DriverName::Native {
            return Ok(&self.native);
        }
        let other = self.others.iter().find(|other| other.name == name);
        let other = other.ok_or_else(|| DriverError::Unsupported {
            driver: name,
            what: "be used here".into(),
            hint: "use `--driver native`".into(),
        })?;
        other.get()
    }

    /// Every driver that can be reached; the native one first.
    pub fn drivers(&self) -> impl Iterator<Item = &dyn Driver> {
        let others = self.others.iter().filter_map(|other| other.get().ok());
        std::iter::once(&self.native as &dyn Driver).chain(others)
    }

    /// Which sandbox is meant by a name, an id, or the beginning of one, of whichever driver.
    ///
    /// # Errors
    /// [`DriverError::NoSandbox`] and [`DriverError::Ambiguous`].
    pub fn find(&self, text: &str) -> Result<Driven<'_>, DriverError> {
        let mut missing = DriverError::NoSandbox(text.to_owned());
        for driver in self.drivers() {
            match driver.find(text) {
                Ok(id) => return Ok(Driven { driver, id }),
                Err(error @ DriverError::Ambiguous(_)) => missing = error,
                Err(_) => {}
            }
        }
        Err(missing)
    }

    /// Which driver has a snapshot.
    ///
    /// # Errors
    /// [`DriverError::NoSnapshot`].
    pub fn find_snapshot(&self, name: &Name) -> Result<&dyn Driver, DriverError> {
        let has = |driver: &&dyn Driver| {
            let all = driver.snapshots().and_then(|snapshots| snapshots.snapshots().ok());
            all.is_some_and(|all| all.iter().any(|snapshot| snapshot.name == *name))
        };
        self.drivers().find(has).ok_or_else(|| DriverError::NoSnapshot(name.to_string()))
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

impl Other {
    fn get(&self) -> Result<&dyn Driver, DriverError> {
        if self.reached.get().is_none() {
            // Another thread may have been quicker: its is as good.
            let _ = self.reached.set((self.reach)()?);
        }
        let reached = self.reached.get();
        reached.map(|driver| &**driver).ok_or(DriverError::Gone(None))
    }
}

impl Driven<'_> {
    /// A capability of its driver's.
    ///
    /// # Errors
    /// [`DriverError::Unsupported`], saying that the driver cannot do `what`.
    pub fn able<'d, T: ?Sized>(
        &'d self,
        what: &str,
        capability: impl FnOnce(&'d dyn Driver) -> Option<&'d T>,
    ) -> Result<&'d T, DriverError> {
        capability(self.driver).ok_or_else(|| DriverError::Unsupported {
            driver: self.driver.name(),
            what: what.to_owned(),
            hint: "make it with `--driver native`".into(),
        })
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
