//! The parts of a git folder that make git run or read something else.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Stat};
use serde::{Deserialize, Serialize};

use crate::raw_path;
use crate::walk::tree::{self, Identity};

/// Single files; hooks are looked at one by one.
pub(super) const PARTS: [&str; 5] =
    ["config", "config.worktree", "commondir", "objects/info/alternates", "hooks"];

/// Names looked at in one folder of hooks.
const HOOKS_MAX: usize = 10_000;

/// A git folder as it was when the session began.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Folder {
    #[serde(with = "raw_path")]
    pub(super) path: PathBuf,
    /// By path below the folder.
    #[serde(with = "raw_path::map")]
    pub(super) parts: HashMap<PathBuf, Identity>,
}

// === impl Folder ===

impl Folder {
    /// With its device and inode.
    pub(super) fn look(path: &Path) -> Option<((u64, u64), Self)> {
        let own = identity(path)?;
        let hooks = tree::Root::open(&path.join("hooks")).map(|root| hooks(root.fd())).unwrap_or_default();
        let hooks = hooks.into_iter().map(|name| Path::new("hooks").join(OsStr::from_bytes(&name)));
        let parts = PARTS.iter().map(PathBuf::from).chain(hooks);
        let parts = parts.filter_map(|part| Some((part.clone(), identity(&path.join(&part))?))).collect();
        Some(((own.dev, own.ino), Self { path: path.to_owned(), parts }))
    }
}

/// The names in a folder of hooks that git would run.
pub(super) fn hooks(folder: &OwnedFd) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    // A folder that cannot be read to its end cannot be read by git either, which asks for single names, though; what was
    // read so far counts.
    let _partly = tree::list(folder, &mut tree::dirent_buffer(), |entry| {
        if !entry.name.ends_with(b".sample") && names.len() < HOOKS_MAX {
            names.push(entry.name.to_vec());
        }
        Ok(())
    });
    names
}

/// lstat(2).
pub(super) fn identity(path: &Path) -> Option<Identity> {
    stat(path).map(|stat| Identity::of(&stat))
}

fn stat(path: &Path) -> Option<Stat> {
    rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).ok()
}

pub(super) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}
