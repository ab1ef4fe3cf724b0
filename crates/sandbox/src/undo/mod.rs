//! Bringing a project back to what it was before a session (workspace `direct`).
//!
//! Before a session its state is kept: every file, folder and link with its mode, `.git` included, whatever git does not
//! ignore. Content lies in a store per project, by hash, and only what changed since the last time is read. If nothing
//! changed, all it costs is one stat per file.
//!
//! Not kept: ignored files, sockets, FIFOs and devices, extended attributes, which files are hard links of each other.

mod index;
mod manifest;
mod plan;
mod restore;
mod rules;
mod scan;
mod store;
#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::walk::tree::{self, Root};
use manifest::Manifest;
use scan::Scope;
use store::Store;

pub use plan::{Action, Plan, Step, plan};
pub use restore::{Undone, apply};

#[doc(hidden)]
pub fn fuzz_index(input: &[u8]) {
    index::Tracked::parse(input);
}

/// How much may be kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of one state of the project.
    pub bytes: u64,
    /// Names in it.
    pub files: u64,
    /// States kept per project; up to twice as many before the surplus is removed.
    pub generations: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 2 << 30, files: 1_000_000, generations: 10 }
    }
}

/// A state of a project that can be brought back; goes into the session's record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    /// The project, canonical.
    pub project: PathBuf,
    /// The git folders outside the project that were given to [`prepare`].
    pub git_dirs: Vec<PathBuf>,
    /// The project's folder in `state/undo`.
    pub store: PathBuf,
    /// Which state of those kept there. Sessions between which nothing changed share one.
    pub generation: u64,
    /// Files in it.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Files and folders left out, and left alone by an undo, because git ignores them.
    pub ignored: u64,
    /// Files and folders left out because they could not be read or are sockets, FIFOs or devices.
    pub unkept: u64,
}

/// Why a state was not kept or not brought back.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// The project is larger than [`Limits::bytes`].
    #[error("{path:?} holds {bytes} bytes, more than the {limit} that are kept for an undo")]
    TooLarge {
        /// The project.
        path: PathBuf,
        /// What it holds, ignored files not counted.
        bytes: u64,
        /// The bound.
        limit: u64,
    },
    /// The project has more names than [`Limits::files`].
    #[error("{path:?} holds more than {limit} files, too many to be kept for an undo")]
    TooMany {
        /// The project.
        path: PathBuf,
        /// The bound.
        limit: u64,
    },
    /// A folder of the project could not be read.
    #[error("cannot read {path:?}: {source}")]
    Read {
        /// The folder.
        path: PathBuf,
        /// The kernel's reason.
        source: Errno,
    },
    /// A file's content could not be kept.
    #[error("cannot keep {path:?}: {source}")]
    Keep {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The store could not be read or written.
    #[error("cannot use the undo store {path:?}: {source}")]
    Store {
        /// The project's folder in the store.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The state is kept no more, or its manifest is damaged.
    #[error("state {generation} of {project:?} is no longer kept")]
    Gone {
        /// The project.
        project: PathBuf,
        /// The number of the state.
        generation: u64,
    },
    /// A file could not be brought back; those before it have been.
    #[error("cannot bring back {path:?}: {source}")]
    Restore {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl UndoError {
    fn read(root: &Root, rel: &[u8], source: Errno) -> Self {
        Self::Read { path: root.path().join(tree::as_path(rel)), source }
    }

    /// Whether it only means that there is no undo for this project, which is no reason not to run.
    pub fn is_limit(&self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::TooMany { .. })
    }

    /// What the user can do.
    pub fn hint(&self) -> String {
        match self {
            Self::TooLarge { .. } | Self::TooMany { .. } => {
                "run with --workspace overlay, or list build output in .gitignore".to_owned()
            }
            Self::Read { path, .. } | Self::Keep { path, .. } => {
                format!("make {path:?} readable, or remove it")
            }
            Self::Store { path, .. } => format!("see that {path:?} can be written and its disk is not full"),
            Self::Gone { .. } => "redoma sessions".to_owned(),
            Self::Restore { .. } => {
                "remove the cause and run redoma undo again: it goes on where it stopped".to_owned()
            }
        }
    }
}

/// Keeps the present state of `project` (canonical) below `state` (the folder `state/undo`), so that [`apply`] can bring
/// it back. `git_dirs` are the git folders outside the project that belong to it.
///
/// # Errors
/// [`UndoError::is_limit`] tells those that mean "no undo here" from those that mean that something is wrong.
pub fn prepare(
    project: &Path,
    git_dirs: &[PathBuf],
    state: &Path,
    limits: &Limits,
) -> Result<Backup, UndoError> {
    let root = open(project)?;
    let store = state.join(store_name(project));
    let held = Store::open(&store)?;
    let failed = |source| UndoError::Store { path: store.clone(), source };
    let latest = held.latest().map_err(failed)?;
    let generation = match latest {
        Some((generation, manifest)) if scan::unchanged(&root, &manifest) => Kept { generation, manifest },
        latest => {
            let kept = keep(&root, &Scope::present(&root, git_dirs), &held, latest.as_ref(), limits)?;
            held.prune(limits.generations).map_err(failed)?;
            kept
        }
    };
    Ok(generation.backup(project, git_dirs, store))
}

/// A state and its number.
struct Kept {
    generation: u64,
    manifest: Manifest,
}

impl Kept {
    fn backup(&self, project: &Path, git_dirs: &[PathBuf], store: PathBuf) -> Backup {
        let (files, bytes) = self.manifest.totals();
        let Manifest { ignored, unkept, .. } = self.manifest;
        let (project, git_dirs) = (project.to_path_buf(), git_dirs.to_vec());
        Backup { project, git_dirs, store, generation: self.generation, files, bytes, ignored, unkept }
    }
}

/// Scans, keeps what is new, and saves the state: under the number of the latest if it is the same state.
fn keep(
    root: &Root,
    scope: &Scope<'_>,
    store: &Store,
    latest: Option<&(u64, Manifest)>,
    limits: &Limits,
) -> Result<Kept, UndoError> {
    let failed = |source| UndoError::Store { path: root.path().to_path_buf(), source };
    let known = latest.map(|(_, manifest)| manifest);
    let mut manifest = scan::scan(root, scope, known, limits)?;
    let (_, bytes) = manifest.totals();
    if bytes > limits.bytes {
        return Err(UndoError::TooLarge { path: root.path().to_path_buf(), bytes, limit: limits.bytes });
    }
    scan::fill(root, &mut manifest, store)?;
    let generation = match latest {
        Some((generation, before)) if before.same_state(&manifest) => *generation,
        _ => store.next_generation().map_err(failed)?,
    };
    if known != Some(&manifest) {
        store.save(generation, &manifest).map_err(failed)?;
    }
    Ok(Kept { generation, manifest })
}

fn open(project: &Path) -> Result<Root, UndoError> {
    Root::open(project).map_err(|source| UndoError::Read { path: project.to_path_buf(), source })
}

fn store_name(project: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    blake3::hash(project.as_os_str().as_bytes()).to_hex()[..32].to_owned()
}
