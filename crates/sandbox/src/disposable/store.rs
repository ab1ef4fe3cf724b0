//! Sandboxes and snapshots on disk. A sandbox is a folder; whether it is in use is told by the lock on it, which the
//! kernel takes off whoever dies. There is no other list.
//!
//! ```text
//! sandboxes/<id>/sandbox.json  what it is; comes last, so that a folder without it is a creation that ended halfway
//! sandboxes/<id>/lock          held by its keeper, or by whoever changes it
//! sandboxes/<id>/upper, work   what it changed
//! sandboxes/<id>/base          mount points, below everything else
//! sandboxes/names/<name>       a link that says the id: two cannot have one name
//! layers/<id>/                 what was changed up to a snapshot
//! snapshots/<name>.json        a snapshot
//! ```

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use redoma_audit::SessionId;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::driver::{DriverError, Name, SandboxId, Spec};
use crate::homes::Homes;
use crate::leftovers::remove_path;

/// Where sandboxes lie.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    state: PathBuf,
    run: PathBuf,
}

/// What is written down of a sandbox.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) spec: Spec,
    pub(crate) base: Base,
    /// What its changes are about to become: a snapshot that may have ended halfway. See [`Claimed::recover`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) freezing: Option<SessionId>,
}

/// What a file system begins as.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Base {
    /// The topmost first.
    pub(crate) chain: Vec<Layer>,
    /// What the image says about commands.
    pub(crate) says: Says,
    /// The image's name for sure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) digest: Option<String>,
}

/// A folder that is part of a file system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Layer {
    /// Of an image: where the images' store keeps it.
    Image(PathBuf),
    /// What a sandbox had changed.
    Frozen(SessionId),
    /// The host's.
    Folder(PathBuf),
}

/// What an image says about the commands in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Says {
    pub(crate) entrypoint: Vec<String>,
    pub(crate) cmd: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) workdir: Option<PathBuf>,
    /// As `USER` has it: a name or number, and perhaps a group.
    pub(crate) user: Option<String>,
}

/// What is written down of a snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Frozen {
    pub(crate) name: Name,
    pub(crate) of: Spec,
    pub(crate) base: Base,
    pub(crate) bytes: Option<u64>,
    pub(crate) created: i64,
}

/// A sandbox that this process alone changes, as long as it holds this.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) folder: PathBuf,
    lock: File,
}

const RECORD: &str = "sandbox.json";
const LOCK: &str = "lock";
/// The sessions of a sandbox, a line for each.
const SESSIONS: &str = "sessions";
/// Is there while the sandbox is paused.
pub(crate) const PAUSED: &str = "paused";
/// What a folder is renamed to before it is removed: from then on it is no sandbox.
const GONE: &str = ".gone-";

// === impl Store ===

impl Store {
    pub(crate) fn new(homes: &Homes) -> Self {
        Self { state: homes.state().to_owned(), run: homes.run().to_owned() }
    }

    fn sandboxes(&self) -> PathBuf {
        self.state.join("sandboxes")
    }

    fn names(&self) -> PathBuf {
        self.sandboxes().join("names")
    }

    fn snapshot_file(&self, name: &Name) -> PathBuf {
        self.state.join("snapshots").join(format!("{name}.json"))
    }

    pub(crate) fn folder(&self, id: &SandboxId) -> PathBuf {
        self.sandboxes().join(id.as_str())
    }

    /// Where its keeper is spoken to.
    pub(crate) fn socket(&self, id: &SandboxId) -> PathBuf {
        self.run.join("sandboxes").join(id.as_str())
    }

    pub(crate) fn layer(&self, layer: &Layer) -> PathBuf {
        match layer {
            Layer::Image(path) => self.state.join("images").join(path),
            Layer::Frozen(id) => self.state.join("layers").join(id.as_str()),
            Layer::Folder(path) => path.clone(),
        }
    }

    /// Makes the folder of a sandbox under its name, and writes down what it is last.
    pub(crate) fn create(&self, record: &Record) -> Result<(), DriverError> {
        let folder = self.folder(&record.spec.id);
        private_folder(&self.names())?;
        private_folder(&folder)?;
        let made = self.fill(&folder, record);
        if made.is_err() {
            // What failed is what is told.
            let _ = self.remove_folder(&folder);
        }
        made
    }

