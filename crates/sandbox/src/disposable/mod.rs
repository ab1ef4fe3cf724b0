//! The native driver: sandboxes on this machine's own kernel that outlive one command.
//!
//! A sandbox is a folder ([`store`]). The first command starts its [`keeper`], which is asked for everything else
//! ([`control`]) and ends when nothing has gone on for a while.

mod checkpoint;
mod command;
mod compare;
mod control;
mod drawing;
mod files;
mod gauge;
mod guard;
mod ids;
mod images;
mod keeper;
mod logs;
mod mapped;
mod peers;
mod process;
mod raise;
mod snapshots;
mod stats;
mod store;

use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

use redoma_audit::Event;
use redoma_audit::event::Outcome;

use control::{Ask, AskExec, Keepers, Line, Tell};
use process::Remote;
use store::{Base, Claimed, Record, Store};

use crate::driver::{
    Checkpoints, Command, Comparing, Dialing, Driver, DriverError, DriverName, Files, Histories, ImageName,
    Info, Logging, Past, Pausing, Process, Rules, SandboxId, Snapshots, Spec, State, Statistics, Streams,
};
use crate::homes::Homes;

pub(crate) use drawing::policy;
pub use keeper::keep;
pub(crate) use peers::Peers;

/// Sandboxes on this machine's kernel.
#[derive(Clone, Debug)]
pub struct Native {
    homes: Homes,
    store: Store,
    keepers: Keepers,
}

/// How long a keeper has to end everything.
const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks at whether it has.
const PAUSE: Duration = Duration::from_micros(500);

impl Native {
    /// The driver of what is kept in `homes`.
    #[must_use]
    pub fn new(homes: Homes) -> Self {
        Self { store: Store::new(&homes), keepers: Keepers::of_this_program(&homes), homes }
    }

    /// The same for a program that is not redoma itself: `redoma` is what keepers are.
    #[must_use]
    pub fn with_keeper(mut self, redoma: std::path::PathBuf) -> Self {
        self.keepers.program = redoma;
        self
    }

    /// What was being created or removed when its process was killed.
    pub(crate) fn torn(&self) -> Vec<std::path::PathBuf> {
        self.store.torn()
    }

    pub(crate) fn remove_torn(&self, path: &std::path::Path) -> bool {
        self.store.remove_folder(path).is_ok()
    }

    fn base(&self, image: &ImageName) -> Result<Base, DriverError> {
        match image {
            ImageName::Host => Ok(Base::default()),
            ImageName::Folder(path) => {
                Ok(Base { chain: vec![drawing::folder_layer(path)?], ..Base::default() })
            }
            ImageName::Reference(name) => self.base_of(name),
        }
    }

    fn make(&self, spec: &Spec, base: Base) -> Result<Info, DriverError> {
        drawing::check_mounts(&self.homes, &spec.mounts)?;
        // What cannot be enforced is refused now, not at the first command.
        if spec.rules != Rules::default() || !spec.publish.is_empty() {
            policy(&self.homes, spec)?;
        }
        let record = Record { spec: spec.clone(), base, freezing: None };
        self.store.create(&record)?;
        Ok(self.describe(record))
    }

    fn describe(&self, record: Record) -> Info {
        let id = record.spec.id;
        let (_, missing) = drawing::identity(&record.spec);
        let note = |missing: String| {
            format!(
                "only one user exists inside, so packages and services that need others fail: {missing} is missing"
            )
        };
        Info {
            state: self.state(&id),
            used: self.store.used(&id),
            notes: missing.map(note).into_iter().collect(),
            digest: record.base.digest,
            entrypoint: record.base.says.entrypoint,
            cmd: record.base.says.cmd,
            driver: DriverName::Native,
            spec: record.spec,
        }
    }

    fn state(&self, id: &SandboxId) -> State {
        match (self.store.is_held(id), self.store.folder(id).join(store::PAUSED).exists()) {
            (false, _) => State::Stopped,
            (true, true) => State::Paused,
            (true, false) => State::Running,
        }
    }

