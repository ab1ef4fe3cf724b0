//! The native driver: one sandbox on this machine's own kernel, for as long as one command runs.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use redoma_audit::SessionId;
use redoma_audit::event::{Outcome, Usage};
use redoma_jail::{Blueprint, Canary, Ending, Exec, Identity, Jail};
use redoma_policy::{Access, ResolvedPolicy, Tier, Workspace};

use crate::decoy::Seed;
use crate::error::RunError;
use crate::folder;
use crate::held::Held;
use crate::homes::Homes;
use crate::keeper::{self, End, Keeper, News};
use crate::kept::{self, Kept};
use crate::manager::{RunEnd, RunOutcome, RunRequest};
use crate::quarantine::{Quarantined, Watch};
use crate::record::{RunRecord, micros};
use crate::streams::Streams;
use crate::terminal::Relay;
use crate::undo::{self, Backup, UndoError};
use crate::view::{self, Findings, OverlayFolders, View};
use crate::walk::{Limits as WalkLimits, Walk};

/// Everything one run needs to know.
pub(crate) struct Run<'a> {
    pub(crate) homes: &'a Homes,
    pub(crate) request: &'a RunRequest,
    pub(crate) tier: Tier,
    pub(crate) session: SessionId,
}

/// Whether changes to the project are to be kept aside.
pub(crate) fn overlay_wanted(policy: &ResolvedPolicy) -> bool {
    view::wants_overlay(policy)
}

