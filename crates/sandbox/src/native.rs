//! The native driver: one sandbox on this machine's own kernel, for as long as one command runs.

mod drawing;

pub(crate) use drawing::default_private_bytes;

use std::ffi::OsString;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Instant;

use redoma_audit::event::{Answer, Outcome, Usage};
use redoma_audit::{SessionId, Store};
use redoma_jail::limits::{self, Claim, Limits, Scraps, Wanted};
use redoma_jail::{Enforced, Jail};
use redoma_policy::{Access, ResolvedPolicy, Tier, Workspace};

use crate::decoy::Seed;
use crate::error::RunError;
use crate::folder;
use crate::gateway::{Prepared, Serving};
use crate::gitguard::{self, Ground};
use crate::held::Held;
use crate::homes::Homes;
use crate::keeper::{self, Keeper, News};
use crate::kept::{self, Kept};
use crate::leftovers;
use crate::quarantine::{Quarantined, Watch};
use crate::record::{self, RunRecord, micros};
use crate::run::{NetworkSummary, RunEnd, RunOutcome, RunRequest};
use crate::streams::Streams;
use crate::terminal::Relay;
use crate::undo::{self, Backup, UndoError};
use crate::unfinished::{self, Noted, Unfinished};
use crate::view::{self, Findings, OverlayFolders, View};
use crate::walk::Limits as WalkLimits;

/// Everything one run needs to know.
pub(crate) struct Run<'a> {
    pub(crate) homes: &'a Homes,
    pub(crate) store: &'a Store,
    pub(crate) request: &'a RunRequest,
    pub(crate) tier: Tier,
    pub(crate) session: SessionId,
}

