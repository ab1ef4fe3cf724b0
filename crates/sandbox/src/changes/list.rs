//! Compares a change set with the project.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::refuse::{self, below, by_nature};
use super::{Change, ChangeKind, ChangeSet, ChangesError, Conflict, Refusal};
use crate::walk::remove::remove;
use crate::walk::tree::{self, Identity, Root, as_path};
use crate::walk::{FileKind, Match};

/// Entries of a change set, deleted ones included.
const ENTRIES_MAX: usize = 1_000_000;

/// Folders within folders. Each costs a step of recursion and three descriptors while it is looked through.
const DEPTH_MAX: usize = 200;

/// File systems stamp with the clock's last tick, which may be as old as this (nanoseconds; 100 Hz).
const TICK: i64 = 10_000_000;

/// A change with what was seen on both sides, so that applying it can tell whether they are still the same.
pub(super) struct Item {
    pub(super) change: Change,
    pub(super) lower: Option<Stat>,
    pub(super) upper: Option<Stat>,
}

/// All changes, in path order.
pub(super) fn list(set: &ChangeSet<'_>, lower: &Root, upper: &Root) -> Result<Vec<Item>, ChangesError> {
    let began = set.began.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let began = i64::try_from(began).unwrap_or(i64::MAX).saturating_sub(TICK);
    let mut listing =
        Listing { set, lower, upper, began, items: BTreeMap::new(), links: HashMap::new(), seen: 0 };
    let (lower_dir, upper_dir) = (lower.dir(Path::new("")), upper.dir(Path::new("")));
    let upper_dir = upper_dir.map_err(|source| read_error(upper, Path::new(""), source))?;
    listing.folder(Path::new(""), &upper_dir, lower_dir.ok().as_ref())?;
    listing.refuse_hard_links();
    Ok(listing.items.into_values().collect())
}

/// Removes all that a folder holds.
pub(super) fn empty(root: &Root) -> Result<(), Errno> {
    let dir = root.dir(Path::new(""))?;
    names(&dir)?.iter().try_for_each(|name| remove(&dir, as_path(name).as_os_str()))
}

fn names(dir: &OwnedFd) -> Result<BTreeSet<Vec<u8>>, Errno> {
    let mut names = BTreeSet::new();
    tree::list(dir, &mut tree::dirent_buffer(), |entry| {
        names.insert(entry.name.to_vec());
        Ok(())
    })?;
    Ok(names)
}

fn read_error(root: &Root, rel: &Path, source: Errno) -> ChangesError {
    ChangesError::Read { path: root.path().join(rel), source }
}

struct Listing<'a> {
    set: &'a ChangeSet<'a>,
    lower: &'a Root,
    upper: &'a Root,
    began: i64,
    items: BTreeMap<PathBuf, Item>,
    /// The names in the change set of files that have several, by inode.
    links: HashMap<u64, Vec<PathBuf>>,
    seen: usize,
}

