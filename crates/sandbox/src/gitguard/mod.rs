//! Git runs programs that a repository's own configuration names: `git status` on the host, in a project where a session
//! left a repository with `core.fsmonitor`, runs what the session wrote there.
//!
//! Three things are done about it. What the configuration names in the project when the session starts is protected
//! ([`protect_configured`]); so are, by the base profile, configuration and hooks of every repository that exists. And
//! what the session itself made into a repository is judged when all its processes are gone: settings that do more than
//! describe the repository, hooks, and pointers that lead out of what the session may write are moved away.
//!
//! What this cannot do: git that somebody runs on the host *during* the session, in a repository made by it.

mod config;
mod configured;
mod ground;
mod harmless;
mod judge;
mod repository;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};

use crate::raw_path;
use crate::walk::{FileKind, Found};

pub use configured::ConfigError;
pub(crate) use configured::protect_configured;
pub(crate) use ground::Ground;
pub(crate) use judge::{judge, judge_noted};
use repository::{Folder, identity, kind};

use crate::walk::tree::Identity;

/// Part of the walk's fingerprint: [`is_mark`] decides what its cache holds.
pub(crate) const MARKS_VERSION: &[u8; 5] = b"git1\n";

/// Whether the name may belong to a repository: `.git`, or the `HEAD` of a git folder with another name.
pub(crate) fn is_mark(path: &Path, kind: FileKind) -> bool {
    match kind {
        FileKind::Dir => path.ends_with(".git"),
        FileKind::File | FileKind::Symlink => path.ends_with(".git") || path.ends_with("HEAD"),
        _ => false,
    }
}

/// Whether a path lies below a `.git` that does not exist.
pub(crate) fn in_absent_repository(path: &Path) -> bool {
    let folder = path.ancestors().skip(1).find(|folder| folder.ends_with(".git"));
    folder.is_some_and(|folder| folder.symlink_metadata().is_err())
}

/// The repositories that exist when a session starts.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Before {
    /// By device and inode: a folder may get another name.
    #[serde(with = "pairs")]
    folders: HashMap<(u64, u64), Folder>,
    /// `.git` files and links.
    #[serde(with = "raw_path::map")]
    pointers: HashMap<PathBuf, Identity>,
    #[serde(with = "raw_path::list")]
    unreadable: Vec<PathBuf>,
    /// What mounts lie over, by path: the session could not change it.
    #[serde(with = "raw_path::map")]
    guarded: HashMap<PathBuf, Identity>,
    /// When the session had ended at the latest, in nanoseconds since 1970; none if that is now.
    #[serde(skip)]
    until: Option<i64>,
}

/// What a walk found of repositories.
#[derive(Debug, Default)]
struct Marks {
    folders: Vec<PathBuf>,
    pointers: Vec<PathBuf>,
}

// === impl Marks ===

impl Marks {
    fn of(found: &Found) -> Self {
        let mut marks = Self::default();
        for hit in found.hits.iter().filter(|hit| is_mark(&hit.path, hit.kind)) {
            match (hit.path.ends_with(".git"), hit.kind, hit.path.parent()) {
                (true, FileKind::Dir, _) => marks.folders.push(hit.path.clone()),
                (true, ..) => marks.pointers.push(hit.path.clone()),
                (false, _, Some(folder)) if is_git_folder(folder) => marks.folders.push(folder.to_owned()),
                _ => {}
            }
        }
        marks.folders.sort();
        marks.folders.dedup();
        marks
    }
}

/// gitrepository-layout(5): besides `HEAD`, git wants objects, its own or those of another folder. Not every `HEAD` is
/// one: `logs/` and `refs/remotes/` have theirs.
fn is_git_folder(folder: &Path) -> bool {
    ["objects", "commondir"].iter().any(|name| folder.join(name).symlink_metadata().is_ok())
}

// === impl Before ===

impl Before {
    /// Notes what there is, for [`judge`] to compare.
    pub(crate) fn look(found: &Found) -> Self {
        let marks = Marks::of(found);
        let folders = marks.folders.into_iter().filter_map(|path| Folder::look(&path));
        let pointers = marks.pointers.into_iter().filter_map(|path| Some((path.clone(), identity(&path)?)));
        Self {
            folders: folders.collect(),
            pointers: pointers.collect(),
            unreadable: found.unreadable.clone(),
            guarded: HashMap::new(),
            until: None,
        }
    }

    /// Notes what is denied and protected.
    pub(crate) fn guarded<'p>(&mut self, paths: impl Iterator<Item = &'p Path>) {
        self.guarded.extend(paths.filter_map(|path| Some((path.to_owned(), identity(path)?))));
    }

    /// Whatever changed later is the user's own.
    pub(crate) fn ended_by(self, until: Option<i64>) -> Self {
        Self { until, ..self }
    }

    /// Whether it changed when the session had ended.
    fn is_later(&self, stat: &Stat) -> bool {
        self.until.is_some_and(|until| kind(stat) != FileType::Directory && Identity::of(stat).ctime > until)
    }

    /// Whether a mount lay over `path` or a folder above it, whatever stands there now.
    fn guards(&self, path: &Path) -> bool {
        path.ancestors().any(|path| self.guarded.contains_key(path))
    }

    /// Whether what stands at `path` was guarded, itself or with a folder above it.
    fn was_guarded(&self, path: &Path) -> bool {
        let same = |now: Identity, then: &Identity| (now.dev, now.ino) == (then.dev, then.ino);
        path.ancestors().any(|path| {
            self.guarded.get(path).is_some_and(|then| identity(path).is_some_and(|now| same(now, then)))
        })
    }
}

/// JSON has names for keys only.
mod pairs {
    use std::collections::HashMap;
    use std::hash::Hash;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer, K: Serialize, V: Serialize>(
        map: &HashMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(super) fn deserialize<
        'de,
        D: Deserializer<'de>,
        K: Deserialize<'de> + Eq + Hash,
        V: Deserialize<'de>,
    >(
        deserializer: D,
    ) -> Result<HashMap<K, V>, D::Error> {
        Vec::<(K, V)>::deserialize(deserializer).map(|pairs| pairs.into_iter().collect())
    }
}