    fn fill(&self, folder: &Path, record: &Record) -> Result<(), DriverError> {
        // Held until it is whole, or it could be taken for one that never will be.
        let claimed = Claimed::take(folder)?.ok_or_else(|| busy(folder))?;
        for name in ["upper", "work", "base"] {
            make(&folder.join(name), if name == "work" { 0o700 } else { 0o755 })?;
        }
        self.take_name(&record.spec.name, &record.spec.id)?;
        claimed.write(record)
    }

    fn take_name(&self, name: &Name, id: &SandboxId) -> Result<(), DriverError> {
        const TRIES: usize = 3;
        let link = self.names().join(name.as_str());
        for _ in 0..TRIES {
            match symlink(id.as_str(), &link) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if self.named(name).is_some_and(|other| self.is_there(&other)) {
                        return Err(DriverError::NameTaken(name.clone()));
                    }
                    // Of one that is gone, or never was whole.
                    let _ = fs::remove_file(&link);
                }
                done => return done.map_err(|source| failed("take the name", &link, source)),
            }
        }
        Err(DriverError::NameTaken(name.clone()))
    }

    fn is_there(&self, id: &SandboxId) -> bool {
        let folder = self.folder(id);
        folder.join(RECORD).exists() || is_locked(&folder)
    }

    fn named(&self, name: &Name) -> Option<SandboxId> {
        fs::read_link(self.names().join(name.as_str())).ok()?.to_str()?.parse().ok()
    }

    /// Which sandbox is meant by a name, an id, or the beginning of one.
    pub(crate) fn find(&self, text: &str) -> Result<SandboxId, DriverError> {
        let named = text.parse::<Name>().ok().and_then(|name| self.named(&name));
        if let Some(id) = named.filter(|id| self.is_there(id)) {
            return Ok(id);
        }
        let mut begun =
            self.ids()?.into_iter().filter(|id| !text.is_empty() && id.as_str().starts_with(text));
        match (begun.next(), begun.next()) {
            (Some(id), None) => Ok(id),
            (Some(_), Some(_)) => Err(DriverError::Ambiguous(text.to_owned())),
            (None, _) => Err(DriverError::NoSandbox(text.to_owned())),
        }
    }

    /// Every sandbox, whole or not.
    pub(crate) fn ids(&self) -> Result<Vec<SandboxId>, DriverError> {
        let folder = self.sandboxes();
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(failed("list", &folder, source)),
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        Ok(names.filter_map(|name| name.parse().ok()).collect())
    }

    /// What is written down of a sandbox; none where its creation ended halfway.
    pub(crate) fn read(&self, id: &SandboxId) -> Result<Option<Record>, DriverError> {
        read_json(&self.folder(id).join(RECORD), "the record")
    }

    /// Whether somebody holds a sandbox: its keeper, or whoever changes it.
    pub(crate) fn is_held(&self, id: &SandboxId) -> bool {
        is_locked(&self.folder(id))
    }

    /// Its sessions in the record, oldest first.
    pub(crate) fn sessions(&self, id: &SandboxId) -> Vec<SessionId> {
        let text = fs::read_to_string(self.folder(id).join(SESSIONS)).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// When a command last began or ended in it, in seconds since 1970.
    pub(crate) fn used(&self, id: &SandboxId) -> i64 {
        fs::metadata(self.folder(id).join(LOCK)).map_or(0, |meta| meta.mtime())
    }

    /// Removes a folder that nobody holds, whatever lies in it.
    pub(crate) fn remove(&self, claimed: Claimed, name: Option<&Name>) -> Result<(), DriverError> {
        let id = claimed.folder.file_name().unwrap_or_default().to_owned();
        let _ = fs::remove_file(self.run.join("sandboxes").join(&id));
        let gone = claimed.folder.with_file_name(format!("{GONE}{}", id.display()));
        fs::rename(&claimed.folder, &gone).map_err(|source| failed("remove", &claimed.folder, source))?;
        if let Some(name) = name.filter(|name| self.named(name).is_some_and(|of| of.as_str() == id)) {
            let _ = fs::remove_file(self.names().join(name.as_str()));
        }
        drop(claimed);
        self.remove_folder(&gone)
    }

    pub(crate) fn remove_folder(&self, folder: &Path) -> Result<(), DriverError> {
        match remove_path(folder) {
            // Of other users of the sandbox's.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => super::mapped::remove(folder),
            done => done.map_err(|source| failed("remove", folder, source)),
        }
    }

    /// What was being created or removed when its process was killed, and sockets of keepers that were.
    pub(crate) fn torn(&self) -> Vec<PathBuf> {
        let list = |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten();
        let is_torn = |entry: &fs::DirEntry| {
            let (path, name) = (entry.path(), entry.file_name());
            let text = name.to_string_lossy();
            let half = text.parse::<SandboxId>().is_ok() && !path.join(RECORD).exists() && !is_locked(&path);
            half || text.starts_with(GONE)
        };
        let is_nobodys = |entry: &fs::DirEntry| {
            let id = entry.file_name().to_str().and_then(|name| name.parse::<SandboxId>().ok());
            id.is_some_and(|id| !self.is_held(&id))
        };
        let folders = list(self.sandboxes()).filter(is_torn);
        let sockets = list(self.run.join("sandboxes")).filter(is_nobodys);
        folders.chain(sockets).map(|entry| entry.path()).collect()
    }

    /// Clears that away.
    pub(crate) fn sweep(&self) {
        for path in self.torn() {
            // What cannot be removed is found again.
            let _ = self.remove_folder(&path);
        }
    }

    // --- snapshots ---

    /// Writes a snapshot down; its name is taken with it.
    pub(crate) fn write_snapshot(&self, frozen: &Frozen) -> Result<(), DriverError> {
        let file = self.snapshot_file(&frozen.name);
        private_folder(file.parent().unwrap_or(&self.state))?;
        let temporary = file.with_extension(format!("new-{}", std::process::id()));
        write_json(&temporary, frozen)?;
        // A link, unlike a rename, replaces nothing.
        let linked = fs::hard_link(&temporary, &file);
        let _ = fs::remove_file(&temporary);
        linked.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => DriverError::NameTaken(frozen.name.clone()),
            _ => failed("write", &file, error),
        })
    }

    pub(crate) fn has_snapshot(&self, name: &Name) -> bool {
        self.snapshot_file(name).exists()
    }

    pub(crate) fn snapshot(&self, name: &Name) -> Result<Frozen, DriverError> {
        let found = read_json(&self.snapshot_file(name), "the snapshot")?;
        found.ok_or_else(|| DriverError::NoSnapshot(name.to_string()))
    }

    pub(crate) fn snapshots(&self) -> Result<Vec<Frozen>, DriverError> {
        let entries = fs::read_dir(self.state.join("snapshots")).into_iter().flatten().flatten();
        let names = entries
            .filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".json")?.parse::<Name>().ok());
        let mut all = names.map(|name| self.snapshot(&name)).collect::<Result<Vec<_>, _>>()?;
        all.sort_by_key(|frozen| frozen.created);
        Ok(all)
    }

    pub(crate) fn remove_snapshot(&self, name: &Name) -> Result<(), DriverError> {
        let frozen = self.snapshot(name)?;
        let file = self.snapshot_file(name);
        fs::remove_file(&file).map_err(|source| failed("remove", &file, source))?;
        self.drop_layers(&frozen.base)
    }

    /// Removes those layers that nothing stands on any more.
    pub(crate) fn drop_layers(&self, base: &Base) -> Result<(), DriverError> {
        let frozen: Vec<_> = base.chain.iter().filter(|layer| matches!(layer, Layer::Frozen(_))).collect();
        if frozen.is_empty() {
            return Ok(());
        }
        let used = self.layers_in_use()?;
        let unused = frozen.into_iter().filter(|layer| !used.contains(layer));
        unused.map(|layer| self.layer(layer)).try_for_each(|folder| self.remove_folder(&folder))
    }

    /// Every layer that a sandbox or a snapshot stands on.
    pub(crate) fn layers_in_use(&self) -> Result<Vec<Layer>, DriverError> {
        let mut used: Vec<Layer> =
            self.snapshots()?.into_iter().flat_map(|frozen| frozen.base.chain).collect();
        for id in self.ids()? {
            let Some(record) = self.read(&id)? else { continue };
            used.extend(record.base.chain);
            used.extend(record.freezing.map(Layer::Frozen));
        }
        Ok(used)
    }

    pub(crate) fn make_layers_folder(&self) -> Result<(), DriverError> {
        private_folder(&self.state.join("layers"))
    }

    pub(crate) fn make_socket_folder(&self) -> Result<(), DriverError> {
        private_folder(&self.run.join("sandboxes"))
    }
}