/// A sandbox whose boundary stands.
struct Sandbox {
    view: View,
    jail: Jail,
    enforced: Enforced,
    limits: Limits,
    watch: Option<Watch>,
    /// For the janitor, as long as this is not done.
    unfinished: Option<Noted>,
    held: Option<Held>,
    kept: Option<Kept>,
    gateway: Option<Serving>,
    /// What programs are told about the network.
    variables: Vec<(String, OsString)>,
    notes: Vec<String>,
    quarantined: Vec<Quarantined>,
    network: NetworkSummary,
    /// Tells others that the session's temporary folder is in use.
    _claim: Option<Claim>,
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
        let mut sandbox = self.create(record)?;
        let end = self.execute(&mut sandbox, streams, record);
        // However it ended: everything inside ends, and what should not be there goes, before anything else may fail.
        sandbox.jail.finish();
        let served = sandbox.end_gateway(record);
        let swept = sandbox.sweep(record);
        let judged = self.judge_repositories(&mut sandbox, record);
        if let Some(unfinished) = sandbox.unfinished.take() {
            unfinished.remove().map_err(|source| self.not_kept(source))?;
        }
        let end = end?;
        served.and(swept).and(judged)?;
        self.destroy(sandbox, end, began, record)
    }

    /// Everything up to a boundary that stands, and has been tried.
    fn create(&self, record: &mut RunRecord) -> Result<Sandbox, RunError> {
        let mut view = self.view()?;
        let prepared = self.prepare_gateway(&mut view)?;
        for (path, _) in &view.covered {
            record.covered(path)?;
        }
        let watch = self.watch(&view.absent)?;
        let held = (self.tier == Tier::Full).then(|| Held::new(&view.layout));
        let ground = Ground::of(&self.request.policy);
        let leaves = watch.is_some() || !ground.is_empty();
        let finish = || drop(unfinished::finish_own(self.homes, self.session));
        let finish = leaves.then_some(&finish as &dyn Fn());
        let limits =
            Limits::prepare(&self.wanted(), self.tier, self.session.as_str(), self.scraps(), finish)?;
        // After the janitor was forked, which clears it away if this process is killed.
        let claim = (self.tier == Tier::Landlock).then(|| self.claim_temporary()).transpose()?;
        let variables = self.network_variables(prepared.as_ref())?;
        let wire = prepared.as_ref().map(Prepared::wire);
        let mut notes = prepared.as_ref().map(Prepared::notes).unwrap_or_default();
        let (blueprint, _listener) = self.blueprint(&view, &limits, wire)?;
        let raising = Jail::start(&blueprint)?;
        let (raised, backup) = self.back_up_meanwhile(|| raising.ready());
        let (mut jail, enforced) = raised?;
        limits.enter(jail.pid())?;
        let unfinished = leaves
            .then(|| {
                let unfinished = Unfinished::of(jail.pid(), ground, &view.git, watch.as_ref());
                unfinished.note(self.homes, self.session).map_err(|source| self.not_kept(source))
            })
            .transpose()?;
        let policy = &self.request.policy;
        let gateway = prepared
            .map(|prepared| prepared.start(self.session, &mut jail, policy, self.tier))
            .transpose()?;
        record.built(enforced.landlock_abi, &blueprint.canary)?;
        notes.extend(limits.enforced().iter().filter_map(caveat));
        let kept = self.keep(backup, &mut notes)?;
        Ok(Sandbox {
            view,
            jail,
            enforced,
            limits,
            watch,
            unfinished,
            held,
            kept,
            gateway,
            variables,
            notes,
            quarantined: Vec::new(),
            network: NetworkSummary::default(),
            _claim: claim,
        })
    }

    fn execute(
        &self,
        sandbox: &mut Sandbox,
        streams: Streams,
        record: &mut RunRecord,
    ) -> Result<RunEnd, RunError> {
        let signals = keeper::take_signals()?;
        let (handed, pipes) = streams.hand_in().map_err(RunError::Wait)?;
        let given: Vec<_> = handed.iter().map(AsFd::as_fd).collect();
        let running = sandbox.jail.exec(self.exec(streams, &sandbox.variables), &given)?;
        // The sandbox's ends: a pipe has its end only when nobody else holds it.
        drop(handed);
        record.started(running.pid.unsigned_abs(), self.request)?;
        let relay = running.terminal.map(|inner| Relay::new(inner, streams)).transpose();
        let time = self.request.policy.limits.time.map(|time| time.0);
        let mut keeper = Keeper {
            jail: &sandbox.jail,
            signals,
            relay: relay.map_err(RunError::Terminal)?,
            pipes,
            watch: sandbox.watch.as_mut(),
            held: sandbox.held.as_mut(),
            gateway: sandbox.gateway.as_mut(),
            asking: None,
            deadline: time.map(|time| Instant::now() + time),
            listen_at: Some(Instant::now() + keeper::UNWATCHED),
            stop_asked: false,
        };
        let (quarantined, network) = (&mut sandbox.quarantined, &mut sandbox.network);
        let end = keeper.watch_over(&mut |news| match news {
            News::Quarantined(found) => note(record, quarantined, found),
            News::HeldAgain(paths) => paths.iter().try_for_each(|path| record.held_again(path)),
            News::Network(event) => {
                network.add(&event);
                record.append(&event)
            }
            News::Answered(answered) => {
                if answered.answer == Answer::Always {
                    network.always.push(answered.target());
                }
                record.answered(&answered)
            }
            News::GatewayGone => record.gateway_gone(),
        })?;
        let Keeper { relay, mut pipes, .. } = keeper;
        // The last words come when nothing inside holds the other end any more.
        sandbox.jail.finish();
        if let Some(mut relay) = relay {
            relay.drain();
        }
        pipes.drain(end != RunEnd::TimedOut);
        if let (RunEnd::TimedOut, Some(time)) = (end, time) {
            record.time_limit(time)?;
        }
        Ok(end)
    }

    /// Moves away what git on the host would run.
    fn judge_repositories(&self, sandbox: &mut Sandbox, record: &mut RunRecord) -> Result<(), RunError> {
        let quarantine = self.folder().join("quarantine/git");
        let judged = gitguard::judge(&self.request.policy, self.homes, &sandbox.view.git, &quarantine);
        sandbox.notes.extend(judged.notes);
        note(record, &mut sandbox.quarantined, judged.quarantined)
    }

    /// Nothing runs any more: what is left is to look for what should not be there, and to clear up.
    fn destroy(
        &self,
        mut sandbox: Sandbox,
        end: RunEnd,
        began: Instant,
        record: &mut RunRecord,
    ) -> Result<(RunOutcome, Outcome, Usage), RunError> {
        for path in sandbox.held.iter().flat_map(Held::changed) {
            record.protected_changed(&path)?;
            sandbox
                .notes
                .push(format!("{path:?} is protected, and was changed from outside meanwhile: look at it"));
        }
        let hits = sandbox.limits.hits();
        hits.iter().try_for_each(|hit| record.limit_hit(hit))?;
        let peak = sandbox.limits.peak();
        for left in sandbox.limits.remove() {
            sandbox
                .notes
                .push(format!("{} could not be removed; `redoma doctor --gc` tries again", left.display()));
        }
        if let Some(kept) = &mut sandbox.kept {
            kept.end(self.homes).map_err(|source| self.not_kept(source))?;
        }
        let usage = sandbox.jail.end();
        let recorded = Usage {
            wall_us: micros(began.elapsed()),
            user_us: micros(usage.user),
            system_us: micros(usage.system),
            peak_memory: peak.memory.or(Some(usage.peak_memory)),
            peak_pids: peak.pids,
        };
        let project = &self.request.policy.project;
        let outcome = RunOutcome {
            session: self.session,
            end,
            tier: self.tier,
            enforced: sandbox.enforced,
            hidden: sandbox.view.covered.into_iter().filter(|(path, _)| path.starts_with(project)).collect(),
            quarantined: sandbox.quarantined,
            hits,
            wall: began.elapsed(),
            usage,
            network: sandbox.network,
            notes: sandbox.notes,
        };
        Ok((outcome, record::outcome(end), recorded))
    }

    fn wanted(&self) -> Wanted {
        let limits = &self.request.policy.limits;
        Wanted {
            cpus: limits.cpus.map(redoma_policy::Cpus::get),
            memory: limits.memory.map(|memory| memory.0),
            pids: limits.pids,
            disk: limits.disk.map(|disk| disk.0),
            time: limits.time.map(|time| time.0),
            strict: limits.strict,
        }
    }

    /// What must go with the session, also when the keeper is killed.
    fn scraps(&self) -> Option<Scraps> {
        let mut folders = Vec::new();
        if self.tier == Tier::Landlock {
            folders.push(self.temporary());
        }
        if overlay_wanted(&self.request.policy) {
            folders.push(self.folder().join("overlay/work"));
        }
        (!folders.is_empty()).then_some(Scraps { folders, remove: leftovers::remove_path })
    }

    fn view(&self) -> Result<View, RunError> {
        let policy = &self.request.policy;
        let found = view::search(policy, self.homes, WalkLimits::default())?;
        let findings = Findings::collect(policy, &found);
        let policy = &findings.spelled_out(policy);
        match self.tier {
            Tier::Full => {
                let seed = Seed::random().map_err(RunError::Wait)?;
                let overlay = overlay_wanted(policy).then(|| self.overlay_folders()).transpose()?;
                view::full(policy, &findings, &seed, overlay.as_ref())
            }
            Tier::Landlock => view::landlock(policy, &findings, &self.temporary()),
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
        kept.save(self.homes).map_err(|source| self.not_kept(source))?;
        Ok(Some(kept))
    }

    fn not_kept(&self, source: std::io::Error) -> RunError {
        RunError::Prepare { what: "the session's notes", path: self.homes.sessions(), source }
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

    /// The landlock tier's folder for temporary files: the host's `/tmp` is everybody's.
    fn temporary(&self) -> PathBuf {
        self.homes.run().join(format!("redoma-{}", self.session))
    }

    fn claim_temporary(&self) -> Result<Claim, RunError> {
        self.make(self.homes.run().to_owned(), "the folder for running sessions")?;
        let path = self.temporary();
        Claim::make(&path).map_err(|source| RunError::Prepare {
            what: "the folder for temporary files",
            path,
            source,
        })
    }

    fn watch(&self, absent: &[PathBuf]) -> Result<Option<Watch>, RunError> {
        if absent.is_empty() {
            return Ok(None);
        }
        let grants = self.request.policy.filesystem.grants.iter();
        let roots: Vec<PathBuf> = grants
            .filter(|grant| grant.access == Access::Write && grant.path.is_dir())
            .map(|grant| grant.path.clone())
            .collect();
        Ok(Some(Watch::new(&roots, absent, &self.folder().join("quarantine"))?))
    }
}

impl Sandbox {
    /// Lets what was sent arrive, and hears what is left to write down.
    fn end_gateway(&mut self, record: &mut RunRecord) -> Result<(), RunError> {
        let gateway = self.gateway.take();
        let network = &mut self.network;
        gateway.map_or(Ok(()), |gateway| {
            gateway.finish(&mut |event| {
                network.add(event);
                record.append(event)
            })
        })
    }

    /// Moves away what appeared where nothing may, when nothing runs any more that could make it again.
    fn sweep(&mut self, record: &mut RunRecord) -> Result<(), RunError> {
        let found = self.watch.as_mut().map(Watch::sweep).unwrap_or_default();
        note(record, &mut self.quarantined, found)
    }
}

/// All is noted before a failure is told: what was moved away was moved away, whether or not it could be written down.
fn note(record: &mut RunRecord, all: &mut Vec<Quarantined>, found: Vec<Quarantined>) -> Result<(), RunError> {
    /// Of more, the record holds none: a command that makes them is at it on purpose, to fill it.
    const RECORDED: usize = 256;
    const MOST: usize = 8192;
    let mut first = Ok(());
    for one in found {
        let written = if all.len() < RECORDED { record.quarantined(&one) } else { Ok(()) };
        first = first.and(written);
        all.push(one);
    }
    first?;
    if all.len() < MOST { Ok(()) } else { Err(RunError::Flood { limit: MOST }) }
}

/// A limit that holds less than its name says.
fn caveat(enforced: &limits::Enforced) -> Option<String> {
    let caveat = enforced.caveat.as_ref()?;
    Some(format!("the {} limit is held by {}: {caveat}", enforced.limit, enforced.by))
}
