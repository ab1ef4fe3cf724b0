//! Putting changes into the project, each as a whole or not at all.
//!
//! A conflict was looked for when the changes were listed; between that and the write the user may save the file once
//! more. So nothing is replaced by a plain rename: old and new change places in one step (renameat2(2)), and if what came
//! out is not what was seen, they change back.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps, Uid};
use rustix::io::Errno;

use super::list::{Item, file_type, mode};
use super::{Change, ChangeKind, ChangesError, Conflict, Selection};
use crate::walk::remove::open_own;
use crate::walk::tree::{self, Root};

/// What became of the selected changes, each list in path order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// In the project now.
    pub applied: Vec<Change>,
    /// Left alone because somebody else changed the same path; naming it in `force` overrules that.
    pub conflicts: Vec<Change>,
    /// Never applied.
    pub refused: Vec<Change>,
}

pub(super) fn apply(
    lower: &Root,
    upper: &Root,
    items: Vec<Item>,
    selection: &Selection,
    force: &Selection,
) -> Result<Applied, ChangesError> {
    let wanted = with_parents(&items, selection);
    let items: Vec<Item> = items.into_iter().filter(|item| wanted.contains(&item.change.path)).collect();
    let application = Application { lower, upper, force };
    let mut outcome = Applied::default();
    // What goes, goes first and from within; what comes, comes from without. So a folder is empty when its turn comes,
    // and exists before what lies in it.
    let (going, coming): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| item.change.kind == ChangeKind::Deleted);
    for item in going.into_iter().rev().chain(coming) {
        application.one(item, &mut outcome)?;
    }
    application.set_folder_modes(&outcome.applied)?;
    for list in [&mut outcome.applied, &mut outcome.conflicts, &mut outcome.refused] {
        list.sort_by(|a, b| a.path.cmp(&b.path));
    }
    Ok(outcome)
}

/// A file in a new folder needs the folder, and what takes a folder's place needs the folder gone.
fn with_parents(items: &[Item], selection: &Selection) -> BTreeSet<PathBuf> {
    let selected: BTreeSet<&Path> =
        items.iter().map(|item| item.change.path.as_path()).filter(|path| selection.has(path)).collect();
    let parents: BTreeSet<&Path> = selected.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    let makes_folder = |item: &Item| matches!(item.change.kind, ChangeKind::Added | ChangeKind::Type);
    let replaced: BTreeSet<&Path> = items
        .iter()
        .filter(|item| item.change.kind == ChangeKind::Type && selected.contains(item.change.path.as_path()))
        .map(|item| item.change.path.as_path())
        .collect();
    let wanted = |item: &&Item| {
        let path = item.change.path.as_path();
        let below_replaced = item.change.kind == ChangeKind::Deleted
            && path.ancestors().skip(1).any(|above| replaced.contains(above));
        selected.contains(path) || (parents.contains(path) && makes_folder(item)) || below_replaced
    };
    items.iter().filter(wanted).map(|item| item.change.path.clone()).collect()
}

struct Application<'a> {
    lower: &'a Root,
    upper: &'a Root,
    force: &'a Selection,
}