// === impl Claimed ===

impl Claimed {
    /// Takes hold of a sandbox's folder; none where somebody else holds it.
    pub(crate) fn take(folder: &Path) -> Result<Option<Self>, DriverError> {
        let lock = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
            .open(folder.join(LOCK));
        let lock = lock.map_err(|source| failed("take hold of", folder, source))?;
        match lock_patiently(&lock) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(errno) => return Err(failed("take hold of", folder, errno.into())),
        }
        // Removed in between: what is locked is nobody's.
        if !folder.join(LOCK).exists() {
            return Err(DriverError::NoSandbox(folder.file_name().unwrap_or_default().display().to_string()));
        }
        Ok(Some(Self { folder: folder.to_owned(), lock }))
    }

    pub(crate) fn write(&self, record: &Record) -> Result<(), DriverError> {
        let path = self.folder.join(RECORD);
        let temporary = path.with_extension("new");
        write_json(&temporary, record)?;
        fs::rename(&temporary, &path).map_err(|source| failed("write", &path, source))
    }

    /// Finishes a snapshot that ended halfway: the record says what the changes were about to become.
    pub(crate) fn recover(&self, store: &Store, record: &mut Record) -> Result<(), DriverError> {
        let Some(layer) = record.freezing else { return Ok(()) };
        let (upper, layer) = (self.folder.join("upper"), store.layer(&Layer::Frozen(layer)));
        if !layer.exists() {
            store.make_layers_folder()?;
            fs::rename(&upper, &layer).map_err(|source| failed("freeze", &upper, source))?;
        }
        if !upper.exists() {
            make(&upper, 0o755)?;
        }
        record.base.chain.splice(0..0, record.freezing.take().map(Layer::Frozen));
        self.write(record)
    }

    /// Notes a session of the sandbox's, for its history.
    pub(crate) fn note_session(&self, session: SessionId) -> Result<(), DriverError> {
        let path = self.folder.join(SESSIONS);
        let note = || -> io::Result<()> {
            let mut file = File::options().append(true).create(true).mode(0o600).open(&path)?;
            writeln!(file, "{session}")
        };
        note().map_err(|source| failed("write", &path, source))
    }

    /// Notes that it was used now.
    pub(crate) fn touch(&self) {
        let now = fs::FileTimes::new().set_modified(SystemTime::now());
        // Only tells idle ones apart.
        let _ = self.lock.set_times(now);
    }
}

