//! A driver that makes nothing: calls are recorded, and what a sandbox would hold lives in memory.
//!
//! It knows a few commands, in the words that real ones have (`programs`), so that it can pass the driver contract and those who
//! use drivers can be tested without a kernel's help.

mod files;
mod process;
mod programs;

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{
    Command, Driver, DriverError, DriverName, Files, Histories, Info, Name, Past, Pausing, Process,
    SandboxId, SnapshotInfo, Snapshots, Spec, State, Statistics, Stats, Streams,
};
use files::Tree;
use process::{Begun, Clock};

/// A driver whose sandboxes are a story. Clones share it.
#[derive(Clone, Default)]
pub struct Mock(Arc<Mutex<World>>);

/// A call, in the order in which they came: the method's name, and whom it was for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The method.
    pub method: &'static str,
    /// The sandbox's or the snapshot's name, or its id where there is none of that id.
    pub of: String,
    /// The command, of an `exec`.
    pub argv: Vec<String>,
}

#[derive(Default)]
struct World {
    calls: Vec<Call>,
    sandboxes: BTreeMap<SandboxId, Sandbox>,
    snapshots: BTreeMap<Name, (SnapshotInfo, Tree)>,
}

struct Sandbox {
    info: Info,
    tree: Tree,
    clock: Arc<Clock>,
    past: Vec<Past>,
}

impl Mock {
    /// One with no sandboxes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What was asked of it so far.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        self.world().calls.clone()
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a call for a sandbox, and does it.
    fn with<T>(
        &self,
        method: &'static str,
        id: &SandboxId,
        act: impl FnOnce(&mut Sandbox) -> Result<T, DriverError>,
    ) -> Result<T, DriverError> {
        let mut world = self.world();
        let of = world.sandboxes.get(id).map_or_else(|| id.to_string(), |one| one.info.spec.name.to_string());
        world.calls.push(Call { method, of, argv: Vec::new() });
        act(world.sandboxes.get_mut(id).ok_or_else(|| DriverError::NoSandbox(id.to_string()))?)
    }
}

impl Driver for Mock {
    fn name(&self) -> DriverName {
        DriverName::Mock
    }

    fn create(&self, spec: &Spec) -> Result<Info, DriverError> {
        self.world().create("create", spec, Tree::default())
    }

    fn exec(
        &self,
        id: &SandboxId,
        command: &Command,
        streams: &Streams<'_>,
    ) -> Result<Box<dyn Process>, DriverError> {
        let argv: Vec<String> = command.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let given = streams.given.iter().map(BorrowedFd::try_clone_to_owned).collect::<Result<_, _>>();
        let given =
            given.map_err(|source| DriverError::Store { what: "copy", path: PathBuf::new(), source })?;
        let (mut process, past) = self.with("exec", id, |sandbox| {
            sandbox.clock.go_on();
            sandbox.info.used = now();
            let begun = Begun { spec: &sandbox.info.spec, tree: &sandbox.tree, command, streams, given };
            let (process, past) = begun.begin(&sandbox.clock)?;
            sandbox.past.push(past);
            Ok((process, sandbox.past.len() - 1))
        })?;
        if let Some(call) = self.world().calls.last_mut() {
            call.argv = argv;
        }
        process.of(self.clone(), *id, past);
        Ok(Box::new(process))
    }

    fn files(&self, id: &SandboxId) -> Result<Box<dyn Files>, DriverError> {
        self.with("files", id, |sandbox| Ok(Box::new(sandbox.tree.clone()) as Box<dyn Files>))
    }

    fn stop(&self, id: &SandboxId) -> Result<(), DriverError> {
        self.with("stop", id, |sandbox| {
            sandbox.clock.end_all();
            Ok(())
        })
    }

    fn destroy(&self, id: &SandboxId) -> Result<(), DriverError> {
        let gone = self.with("destroy", id, |sandbox| {
            sandbox.clock.end_all();
            Ok(())
        });
        self.world().sandboxes.remove(id);
        match gone {
            Err(DriverError::NoSandbox(_)) => Ok(()),
            other => other,
        }
    }

    fn list(&self) -> Result<Vec<Info>, DriverError> {
        let mut all: Vec<Info> = self.world().sandboxes.values().map(Sandbox::info).collect();
        all.sort_by_key(|info| info.spec.created);
        Ok(all)
    }

