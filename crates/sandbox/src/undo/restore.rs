//! Doing what a plan says, in a tree that may be hostile.
//!
//! Every folder is opened beneath the project without following links, files are written aside and renamed into place,
//! and nothing that exists is ever opened for writing: it could be a link to something else.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use super::manifest::{Entry, Manifest, Node};
use super::plan::{Action, Difference, Step, compare};
use super::scan::Scope;
use super::store::Store;
use super::{Backup, Limits, UndoError};
use crate::walk::remove::{open_own, remove};
use crate::walk::tree::{self, Root};

/// What an undo did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The steps taken.
    pub steps: Vec<Step>,
    /// The state before, so that the undo can be undone; none if the caller gave it up.
    pub before: Option<Backup>,
    /// New folders that hold ignored files and so were left.
    pub left: Vec<PathBuf>,
}

/// Brings the kept state back, after keeping the present one (unless `keep_present` is false).
///
/// # Errors
/// If the present state is larger than the limits, nothing is touched. If a path cannot be restored, those before it
/// have been, and a second call goes on.
pub fn apply(backup: &Backup, limits: &Limits, keep_present: bool) -> Result<Undone, UndoError> {
    let store = Store::open(&backup.store)?;
    let manifest = backup.load(&store)?;
    if let Err(source) = std::fs::create_dir_all(&backup.project) {
        return Err(UndoError::Restore { path: backup.project.clone(), source });
    }
    let root = super::open(&backup.project)?;
    let scope = Scope::Kept { manifest: &manifest, store: &store, unlock: true };
    let (before, present) = if keep_present {
        let latest =
            store.latest().map_err(|source| UndoError::Store { path: backup.store.clone(), source })?;
        let kept = super::keep(&root, &scope, &store, latest.as_ref(), limits)?;
        (Some(kept.backup(&backup.project, &backup.git_dirs, backup.store.clone())), kept.manifest)
    } else {
        (None, super::scan::scan(&root, &scope, Some(&manifest), limits)?)
    };
    let differences = compare(Some(&root), &manifest, &present)?;
    let left = Restoration { root: &root, store: &store, manifest: &manifest }.run(&differences)?;
    let steps = differences.iter().map(|difference| difference.public(None)).collect();
    Ok(Undone { steps, before, left })
}

struct Restoration<'a> {
    root: &'a Root,
    store: &'a Store,
    manifest: &'a Manifest,
}