impl Application<'_> {
    fn one(&self, item: Item, outcome: &mut Applied) -> Result<(), ChangesError> {
        let forced = self.force.has(&item.change.path);
        if item.change.refusal.is_some() {
            outcome.refused.push(item.change);
            return Ok(());
        }
        if item.change.conflict.is_some() && !forced {
            outcome.conflicts.push(item.change);
            return Ok(());
        }
        match self.put(&item, forced) {
            Ok(()) => outcome.applied.push(item.change),
            Err(Failure::Conflict(conflict)) => {
                outcome.conflicts.push(Change { conflict: Some(conflict), ..item.change });
            }
            Err(Failure::Errno(source)) => {
                return Err(ChangesError::Apply { path: self.lower.path().join(item.change.path), source });
            }
        }
        Ok(())
    }

    /// At last, and from within: a folder that is to be read-only could not be filled otherwise.
    fn set_folder_modes(&self, applied: &[Change]) -> Result<(), ChangesError> {
        let coming = applied.iter().filter(|change| change.kind != ChangeKind::Deleted);
        for path in coming.rev().map(|change| &change.path) {
            let set = || -> Result<(), Failure> {
                let upper = self.upper.stat(path)?;
                if file_type(&upper) != FileType::Directory {
                    return Ok(());
                }
                let (dir, name) = self.lower.parent(path)?;
                Place { dir, name, seen: None }.set_mode(mode(&upper))
            };
            if let Err(Failure::Errno(source)) = set() {
                return Err(ChangesError::Apply { path: self.lower.path().join(path), source });
            }
        }
        Ok(())
    }

    fn put(&self, item: &Item, forced: bool) -> Result<(), Failure> {
        let path = &item.change.path;
        let (dir, name) = self.lower.parent(path).map_err(|error| match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => Failure::Conflict(Conflict::Parent),
            error => Failure::Errno(error),
        })?;
        // Forced: what is there now is replaced, whatever it is.
        let seen = if forced { now(&dir, name)? } else { item.lower };
        let place = Place { dir, name, seen };
        match (item.change.kind, item.upper.as_ref()) {
            (ChangeKind::Deleted, _) => place.remove(),
            (_, None) => Ok(()),
            (ChangeKind::Mode, Some(upper)) if file_type(upper) == FileType::Directory => {
                place.set_mode(mode(upper) | 0o700)
            }
            (ChangeKind::Mode, Some(upper)) => place.set_mode(mode(upper)),
            (_, Some(upper)) if file_type(upper) == FileType::Directory => place.make_folder(),
            (_, Some(upper)) if file_type(upper) == FileType::Symlink => place.make_link(&self.target(path)?),
            (_, Some(upper)) => place.make_file(self.upper.file(path)?, upper),
        }
    }

    fn target(&self, path: &Path) -> Result<Vec<u8>, Errno> {
        let (dir, name) = self.upper.parent(path)?;
        Ok(rustix::fs::readlinkat(dir, name, Vec::new())?.into_bytes())
    }
}

enum Failure {
    Conflict(Conflict),
    Errno(Errno),
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Self::Errno(error)
    }
}

/// Where a change goes, and what was there when it was decided that it may.
struct Place<'a> {
    dir: OwnedFd,
    name: &'a OsStr,
    seen: Option<Stat>,
}