// === small things ===

pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

pub(crate) fn failed(what: &'static str, path: &Path, source: io::Error) -> DriverError {
    DriverError::Store { what, path: path.to_owned(), source }
}

pub(crate) fn busy(folder: &Path) -> DriverError {
    DriverError::InUse { path: folder.to_owned(), by: "another command of redoma holds it".into() }
}

fn is_locked(folder: &Path) -> bool {
    let Ok(lock) = File::open(folder.join(LOCK)) else { return false };
    flock(&lock, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

/// Who only looks whether it is locked holds it for a moment as well.
fn lock_patiently(lock: &File) -> Result<(), Errno> {
    const TRIES: u32 = 64;
    for _ in 0..TRIES {
        match flock(lock, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => rustix::thread::sched_yield(),
            done => return done,
        }
    }
    Err(Errno::WOULDBLOCK)
}

fn private_folder(path: &Path) -> Result<(), DriverError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|source| failed("make the folder", path, source))
}

fn make(path: &Path, mode: u32) -> Result<(), DriverError> {
    DirBuilder::new().mode(mode).create(path).map_err(|source| failed("make the folder", path, source))
}

fn read_json<T: DeserializeOwned>(path: &Path, what: &'static str) -> Result<Option<T>, DriverError> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(failed("read", path, source)),
    };
    let parsed = serde_json::from_slice(&text);
    parsed.map(Some).map_err(|error| DriverError::Unreadable {
        what,
        path: path.to_owned(),
        why: error.to_string(),
    })
}

/// Not forced to the disk: after a power failure a sandbox is worth as much as what was in its processes.
fn write_json(path: &Path, value: &impl Serialize) -> Result<(), DriverError> {
    let text = serde_json::to_vec(value).map_err(|error| failed("write", path, error.into()))?;
    fs::write(path, text).map_err(|source| failed("write", path, source))
}