impl Listing<'_> {
    /// Looks through one folder of the change set; `lower` is the project's folder that shines through, if any.
    fn folder(&mut self, rel: &Path, upper: &OwnedFd, lower: Option<&OwnedFd>) -> Result<(), ChangesError> {
        let found = names(upper).map_err(|source| read_error(self.upper, rel, source))?;
        for name in &found {
            self.name(&below(rel, name), name, upper, lower)?;
        }
        let Some(lower) = lower.filter(|_| refuse::is_opaque(upper)) else { return Ok(()) };
        let hidden = names(lower).map_err(|source| read_error(self.lower, rel, source))?;
        for name in hidden.difference(&found) {
            self.deleted(&below(rel, name), name, lower, None)?;
        }
        Ok(())
    }

    fn count(&mut self, rel: &Path) -> Result<(), ChangesError> {
        self.seen += 1;
        if self.seen > ENTRIES_MAX {
            return Err(ChangesError::TooMany { path: self.upper.path().to_path_buf(), limit: ENTRIES_MAX });
        }
        if rel.components().count() > DEPTH_MAX {
            return Err(read_error(self.upper, rel, Errno::NAMETOOLONG));
        }
        Ok(())
    }

    fn name(
        &mut self,
        rel: &Path,
        name: &[u8],
        upper: &OwnedFd,
        lower: Option<&OwnedFd>,
    ) -> Result<(), ChangesError> {
        self.count(rel)?;
        let Some(above) = stat(upper, name).map_err(|source| read_error(self.upper, rel, source))? else {
            return Ok(());
        };
        let below = lower.map_or(Ok(None), |lower| stat(lower, name));
        let below = below.map_err(|source| read_error(self.lower, rel, source))?;
        if is_whiteout(&above) {
            return lower.map_or(Ok(()), |lower| self.deleted(rel, name, lower, Some(above)));
        }
        match (file_type(&above), below) {
            (FileType::Directory, below) => self.subfolder(rel, name, (upper, &above), (lower, below)),
            (_, below) => self.leaf(rel, name, (upper, &above), (lower, below)),
        }
    }

    /// A folder of the change set: merged with the project's, instead of something else, or new.
    fn subfolder(
        &mut self,
        rel: &Path,
        name: &[u8],
        (upper, above): (&OwnedFd, &Stat),
        (lower, below): (Option<&OwnedFd>, Option<Stat>),
    ) -> Result<(), ChangesError> {
        let kind = match &below {
            None => Some(ChangeKind::Added),
            Some(below) if file_type(below) != FileType::Directory => Some(ChangeKind::Type),
            Some(below) => (mode(below) != mode(above)).then_some(ChangeKind::Mode),
        };
        let opened = tree::beneath(upper, as_path(name), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
        let Ok(folder) = opened else {
            self.add(rel, kind.unwrap_or(ChangeKind::Mode), below, Some(*above), Some(Refusal::Unreadable));
            return Ok(());
        };
        let marked = refuse::has_foreign_mark(&folder).then_some(Refusal::Mark);
        let refusal = marked.or_else(|| by_nature(rel, above, None));
        if let Some(kind) = kind.or(refusal.is_some().then_some(ChangeKind::Mode)) {
            self.add(rel, kind, below, Some(*above), refusal);
        }
        let merged = below.filter(|below| file_type(below) == FileType::Directory).and(lower);
        let open =
            |lower| tree::beneath(lower, as_path(name), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
        let merged = merged.map(open).transpose().map_err(|source| read_error(self.lower, rel, source))?;
        self.folder(rel, &folder, merged.as_ref())
    }

    /// Anything but a folder.
    fn leaf(
        &mut self,
        rel: &Path,
        name: &[u8],
        (upper, above): (&OwnedFd, &Stat),
        (lower, below): (Option<&OwnedFd>, Option<Stat>),
    ) -> Result<(), ChangesError> {
        let kind = match (&below, lower) {
            (Some(below), Some(lower)) if file_type(below) == file_type(above) => {
                match self.difference(name, (upper, above), (lower, below)) {
                    Ok(None) => return Ok(()),
                    Ok(Some(kind)) => kind,
                    // It cannot be read, which its refusal says.
                    Err(_) => ChangeKind::Modified,
                }
            }
            (Some(below), Some(lower)) => {
                if file_type(below) == FileType::Directory {
                    self.deleted_below(rel, name, lower)?;
                }
                ChangeKind::Type
            }
            _ => ChangeKind::Added,
        };
        let (refusal, copied_up) = self.inspect(rel, name, upper, above);
        self.add(rel, kind, below, Some(*above), refusal);
        if copied_up && below.is_none() && self.may_have_vanished(rel) {
            self.items
                .entry(rel.to_path_buf())
                .and_modify(|item| item.change.conflict = Some(Conflict::Vanished));
        }
        Ok(())
    }

    /// What speaks against a file, and whether the kernel copied it up from the project.
    fn inspect(&mut self, rel: &Path, name: &[u8], upper: &OwnedFd, above: &Stat) -> (Option<Refusal>, bool) {
        if file_type(above) == FileType::RegularFile {
            if above.st_nlink > 1 {
                self.links.entry(above.st_ino).or_default().push(rel.to_path_buf());
            }
            let nature = by_nature(rel, above, None);
            let Ok(file) = open_file(upper, name) else {
                return (nature.or(Some(Refusal::Unreadable)), false);
            };
            let marked = refuse::has_foreign_mark(&file).then_some(Refusal::Mark);
            return (nature.or(marked), refuse::has_mark(&file, "user.overlay.origin"));
        }
        let target = rustix::fs::readlinkat(upper, name, Vec::new()).ok();
        (by_nature(rel, above, target.as_ref().map(|target| target.to_bytes())), false)
    }

    /// How two things of the same kind differ. What was only touched, and so copied up, does not.
    fn difference(
        &self,
        name: &[u8],
        (upper, above): (&OwnedFd, &Stat),
        (lower, below): (&OwnedFd, &Stat),
    ) -> Result<Option<ChangeKind>, Errno> {
        match file_type(above) {
            FileType::RegularFile => {
                let same = above.st_size == below.st_size
                    && same_content(open_file(upper, name)?, open_file(lower, name)?)?;
                let mode = (mode(above) != mode(below)).then_some(ChangeKind::Mode);
                Ok(if same { mode } else { Some(ChangeKind::Modified) })
            }
            FileType::Symlink => {
                let target = |dir| rustix::fs::readlinkat(dir, name, Vec::new());
                Ok((target(upper)? != target(lower)?).then_some(ChangeKind::Link))
            }
            // Never applied, so it makes no difference whether it is the same one.
            _ => Ok(Some(ChangeKind::Modified)),
        }
    }

    /// A path of the project that the change set hides, with all below it.
    fn deleted(
        &mut self,
        rel: &Path,
        name: &[u8],
        lower: &OwnedFd,
        above: Option<Stat>,
    ) -> Result<(), ChangesError> {
        self.count(rel)?;
        let below = stat(lower, name).map_err(|source| read_error(self.lower, rel, source))?;
        let Some(below) = below else { return Ok(()) };
        if file_type(&below) == FileType::Directory {
            self.deleted_below(rel, name, lower)?;
        }
        self.add(rel, ChangeKind::Deleted, Some(below), above, None);
        Ok(())
    }

    fn deleted_below(&mut self, rel: &Path, name: &[u8], lower: &OwnedFd) -> Result<(), ChangesError> {
        let failed = |source| read_error(self.lower, rel, source);
        let folder = tree::beneath(lower, as_path(name), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
        let folder = folder.map_err(failed)?;
        for name in names(&folder).map_err(failed)? {
            self.deleted(&below(rel, &name), &name, &folder, None)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        rel: &Path,
        kind: ChangeKind,
        lower: Option<Stat>,
        upper: Option<Stat>,
        refusal: Option<Refusal>,
    ) {
        let refusal = refusal.or_else(|| self.refused_by_policy(rel, lower.as_ref().or(upper.as_ref())));
        let change =
            Change { path: rel.to_path_buf(), kind, refusal, conflict: self.conflict(kind, lower.as_ref()) };
        self.items.insert(rel.to_path_buf(), Item { change, lower, upper });
    }

    /// Denied and protected paths, and whatever lies below them.
    fn refused_by_policy(&self, rel: &Path, stat: Option<&Stat>) -> Option<Refusal> {
        let own = stat.map_or(FileKind::File, |stat| FileKind::from_type(file_type(stat)));
        let matches = |ancestor: &Path| -> Option<Match> {
            let kind = if ancestor == rel { own } else { FileKind::Dir };
            (self.set.matcher)(&self.set.project.join(ancestor), kind)
        };
        let named = |ancestor: &&Path| !ancestor.as_os_str().is_empty();
        rel.ancestors().filter(named).any(|ancestor| matches(ancestor).is_some()).then_some(Refusal::Policy)
    }

    /// A folder's ctime changes with every name in it, so it tells nothing about a folder that goes or gets a new mode;
    /// the names in it are looked at one by one.
    fn conflict(&self, kind: ChangeKind, lower: Option<&Stat>) -> Option<Conflict> {
        let lower =
            lower.filter(|lower| kind != ChangeKind::Deleted || file_type(lower) != FileType::Directory)?;
        (Identity::of(lower).ctime >= self.began).then_some(Conflict::Changed)
    }

    /// What was copied up and is not in the project was either moved here by the session, or removed by the user: which
    /// changes the folder it was in, or the one that was in.
    fn may_have_vanished(&self, rel: &Path) -> bool {
        let folder = rel.ancestors().skip(1).find_map(|folder| self.lower.stat(folder).ok());
        folder.is_some_and(|folder| Identity::of(&folder).ctime >= self.began)
    }

    /// Names beyond those in the change set would be outside it.
    fn refuse_hard_links(&mut self) {
        for names in self.links.values() {
            for name in names {
                let Some(item) = self.items.get_mut(name) else { continue };
                let links = item.upper.as_ref().map_or(0, |stat| stat.st_nlink);
                if usize::try_from(links).unwrap_or(usize::MAX) > names.len() {
                    item.change.refusal.get_or_insert(Refusal::HardLink);
                }
            }
        }
    }
}

fn stat(dir: &OwnedFd, name: &[u8]) -> Result<Option<Stat>, Errno> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(None),
        stat => stat.map(Some),
    }
}

pub(super) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

pub(super) fn mode(stat: &Stat) -> u32 {
    stat.st_mode & 0o7777
}

fn is_whiteout(stat: &Stat) -> bool {
    file_type(stat) == FileType::CharacterDevice && stat.st_rdev == 0
}

fn open_file(dir: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    tree::beneath(dir, as_path(name), OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty())
}

/// Compares two files of the same size, piece by piece.
fn same_content(one: OwnedFd, two: OwnedFd) -> Result<bool, Errno> {
    const PIECE: u64 = 128 * 1024;
    let (mut one, mut two) = (std::fs::File::from(one), std::fs::File::from(two));
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        left.clear();
        right.clear();
        let read = (&mut one)
            .take(PIECE)
            .read_to_end(&mut left)
            .and_then(|_| (&mut two).take(PIECE).read_to_end(&mut right));
        read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        if left != right {
            return Ok(false);
        }
        if left.is_empty() {
            return Ok(true);
        }
    }
}