impl Place<'_> {
    fn make_file(&self, source: OwnedFd, upper: &Stat) -> Result<(), Failure> {
        let source = std::fs::File::from(source);
        let meta = rustix::fs::fstat(&source)?;
        // The change set may not change while it is applied; if it does, it is not what was looked at.
        if (meta.st_ino, meta.st_size, meta.st_mode) != (upper.st_ino, upper.st_size, upper.st_mode) {
            return Err(Failure::Errno(Errno::AGAIN));
        }
        let aside = aside();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.dir, &aside, flags, Mode::RUSR | Mode::WUSR)?;
        let written = self.fill(&file, source, upper).map_err(Failure::Errno);
        self.settle(&aside, written)
    }

    /// Content, owner, mode and time; on the disk before it takes the place of what was there.
    fn fill(&self, file: &OwnedFd, mut source: std::fs::File, upper: &Stat) -> Result<(), Errno> {
        let mut target = std::fs::File::from(file.try_clone().map_err(|_| Errno::MFILE)?);
        if rustix::fs::ioctl_ficlone(&target, &source).is_err() {
            std::io::copy(&mut source, &mut target)
                .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        }
        if rustix::process::geteuid().is_root() {
            let model = self.seen.map_or_else(|| rustix::fs::fstat(&self.dir), Ok)?;
            rustix::fs::fchown(file, Some(Uid::from_raw(model.st_uid)), Some(Gid::from_raw(model.st_gid)))?;
        }
        rustix::fs::fchmod(file, Mode::from_raw_mode(mode(upper)))?;
        let nanoseconds = tree::nanos(upper.st_mtime, upper.st_mtime_nsec);
        let (tv_sec, tv_nsec) =
            (nanoseconds.div_euclid(1_000_000_000), nanoseconds.rem_euclid(1_000_000_000));
        let last_access = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
        rustix::fs::futimens(
            file,
            &Timestamps { last_access, last_modification: Timespec { tv_sec, tv_nsec } },
        )?;
        rustix::fs::fdatasync(file)
    }

    fn make_link(&self, target: &[u8]) -> Result<(), Failure> {
        let aside = aside();
        rustix::fs::symlinkat(target, &self.dir, &aside)?;
        self.settle(&aside, Ok(()))
    }

    fn make_folder(&self) -> Result<(), Failure> {
        if self.seen.is_some() {
            self.remove()?;
        }
        match rustix::fs::mkdirat(&self.dir, self.name, Mode::RWXU) {
            Err(Errno::EXIST) => Err(Failure::Conflict(Conflict::Changed)),
            made => Ok(made?),
        }
    }

    /// Moves what was written aside into place, or takes it away again.
    fn settle(&self, aside: &OsStr, written: Result<(), Failure>) -> Result<(), Failure> {
        let settled = written.and_then(|()| match &self.seen {
            None => self.rename_new(aside),
            Some(seen) if file_type(seen) == FileType::Directory => {
                self.remove()?;
                self.rename_new(aside)
            }
            Some(seen) => self.exchange(aside, seen),
        });
        let _gone_already = rustix::fs::unlinkat(&self.dir, aside, AtFlags::empty());
        settled
    }

    fn rename_new(&self, aside: &OsStr) -> Result<(), Failure> {
        match self.rename(aside, self.name, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => Err(Failure::Conflict(Conflict::Changed)),
            renamed => Ok(renamed?),
        }
    }

    fn exchange(&self, aside: &OsStr, seen: &Stat) -> Result<(), Failure> {
        match self.rename(aside, self.name, RenameFlags::EXCHANGE) {
            Err(Errno::NOENT) => return Err(Failure::Conflict(Conflict::Vanished)),
            exchanged => exchanged?,
        }
        if now(&self.dir, aside)?.is_some_and(|out| is_same(&out, seen)) {
            return Ok(());
        }
        self.rename(aside, self.name, RenameFlags::EXCHANGE)?;
        Err(Failure::Conflict(Conflict::Changed))
    }

    /// Takes what was seen away; anything else that stands there by now is put back.
    fn remove(&self) -> Result<(), Failure> {
        let Some(seen) = &self.seen else { return Ok(()) };
        if file_type(seen) == FileType::Directory {
            return match rustix::fs::unlinkat(&self.dir, self.name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(Errno::NOTEMPTY | Errno::EXIST) => Err(Failure::Conflict(Conflict::NotEmpty)),
                Err(Errno::NOTDIR) => Err(Failure::Conflict(Conflict::Changed)),
                Err(error) => Err(Failure::Errno(error)),
            };
        }
        let aside = aside();
        match self.rename(self.name, &aside, RenameFlags::NOREPLACE) {
            Err(Errno::NOENT) => return Ok(()),
            renamed => renamed?,
        }
        if now(&self.dir, &aside)?.is_some_and(|out| is_same(&out, seen)) {
            return Ok(rustix::fs::unlinkat(&self.dir, &aside, AtFlags::empty())?);
        }
        self.rename(&aside, self.name, RenameFlags::NOREPLACE)?;
        Err(Failure::Conflict(Conflict::Changed))
    }

    fn rename(&self, from: &OsStr, to: &OsStr, flags: RenameFlags) -> Result<(), Errno> {
        rustix::fs::renameat_with(&self.dir, from, &self.dir, to, flags)
    }

    fn set_mode(&self, mode: u32) -> Result<(), Failure> {
        let is_folder =
            now(&self.dir, self.name)?.is_some_and(|stat| file_type(&stat) == FileType::Directory);
        let opened = if is_folder {
            open_own(&self.dir, self.name)
        } else {
            tree::beneath(&self.dir, self.name, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())
        };
        match opened {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Err(Failure::Conflict(Conflict::Changed)),
            opened => Ok(rustix::fs::fchmod(opened?, Mode::from_raw_mode(mode))?),
        }
    }
}

/// A rename gives a file a new ctime, so it is told by the rest.
fn is_same(one: &Stat, two: &Stat) -> bool {
    let key = |stat: &Stat| (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
    key(one) == key(two)
}

fn now(dir: &OwnedFd, name: &OsStr) -> Result<Option<Stat>, Errno> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(None),
        stat => stat.map(Some),
    }
}

fn aside() -> OsString {
    OsString::from(format!(".redoma-apply-{}-{:x}", std::process::id(), tree::now()))
}