impl Run<'_> {
    /// Creates, executes, destroys. What is written into the record comes in the order in which it happens.
    pub(crate) fn perform(&self, record: &mut RunRecord) -> Result<(RunOutcome, Outcome, Usage), RunError> {
        let began = Instant::now();
        let streams = Streams::of_caller()?;
        let view = self.view()?;
        for (path, _) in &view.covered {
            record.covered(path)?;
        }
        let watch = self.watch(&view.absent)?;
        let held = (self.tier == Tier::Full).then(|| Held::new(&view.layout)).transpose()?;
        let (blueprint, _listener) = self.blueprint(&view)?;
        let raising = Jail::start(&blueprint)?;
        let (raised, backup) = self.back_up_meanwhile(|| raising.ready());
        let (jail, enforced) = raised?;
        record.built(enforced.landlock_abi, &blueprint.canary)?;
        let mut notes = Vec::new();
        let mut kept = self.keep(backup, &mut notes)?;

        let signals = keeper::take_signals()?;
        let running = jail.exec(self.exec(streams), &streams.handed_through())?;
        record.started(running.pid.unsigned_abs(), self.request)?;
        let relay = running
            .terminal
            .map(|inner| Relay::new(inner, streams))
            .transpose()
            .map_err(RunError::Terminal)?;
        let time = self.request.policy.limits.time.map(|time| time.0);
        let mut keeper = Keeper {
            jail: &jail,
            signals,
            relay,
            watch,
            held,
            deadline: time.map(|time| Instant::now() + time),
        };
        let mut quarantined = Vec::new();
        let end = keeper.watch_over(&mut |news| match news {
            News::Quarantined(found) => note(record, &mut quarantined, found),
            News::HeldAgain(paths) => paths.iter().try_for_each(|path| record.held_again(path)),
        })?;
        let Keeper { relay, watch, .. } = keeper;

        let usage = jail.end();
        if let Some(mut relay) = relay {
            relay.drain();
        }
        if let Some(mut watch) = watch {
            note(record, &mut quarantined, watch.sweep())?;
        }
        if let (End::TimedOut, Some(time)) = (end, time) {
            record.time_limit(time)?;
        }
        if let Some(kept) = &mut kept {
            kept.end();
            self.save(kept)?;
        }
        self.clean()?;
        let (outcome, end, usage) = self.outcome(end, enforced, &view, usage, began.elapsed());
        Ok((RunOutcome { quarantined, notes, ..outcome }, end, usage))
    }

    fn view(&self) -> Result<View, RunError> {
        let policy = &self.request.policy;
        let matcher = view::matcher(policy);
        let cache = self.homes.cache();
        let walk = Walk {
            matcher: &matcher,
            fingerprint: &view::fingerprint(policy),
            limits: WalkLimits::default(),
            cache: Some(&cache),
            sought: &view::sought(policy),
        };
        let found = walk.run(&policy.filesystem.walk_roots())?;
        let findings = Findings::collect(policy, &found);
        match self.tier {
            Tier::Full => {
                let seed = Seed::random().map_err(RunError::Wait)?;
                let overlay = overlay_wanted(policy).then(|| self.overlay_folders()).transpose()?;
                view::full(policy, &findings, &seed, overlay.as_ref())
            }
            Tier::Landlock => view::landlock(policy, &findings, &self.temporary()?),
        }
    }

    /// The state of a direct workspace is kept while init raises the bell: both take about as long, and the command
    /// starts when both are done.
    fn back_up_meanwhile<T>(&self, raise: impl FnOnce() -> T) -> (T, Option<Result<Backup, UndoError>>) {
        let files = &self.request.policy.filesystem;
        let writable =
            files.grant_for(&self.request.policy.project).is_some_and(|grant| grant.access == Access::Write);
        if !(files.undo && writable && files.workspace == Workspace::Direct) {
            return (raise(), None);
        }
        let limits = undo::Limits { bytes: files.undo_max.0, ..undo::Limits::default() };
        let state = self.homes.state().join("undo");
        let back_up = || undo::prepare(&self.request.policy.project, &self.request.git_dirs, &state, &limits);
        std::thread::scope(|scope| {
            let backup = scope.spawn(back_up);
            let raised = raise();
            let backup = backup.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (raised, Some(backup))
        })
    }

    /// Notes what there will be to undo or to apply. A project that is too large to keep is no reason not to run, but
    /// one to say so.
    fn keep(
        &self,
        backup: Option<Result<Backup, UndoError>>,
        notes: &mut Vec<String>,
    ) -> Result<Option<Kept>, RunError> {
        let backup = match backup.transpose() {
            Ok(backup) => backup,
            Err(error) if error.is_limit() => {
                notes.push(format!("no undo for this session: {error}"));
                None
            }
            Err(error) => return Err(error.into()),
        };
        let policy = &self.request.policy;
        if backup.is_none() && !overlay_wanted(policy) {
            return Ok(None);
        }
        let kept = Kept::begin(self.session, &policy.project, policy.filesystem.workspace, backup);
        self.save(&kept)?;
        Ok(Some(kept))
    }

    fn save(&self, kept: &Kept) -> Result<(), RunError> {
        let failed = |source| RunError::Prepare { what: "the session's folder", path: self.folder(), source };
        kept.save(self.homes).map_err(failed)
    }

    /// Removes what only the running session needed.
    fn clean(&self) -> Result<(), RunError> {
        let remove = |path: PathBuf| match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(RunError::Prepare { what: "the clean-up", path, source: error })
            }
            _ => Ok(()),
        };
        if self.tier == Tier::Landlock {
            remove(self.folder().join("tmp"))?;
        }
        if overlay_wanted(&self.request.policy) {
            let work = self.folder().join("overlay/work");
            // The kernel's own folder in it is closed to everybody, its owner too.
            let _ = fs::set_permissions(work.join("work"), fs::Permissions::from_mode(0o700));
            remove(work)?;
        }
        // Gone with the last thing that was kept in it.
        let _ = fs::remove_dir(self.folder());
        Ok(())
    }

    fn folder(&self) -> PathBuf {
        kept::folder_of(self.homes, self.session)
    }

    fn make(&self, path: PathBuf, what: &'static str) -> Result<PathBuf, RunError> {
        folder::private(&path).map_err(|source| RunError::Prepare { what, path: path.clone(), source })?;
        Ok(path)
    }

    fn overlay_folders(&self) -> Result<OverlayFolders, RunError> {
        let below = |name: &str| self.make(self.folder().join("overlay").join(name), "the overlay");
        Ok(OverlayFolders { upper: below("upper")?, work: below("work")? })
    }

    fn temporary(&self) -> Result<PathBuf, RunError> {
        self.make(self.folder().join("tmp"), "the folder for temporary files")
    }

    fn watch(&self, absent: &[PathBuf]) -> Result<Option<Watch>, RunError> {
        if absent.is_empty() {
            return Ok(None);
        }
        let grants = self.request.policy.filesystem.grants.iter();
        let roots: Vec<PathBuf> =
            grants.filter(|grant| grant.access == Access::Write).map(|grant| grant.path.clone()).collect();
        Ok(Some(Watch::new(&roots, absent, &self.folder().join("quarantine"))?))
    }

    fn blueprint(&self, view: &View) -> Result<(Blueprint, TcpListener), RunError> {
        let (canary, listener) = self.canary()?;
        let policy = &self.request.policy;
        let blueprint = Blueprint {
            tier: self.tier,
            identity: Identity::of_caller(false),
            layout: view.layout.clone(),
            access: view.access.clone(),
            nested_userns: policy.kernel.nested_userns,
            private_bytes: policy.limits.disk.map_or_else(default_private_bytes, |disk| disk.0),
            rlimits: Vec::new(),
            canary,
        };
        Ok((blueprint, listener))
    }

    /// Three things that work out here and must not in there.
    fn canary(&self) -> Result<(Canary, TcpListener), RunError> {
        let folder = self.make(self.homes.state().join("canary"), "the canary's folder")?;
        let read = folder.join("secret");
        let prepare =
            |path: &Path, source| RunError::Prepare { what: "the canary", path: path.to_owned(), source };
        if !read.exists() {
            let mut options = fs::OpenOptions::new();
            options
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&read)
                .map_err(|e| prepare(&read, e))?;
        }
        fs::File::open(&read).map_err(|source| prepare(&read, source))?;
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|source| prepare(&folder, source))?;
        let connect = listener.local_addr().map_err(|source| prepare(&folder, source))?.port();
        Ok((Canary { read, write: folder, connect }, listener))
    }

    fn exec(&self, streams: Streams) -> Exec {
        let variables = self.request.variables.iter().cloned();
        let mut environment = self.request.policy.environment.build(variables);
        let mut set = |name: &str, value: &std::ffi::OsStr| {
            environment.retain(|(known, _)| known != name);
            environment.push((name.into(), value.into()));
        };
        set("REDOMA_SESSION", self.session.as_str().as_ref());
        if self.tier == Tier::Landlock {
            set("TMPDIR", self.folder().join("tmp").as_os_str());
        }
        Exec {
            argv: self.request.argv.clone(),
            environment,
            folder: self.request.cwd.clone(),
            terminal: streams.terminal(),
        }
    }

    fn outcome(
        &self,
        end: End,
        enforced: redoma_jail::Enforced,
        view: &View,
        usage: redoma_sys::Usage,
        wall: Duration,
    ) -> (RunOutcome, Outcome, Usage) {
        let (end, outcome) = match end {
            End::Command(ending @ Ending::Exited(code)) => {
                (RunEnd::Command(ending), Outcome::Exited { code })
            }
            End::Command(ending @ Ending::Signaled(signal)) => {
                (RunEnd::Command(ending), Outcome::Signaled { signal })
            }
            End::TimedOut => (RunEnd::TimedOut, Outcome::TimedOut),
        };
        let project = &self.request.policy.project;
        let hidden = view.covered.iter().filter(|(path, _)| path.starts_with(project)).cloned().collect();
        let recorded = Usage {
            wall_us: micros(wall),
            user_us: micros(usage.user),
            system_us: micros(usage.system),
            peak_memory: Some(usage.peak_memory),
            peak_pids: None,
        };
        let outcome_of_run = RunOutcome {
            session: self.session,
            end,
            tier: self.tier,
            enforced,
            hidden,
            quarantined: Vec::new(),
            wall,
            usage,
            notes: Vec::new(),
        };
        (outcome_of_run, outcome, recorded)
    }
}

fn note(record: &mut RunRecord, all: &mut Vec<Quarantined>, found: Vec<Quarantined>) -> Result<(), RunError> {
    for one in found {
        record.quarantined(&one)?;
        all.push(one);
    }
    Ok(())
}

/// A quarter of the machine's memory for each private file system: room for a build, not for the whole machine.
fn default_private_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram * u64::from(info.mem_unit) / 4
}