    fn pausing(&self) -> Option<&dyn Pausing> {
        Some(self)
    }

    fn snapshots(&self) -> Option<&dyn Snapshots> {
        Some(self)
    }

    fn statistics(&self) -> Option<&dyn Statistics> {
        Some(self)
    }

    fn histories(&self) -> Option<&dyn Histories> {
        Some(self)
    }
}

impl Pausing for Mock {
    fn pause(&self, id: &SandboxId) -> Result<(), DriverError> {
        self.with("pause", id, |sandbox| match sandbox.clock.pause() {
            true => Ok(()),
            false => Err(DriverError::NotRunning(id.to_string())),
        })
    }

    fn resume(&self, id: &SandboxId) -> Result<(), DriverError> {
        self.with("resume", id, |sandbox| {
            sandbox.clock.go_on();
            Ok(())
        })
    }
}

impl Snapshots for Mock {
    fn snapshot(&self, id: &SandboxId, name: &Name) -> Result<SnapshotInfo, DriverError> {
        if self.world().snapshots.contains_key(name) {
            return Err(DriverError::NameTaken(name.clone()));
        }
        let (info, tree) = self.with("snapshot", id, |sandbox| {
            let of = sandbox.info.spec.clone();
            let (image, bytes) = (of.image.clone(), Some(sandbox.tree.bytes()));
            let (name, driver) = (name.clone(), DriverName::Mock);
            Ok((SnapshotInfo { name, of, driver, image, bytes, created: now() }, sandbox.tree.copy()))
        })?;
        self.world().snapshots.insert(name.clone(), (info.clone(), tree));
        Ok(info)
    }

    fn fork(&self, snapshot: &Name, spec: &Spec) -> Result<Info, DriverError> {
        let mut world = self.world();
        let found = world.snapshots.get(snapshot).map(|(_, tree)| tree.copy());
        let tree = found.ok_or_else(|| DriverError::NoSnapshot(snapshot.to_string()))?;
        world.create("fork", spec, tree)
    }

    fn snapshots(&self) -> Result<Vec<SnapshotInfo>, DriverError> {
        let mut all: Vec<_> = self.world().snapshots.values().map(|(info, _)| info.clone()).collect();
        all.sort_by_key(|info| info.created);
        Ok(all)
    }

    fn remove(&self, name: &Name) -> Result<(), DriverError> {
        let mut world = self.world();
        world.calls.push(Call { method: "remove", of: name.to_string(), argv: Vec::new() });
        let gone = world.snapshots.remove(name);
        gone.map(drop).ok_or_else(|| DriverError::NoSnapshot(name.to_string()))
    }
}

impl Statistics for Mock {
    fn stats(&self, id: &SandboxId) -> Result<Stats, DriverError> {
        self.with("stats", id, |sandbox| {
            let (pids, disk) = (Some(sandbox.clock.running() as u64), Some(sandbox.tree.bytes()));
            Ok(Stats { pids, disk, ..Stats::default() })
        })
    }
}

impl Histories for Mock {
    fn history(&self, id: &SandboxId) -> Result<Vec<Past>, DriverError> {
        self.with("history", id, |sandbox| Ok(sandbox.past.clone()))
    }
}

impl World {
    fn create(&mut self, method: &'static str, spec: &Spec, tree: Tree) -> Result<Info, DriverError> {
        self.calls.push(Call { method, of: spec.name.to_string(), argv: Vec::new() });
        if self.sandboxes.values().any(|one| one.info.spec.name == spec.name) {
            return Err(DriverError::NameTaken(spec.name.clone()));
        }
        let (driver, state, notes) = (DriverName::Mock, State::Stopped, Vec::new());
        let info = Info {
            spec: spec.clone(),
            driver,
            state,
            digest: None,
            used: spec.created,
            notes,
            entrypoint: Vec::new(),
            cmd: Vec::new(),
        };
        let made = Sandbox { info: info.clone(), tree, clock: Arc::default(), past: Vec::new() };
        self.sandboxes.insert(spec.id, made);
        Ok(info)
    }
}

impl Sandbox {
    fn info(&self) -> Info {
        Info { state: self.clock.state(), ..self.info.clone() }
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