    /// Takes hold of a sandbox that nothing runs in, once its keeper has ended everything.
    fn claim_stopped(&self, id: &SandboxId) -> Result<Option<Claimed>, DriverError> {
        let folder = self.store.folder(id);
        let deadline = Instant::now() + PATIENCE;
        loop {
            if !folder.exists() {
                return Ok(None);
            }
            match Claimed::take(&folder) {
                Ok(Some(claimed)) => return Ok(Some(claimed)),
                Err(DriverError::NoSandbox(_)) => return Ok(None),
                Err(DriverError::Store { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                    return Ok(None);
                }
                Ok(None) if Instant::now() > deadline => return Err(store::busy(&folder)),
                Ok(None) => {}
                Err(error) => return Err(error),
            }
            if let Some(line) = Line::to_living(&self.store, id)? {
                // It answers when all is over, or is gone by then.
                let _ = line.exchange(&Ask::Stop, &[]);
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn ask(&self, id: &SandboxId, ask: &Ask) -> Result<(), DriverError> {
        let line = Line::to_living(&self.store, id)?;
        let line = line.ok_or_else(|| DriverError::NotRunning(id.to_string()))?;
        match line.exchange(ask, &[])? {
            (Tell::Failed(refusal), _) => Err(refusal.into()),
            _ => Ok(()),
        }
    }
}

impl Driver for Native {
    fn name(&self) -> DriverName {
        DriverName::Native
    }

    fn create(&self, spec: &Spec) -> Result<Info, DriverError> {
        // Nobody removes a layer before the record says that it is used.
        let of_image = matches!(spec.image, ImageName::Reference(_));
        let _held = of_image.then(|| self.images()?.hold().map_err(DriverError::from)).transpose()?;
        self.make(spec, self.base(&spec.image)?)
    }

    fn exec(
        &self,
        id: &SandboxId,
        command: &Command,
        streams: &Streams<'_>,
    ) -> Result<Box<dyn Process>, DriverError> {
        if self.store.read(id)?.is_none() {
            return Err(DriverError::NoSandbox(id.to_string()));
        }
        let bytes = |text: &std::ffi::OsString| text.as_bytes().to_vec();
        let ask = Ask::Exec(Box::new(AskExec {
            argv: command.argv.iter().map(bytes).collect(),
            env: command.env.iter().map(|(name, value)| (bytes(name), bytes(value))).collect(),
            workdir: command.workdir.clone(),
            timeout: command.timeout,
            detached: command.detached,
            restart: command.restart,
            log: command.log.as_ref().map(ToString::to_string),
            terminal: streams.terminal,
        }));
        match Line::ask(&self.store, &self.keepers, id, &ask, &streams.given)? {
            (line, Tell::Started { pid }, along) => {
                Ok(Box::new(Remote::new(line, pid, along.into_iter().next())))
            }
            _ => Err(DriverError::Gone(None)),
        }
    }

    fn files(&self, id: &SandboxId) -> Result<Box<dyn Files>, DriverError> {
        self.reach(id)
    }

    fn stop(&self, id: &SandboxId) -> Result<(), DriverError> {
        let stopped = self.claim_stopped(id)?;
        stopped.map(drop).ok_or_else(|| DriverError::NoSandbox(id.to_string()))
    }

    fn destroy(&self, id: &SandboxId) -> Result<(), DriverError> {
        let Some(claimed) = self.claim_stopped(id)? else { return Ok(()) };
        let record = self.store.read(id).ok().flatten();
        let name = record.as_ref().map(|record| record.spec.name.clone());
        self.store.remove(claimed, name.as_ref())?;
        record.map_or(Ok(()), |record| self.store.drop_layers(&record.base))
    }

    fn list(&self) -> Result<Vec<Info>, DriverError> {
        self.store.sweep();
        let mut all = Vec::new();
        for id in self.store.ids()? {
            // What is being created is not there yet.
            all.extend(self.store.read(&id)?.map(|record| self.describe(record)));
        }
        all.sort_by(|a, b| (a.spec.created, &a.spec.name).cmp(&(b.spec.created, &b.spec.name)));
        Ok(all)
    }

    fn find(&self, text: &str) -> Result<SandboxId, DriverError> {
        self.store.find(text)
    }

    fn info(&self, id: &SandboxId) -> Result<Info, DriverError> {
        let record = self.store.read(id)?;
        record.map(|record| self.describe(record)).ok_or_else(|| DriverError::NoSandbox(id.to_string()))
    }

    fn pausing(&self) -> Option<&dyn Pausing> {
        Some(self)
    }

    fn snapshots(&self) -> Option<&dyn Snapshots> {
        Some(self)
    }

    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        Some(self)
    }

    fn comparing(&self) -> Option<&dyn Comparing> {
        Some(self)
    }

    fn statistics(&self) -> Option<&dyn Statistics> {
        Some(self)
    }

    fn logging(&self) -> Option<&dyn Logging> {
        Some(self)
    }

    fn dialing(&self) -> Option<&dyn Dialing> {
        Some(self)
    }

    fn histories(&self) -> Option<&dyn Histories> {
        Some(self)
    }
}

impl Pausing for Native {
    fn pause(&self, id: &SandboxId) -> Result<(), DriverError> {
        self.ask(id, &Ask::Pause)
    }

    fn resume(&self, id: &SandboxId) -> Result<(), DriverError> {
        self.ask(id, &Ask::Resume)
    }
}

impl Histories for Native {
    fn history(&self, id: &SandboxId) -> Result<Vec<Past>, DriverError> {
        let recorded = |error: redoma_audit::Error| DriverError::Start(error.into());
        let log = redoma_audit::Store::open(self.homes.state(), &self.homes.keys()).map_err(recorded)?;
        let mut past: Vec<Past> = Vec::new();
        for session in self.store.sessions(id) {
            // Purged since, perhaps.
            let Ok(records) = log.read(session) else { continue };
            let mut open: Vec<(u32, usize)> = Vec::new();
            for record in records.flatten() {
                match record.event {
                    Event::Exec(exec) => {
                        open.push((exec.pid, past.len()));
                        past.push(Past {
                            argv: exec.argv.as_slice().iter().map(|word| word.as_str().to_owned()).collect(),
                            began_us: record.at.as_microsecond(),
                            ran_us: None,
                            exit: None,
                            session: Some(session.to_string()),
                        });
                    }
                    Event::ExecEnd(end) => {
                        let Some(at) = open.iter().position(|(pid, _)| *pid == end.pid) else { continue };
                        let (_, of) = open.swap_remove(at);
                        past[of].ran_us = Some(end.wall_us);
                        past[of].exit = Some(exit_code(&end.outcome));
                    }
                    _ => {}
                }
            }
        }
        Ok(past)
    }
}

fn exit_code(outcome: &Outcome) -> i32 {
    match outcome {
        Outcome::Exited { code } => *code,
        Outcome::Signaled { signal } => 128 + signal,
        Outcome::TimedOut => 124,
        Outcome::Cancelled | Outcome::Failed { .. } => 125,
    }
}
