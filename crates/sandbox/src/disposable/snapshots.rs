//! Snapshots: what a sandbox changed becomes a layer that it and others stand on.

use redoma_audit::SessionId;

use super::Native;
use super::control::{Ask, Line, Tell};
use super::store::{Claimed, Frozen, Layer, Record, busy, now};
use crate::driver::{DriverError, DriverName, Info, Name, SandboxId, SnapshotInfo, Snapshots, Spec};

impl Snapshots for Native {
    fn snapshot(&self, id: &SandboxId, name: &Name) -> Result<SnapshotInfo, DriverError> {
        if self.store.has_snapshot(name) {
            return Err(DriverError::NameTaken(name.clone()));
        }
        let folder = self.store.folder(id);
        let gone = || DriverError::NoSandbox(id.to_string());
        let mut record = self.store.read(id)?.ok_or_else(gone)?;
        self.retire(id)?;
        let frozen = match Claimed::take(&folder)? {
            Some(claimed) => self.freeze(&claimed, &mut record, name)?,
            None => self.copy_live(id, &record, name)?,
        };
        self.store.write_snapshot(&frozen)?;
        Ok(info(frozen))
    }

    fn fork(&self, snapshot: &Name, spec: &Spec) -> Result<Info, DriverError> {
        let frozen = self.store.snapshot(snapshot)?;
        self.make(spec, frozen.base)
    }

    fn snapshots(&self) -> Result<Vec<SnapshotInfo>, DriverError> {
        Ok(self.store.snapshots()?.into_iter().map(info).collect())
    }

    fn remove(&self, name: &Name) -> Result<(), DriverError> {
        self.store.remove_snapshot(name)
    }
}

impl Native {
    /// A keeper that only waits for the next command is in nobody's way.
    fn retire(&self, id: &SandboxId) -> Result<(), DriverError> {
        let Some(line) = Line::to_living(&self.store, id)? else { return Ok(()) };
        match line.exchange(&Ask::Retire, &[]) {
            Ok((Tell::Busy, _)) => Ok(()),
            // It ends, and takes a moment for it.
            _ => self.claim_stopped(id).map(drop),
        }
    }

    /// Nothing runs: the folder with the changes is renamed, however much it holds, and the sandbox goes on with an empty
    /// one above it. The record says first what is about to happen.
    fn freeze(&self, claimed: &Claimed, record: &mut Record, name: &Name) -> Result<Frozen, DriverError> {
        claimed.recover(&self.store, record)?;
        record.freezing = Some(layer()?);
        claimed.write(record)?;
        claimed.recover(&self.store, record)?;
        Ok(Frozen {
            name: name.clone(),
            of: record.spec.clone(),
            base: record.base.clone(),
            bytes: None,
            created: now(),
        })
    }

    /// Something runs: it is stopped while its changes are copied, which costs what they hold where the file system
    /// cannot share it.
    fn copy_live(&self, id: &SandboxId, record: &Record, name: &Name) -> Result<Frozen, DriverError> {
        let was_paused = self.store.folder(id).join(super::store::PAUSED).exists();
        let line = Line::to_living(&self.store, id)?.ok_or_else(|| busy(&self.store.folder(id)))?;
        let told = line.exchange(&Ask::Pause, &[])?.0;
        if let Tell::Failed(refusal) = told {
            return Err(refusal.into());
        }
        let copied = self.copy_changes(id, record, name);
        if !was_paused {
            line.exchange(&Ask::Resume, &[])?;
        }
        copied
    }

    fn copy_changes(&self, id: &SandboxId, record: &Record, name: &Name) -> Result<Frozen, DriverError> {
        self.store.make_layers_folder()?;
        let copy = Layer::Frozen(layer()?);
        let (from, to) = (self.store.folder(id).join("upper"), self.store.layer(&copy));
        let bytes = super::mapped::copy(&from, &to).inspect_err(|_| {
            let _ = self.store.remove_folder(&to);
        })?;
        let mut base = record.base.clone();
        base.chain.insert(0, copy);
        Ok(Frozen { name: name.clone(), of: record.spec.clone(), base, bytes: Some(bytes), created: now() })
    }
}

fn layer() -> Result<SessionId, DriverError> {
    SessionId::random().map_err(|error| DriverError::Start(error.into()))
}

fn info(frozen: Frozen) -> SnapshotInfo {
    SnapshotInfo {
        name: frozen.name,
        image: frozen.of.image.clone(),
        of: frozen.of,
        driver: DriverName::Native,
        bytes: frozen.bytes,
        created: frozen.created,
    }
}