impl Restoration<'_> {
    /// What is in the way goes first, the deepest before what holds it; then folders, then what lies in them; the folders'
    /// own modes and times come last, since a read-only one could not be filled.
    fn run(&self, differences: &[Difference<'_>]) -> Result<Vec<PathBuf>, UndoError> {
        let mut left = Vec::new();
        if differences.is_empty() {
            return Ok(left);
        }
        for difference in differences.iter().rev() {
            left.extend(self.at(difference.rel(), |rel| self.clear(difference, rel))?);
        }
        for difference in differences {
            if let Some(entry) = difference.kept {
                self.at(difference.rel(), |rel| self.create(difference.action, entry, rel))?;
            }
        }
        for entry in self.manifest.entries.iter().rev().filter(|entry| entry.node == Node::Dir) {
            self.at(tree::as_path(&entry.rel), |rel| self.finish_folder(entry, rel))?;
        }
        left.sort();
        Ok(left)
    }

    fn at<T>(&self, rel: &Path, step: impl FnOnce(&Path) -> io::Result<T>) -> Result<T, UndoError> {
        step(rel).map_err(|source| UndoError::Restore { path: self.root.path().join(rel), source })
    }

    /// Removes what is new, and what is of another kind. A new folder with ignored files in it is left and named.
    fn clear(&self, difference: &Difference<'_>, rel: &Path) -> io::Result<Option<PathBuf>> {
        let is_dir = |entry: Option<&Entry>| entry.is_some_and(|entry| entry.node == Node::Dir);
        match difference.action {
            Action::Remove => {
                let Some((parent, name)) = absent_is_none(self.root.parent(rel))? else { return Ok(None) };
                let flags = if is_dir(difference.present) { AtFlags::REMOVEDIR } else { AtFlags::empty() };
                match writable(&parent, || rustix::fs::unlinkat(&parent, name, flags)) {
                    Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(Some(rel.to_path_buf())),
                    removed => Ok(absent_is_none(removed)?.and(None)),
                }
            }
            Action::Replace if is_dir(difference.present) || is_dir(difference.kept) => {
                let (parent, name) = self.root.parent(rel)?;
                writable(&parent, || remove(&parent, name))?;
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn create(&self, action: Action, entry: &Entry, rel: &Path) -> io::Result<()> {
        match (&entry.node, action) {
            (Node::Dir, Action::Restore | Action::Replace) if !entry.rel.is_empty() => {
                let (parent, name) = self.root.parent(rel)?;
                Ok(writable(&parent, || rustix::fs::mkdirat(&parent, name, Mode::RWXU))?)
            }
            // Folders get their modes at the end.
            (Node::Dir, _) | (_, Action::Remove) => Ok(()),
            (_, Action::Mode) => self.set_attributes(entry, rel),
            (Node::File { hash: Some(hash), .. }, _) => self.write_file(entry, hash, rel),
            (Node::File { hash: None, .. }, _) => Err(io::ErrorKind::InvalidData.into()),
            (Node::Link(target), _) => self.write_link(entry, target, rel),
        }
    }

    fn write_file(&self, entry: &Entry, hash: &[u8; 32], rel: &Path) -> io::Result<()> {
        let (parent, name) = self.root.parent(rel)?;
        let aside = aside();
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = writable(&parent, || rustix::fs::openat(&parent, &aside, flags, Mode::RUSR | Mode::WUSR))?;
        let written = self.fill(&file, hash).and_then(|()| {
            let Entry { uid, gid, .. } = *entry;
            own(&file, uid, gid)?;
            rustix::fs::fchmod(&file, Mode::from_raw_mode(entry.mode))?;
            rustix::fs::futimens(&file, &times(entry.mtime))?;
            Ok(rustix::fs::renameat(&parent, &aside, &parent, name)?)
        });
        if written.is_err() {
            let _left_aside = rustix::fs::unlinkat(&parent, &aside, AtFlags::empty());
        }
        written
    }

    /// Copies a kept content, and makes sure that it is the one whose hash was noted.
    fn fill(&self, file: &OwnedFd, hash: &[u8; 32]) -> io::Result<()> {
        let blob = self.store.open_blob(hash)?;
        let mut file = std::fs::File::from(file.try_clone()?);
        if rustix::fs::ioctl_ficlone(&file, &blob).is_err() {
            io::copy(&mut &blob, &mut file)?;
        }
        io::Seek::rewind(&mut file)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(file)?;
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the kept content is damaged");
        if hasher.finalize() == blake3::Hash::from_bytes(*hash) { Ok(()) } else { Err(damaged()) }
    }

    fn write_link(&self, entry: &Entry, target: &[u8], rel: &Path) -> io::Result<()> {
        let (parent, name) = self.root.parent(rel)?;
        let aside = aside();
        writable(&parent, || rustix::fs::symlinkat(target, &parent, &aside))?;
        if rustix::process::geteuid().is_root() {
            let (uid, gid) = owner(entry.uid, entry.gid);
            rustix::fs::chownat(&parent, &aside, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?;
        }
        rustix::fs::utimensat(&parent, &aside, &times(entry.mtime), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(rustix::fs::renameat(&parent, &aside, &parent, name)?)
    }

    /// By a descriptor that only names the file: it may be unreadable, and must be of the kind that was seen.
    fn set_attributes(&self, entry: &Entry, rel: &Path) -> io::Result<()> {
        let handle = tree::beneath(self.root.fd(), rel, OFlags::PATH, Mode::empty())?;
        if FileType::from_raw_mode(rustix::fs::fstat(&handle)?.st_mode) != FileType::RegularFile {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
        if rustix::process::geteuid().is_root() {
            let (uid, gid) = owner(entry.uid, entry.gid);
            rustix::fs::chownat(CWD, &path, uid, gid, AtFlags::empty())?;
        }
        Ok(rustix::fs::chmodat(CWD, &path, Mode::from_raw_mode(entry.mode), AtFlags::empty())?)
    }

    /// Mode, owner and time of a folder, if they are not what they were.
    fn finish_folder(&self, entry: &Entry, rel: &Path) -> io::Result<()> {
        let stat = self.root.stat(rel)?;
        let same = (stat.st_mode & 0o7777, stat.st_uid, stat.st_gid) == (entry.mode, entry.uid, entry.gid);
        if same && tree::nanos(stat.st_mtime, stat.st_mtime_nsec) == entry.mtime {
            return Ok(());
        }
        let folder = if entry.rel.is_empty() {
            self.root.dir(rel)?
        } else {
            let (parent, name) = self.root.parent(rel)?;
            open_own(&parent, name)?
        };
        own(&folder, entry.uid, entry.gid)?;
        rustix::fs::fchmod(&folder, Mode::from_raw_mode(entry.mode))?;
        Ok(rustix::fs::futimens(&folder, &times(entry.mtime))?)
    }
}

/// Only root can give files away; whoever else wrote the project owns it already.
fn own(file: &OwnedFd, uid: u32, gid: u32) -> io::Result<()> {
    let stat = rustix::fs::fstat(file)?;
    if rustix::process::geteuid().is_root() && (stat.st_uid, stat.st_gid) != (uid, gid) {
        let (uid, gid) = owner(uid, gid);
        rustix::fs::fchown(file, uid, gid)?;
    }
    Ok(())
}

fn owner(uid: u32, gid: u32) -> (Option<Uid>, Option<Gid>) {
    (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))
}

fn times(mtime: i64) -> Timestamps {
    let (tv_sec, tv_nsec) = (mtime.div_euclid(1_000_000_000), mtime.rem_euclid(1_000_000_000));
    let mtime = Timespec { tv_sec, tv_nsec };
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW },
        last_modification: mtime,
    }
}

/// A name in the target's own folder, which nothing can be renamed from across file systems otherwise.
fn aside() -> OsString {
    OsString::from(format!(".redoma-undo-{}-{:x}", std::process::id(), tree::now()))
}

fn absent_is_none<T>(result: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match result {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        result => result.map(Some),
    }
}

/// Tries again with the folder made writable, if that is what it failed for. Its mode is set right at the end.
fn writable<T>(folder: &OwnedFd, action: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
    match action() {
        Err(Errno::ACCESS) => {
            let mode = Mode::from_raw_mode(rustix::fs::fstat(folder)?.st_mode);
            rustix::fs::fchmod(folder, mode | Mode::RWXU)?;
            action()
        }
        result => result,
    }
}
