//! Protected and denied paths that do not exist when a session starts, in folders it may write.
//!
//! Nothing can be mounted over what is not there, and nothing is created in the host's tree to make it possible. So the
//! folders on the way are watched (inotify(7)), and what appears under such a name is moved away at once, by rename. The
//! events only say when to look; what is done follows from looking, so that a lost or forged event hides nothing.
//!
//! What this cannot do: a program of the host that reads the path in the instant between is not kept from it.

mod keep;
#[cfg(test)]
mod tests;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, StatxFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::raw_path;
use crate::walk::FileKind;
use crate::walk::tree::{self, Identity, Root};
pub(crate) use keep::Keep;

/// Something that appeared where nothing may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// The protected or denied path it was meant for.
    pub wanted: PathBuf,
    /// Where it appeared: `wanted`, or a link in place of a folder on the way to it.
    pub path: PathBuf,
    /// What it is.
    pub kind: FileKind,
    /// What was done.
    pub outcome: Outcome,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It lies here now.
    Moved(PathBuf),
    /// It was removed: too many were kept already.
    Removed,
    /// It is still there, for this reason.
    Failed(Errno),
}

/// Why a watch could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum QuarantineError {
    /// inotify_init1(2) failed, mostly because of its per-user limit.
    #[error("cannot watch for protected paths: {0}")]
    Inotify(Errno),
    /// A folder could not be opened or watched.
    #[error("cannot watch {path:?} for protected paths: {source}")]
    Watch {
        /// The folder.
        path: PathBuf,
        /// The kernel's reason.
        source: Errno,
    },
    /// A path that lies in none of the roots.
    #[error("{path:?} lies in no granted folder")]
    Outside {
        /// The path.
        path: PathBuf,
    },
}

impl QuarantineError {
    /// What the user can do.
    pub fn hint(&self) -> String {
        match self {
            Self::Inotify(_) | Self::Watch { source: Errno::NOSPC, .. } => {
                "sysctl fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=524288".to_owned()
            }
            Self::Watch { path, .. } => format!("make {path:?} readable, or grant another folder"),
            Self::Outside { path } => format!("take {path:?} out of the protected paths"),
        }
    }
}

/// The watch of one session.
#[derive(Debug)]
pub struct Watch {
    /// None before [`Watch::listen`].
    inotify: Option<OwnedFd>,
    roots: Vec<Root>,
    wanted: Vec<Wanted>,
    /// By watch descriptor: which names in that folder matter, and to which of `wanted`.
    names: HashMap<i32, BTreeMap<OsString, BTreeSet<usize>>>,
    keep: Keep,
    /// Folders that [`Watch::listen`] has watched already, by root and path below it: most of what is wanted lies in a few.
    /// Later none is taken from here: a folder may have become another.
    just_watched: Option<HashMap<(usize, PathBuf), i32>>,
    /// Folders that one look at everything has opened already.
    just_opened: Option<HashMap<(usize, PathBuf), Rc<OwnedFd>>>,
    /// Why a folder on the way could not be watched.
    deaf: Option<Errno>,
    /// When the session had ended at the latest, in nanoseconds since 1970: what came later is the user's own.
    until: Option<i64>,
}

#[derive(Debug)]
struct Wanted {
    root: usize,
    /// Below the root; never empty.
    parts: Vec<OsString>,
    /// A link, or a git file, that stood on the way when the session began: the user's own.
    own: Option<Own>,
}

/// What was there when the session began. An inode is held open, since the number of one that was freed is given to the
/// next file; when the holder is gone, the time of birth tells them apart, on file systems that have one.
#[derive(Debug)]
struct Own {
    mark: Mark,
    held: Option<OwnedFd>,
}

/// Tells an inode from others, also later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    dev: u64,
    ino: u64,
    born: Option<i64>,
}

/// A path that must not be there, and what else stood on the way to it, to be looked at again when the watch is gone.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Expected {
    #[serde(with = "raw_path")]
    path: PathBuf,
    own: Option<Mark>,
}

impl Expected {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Own {
    fn of(step: &Step) -> Result<Self, Errno> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::openat(&step.dir, &step.name, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&held)?;
        let born = birth(&held, OsStr::new(""));
        Ok(Self { mark: Mark { dev: stat.st_dev, ino: stat.st_ino, born }, held: Some(held) })
    }

    fn is(&self, dir: &OwnedFd, name: &OsStr, stat: &Stat) -> bool {
        let same = (self.mark.dev, self.mark.ino) == (stat.st_dev, stat.st_ino);
        same && (self.held.is_some() || self.mark.born == birth(dir, name))
    }
}

/// statx(2), in nanoseconds since 1970.
fn birth(dir: &OwnedFd, name: &OsStr) -> Option<i64> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    let stat = rustix::fs::statx(dir, name, flags, StatxFlags::BTIME).ok()?;
    let known = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
    known.then(|| tree::nanos(stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec))
}

/// What stands at some step of the way to a wanted path.
struct Step {
    dir: Rc<OwnedFd>,
    name: OsString,
    /// Of the step itself, below the root.
    rel: PathBuf,
    stat: Stat,
}

impl Watch {
    /// Notes what stands on the way to each of `wanted`, which lie below the writable `roots`; all absolute. What exists
    /// already is quarantined by the first [`Watch::listen`] or [`Watch::sweep`]: leave out what may be there.
    ///
    /// `quarantine` is made when something has to be moved into it.
    ///
    /// # Errors
    /// When a folder on the way cannot be looked into: the session must not start then.
    pub fn new(roots: &[PathBuf], wanted: &[PathBuf], quarantine: &Path) -> Result<Self, QuarantineError> {
        let mut watch = Self::over(roots, wanted.iter().map(PathBuf::as_path), quarantine)?;
        watch.just_opened = Some(HashMap::new());
        for index in 0..watch.wanted.len() {
            watch.note_own(index).map_err(|source| watch.failed(index, source))?;
        }
        watch.just_opened = None;
        Ok(watch)
    }

    /// The watch of a session that is gone, and had ended at the latest at `until`: only to [`Watch::sweep`].
    pub(crate) fn again(
        roots: &[PathBuf],
        expected: &[Expected],
        until: Option<i64>,
        quarantine: &Path,
    ) -> Result<Self, QuarantineError> {
        let mut watch = Self::over(roots, expected.iter().map(|one| one.path.as_path()), quarantine)?;
        for (wanted, one) in watch.wanted.iter_mut().zip(expected) {
            wanted.own = one.own.map(|mark| Own { mark, held: None });
        }
        watch.until = until;
        Ok(watch)
    }

    /// For [`Watch::again`].
    pub(crate) fn expected(&self) -> Vec<Expected> {
        let expected = |wanted: &Wanted| Expected {
            path: self.path_of(wanted),
            own: wanted.own.as_ref().map(|own| own.mark),
        };
        self.wanted.iter().map(expected).collect()
    }

    fn over<'p>(
        roots: &[PathBuf],
        wanted: impl Iterator<Item = &'p Path>,
        quarantine: &Path,
    ) -> Result<Self, QuarantineError> {
        let open = |path: &PathBuf| {
            Root::open(path).map_err(|source| QuarantineError::Watch { path: path.clone(), source })
        };
        let roots = roots.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let wanted = wanted.map(|path| Wanted::below(&roots, path)).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            inotify: None,
            roots,
            wanted,
            names: HashMap::new(),
            keep: Keep::new(quarantine),
            just_watched: None,
            just_opened: None,
            deaf: None,
            until: None,
        })
    }

    /// Starts to listen, and moves away what has appeared since [`Watch::new`]. The kernel takes long to let go of what
    /// it listens for, so a command that ends at once is better only swept after.
    ///
    /// # Errors
    /// When the kernel gives no more watches: the session must end then.
    pub fn listen(&mut self) -> Result<Vec<Quarantined>, QuarantineError> {
        let flags = CreateFlags::NONBLOCK | CreateFlags::CLOEXEC;
        self.inotify = Some(inotify::init(flags).map_err(QuarantineError::Inotify)?);
        self.just_watched = Some(HashMap::new());
        for index in 0..self.wanted.len() {
            self.look(index).map_err(|source| self.failed(index, source))?;
        }
        self.just_watched = None;
        Ok(self.sweep())
    }

    /// The descriptor to poll for reading, once it listens.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inotify.as_ref().map(AsFd::as_fd)
    }

    /// Why it cannot hear everything any more, such as for want of watches, which commands can use up: then the session
    /// must end.
    pub fn deaf(&self) -> Option<QuarantineError> {
        self.deaf.map(QuarantineError::Inotify)
    }

    /// Reads what happened and moves away what appeared. Call it when [`Watch::fd`] is readable.
    pub fn handle(&mut self) -> Vec<Quarantined> {
        let due = self.due();
        due.into_iter().flat_map(|index| self.clear(index)).collect()
    }

    /// Looks at every wanted path, whatever was heard. Call it when the session's processes are gone.
    ///
    /// While they are not, a folder may become another after it was looked into: that is heard, since every folder on the
    /// way is watched then.
    pub fn sweep(&mut self) -> Vec<Quarantined> {
        self.just_opened = Some(HashMap::new());
        let found = (0..self.wanted.len()).flat_map(|index| self.clear(index)).collect();
        self.just_opened = None;
        found
    }

    fn note_own(&mut self, index: usize) -> Result<(), Errno> {
        if let Some(step) = self.look(index)? {
            let wanted = &mut self.wanted[index];
            if step.rel.components().count() < wanted.parts.len() {
                wanted.own = Some(Own::of(&step)?);
            }
        }
        Ok(())
    }

    /// Which wanted paths to look at. Everything, when events were lost.
    fn due(&self) -> BTreeSet<usize> {
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut due = BTreeSet::new();
        let Some(inotify) = &self.inotify else { return due };
        let mut reader = inotify::Reader::new(inotify, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => {
                    due.extend(0..self.wanted.len());
                }
                Ok(event) => due.extend(self.concerned(event.wd(), event.file_name())),
                Err(Errno::INTR) => {}
                Err(_) => return due,
            }
        }
    }

    fn concerned(&self, wd: i32, name: Option<&std::ffi::CStr>) -> Vec<usize> {
        use std::os::unix::ffi::OsStrExt;
        let Some(names) = self.names.get(&wd) else { return Vec::new() };
        match name {
            Some(name) => names
                .get(OsStr::from_bytes(name.to_bytes()))
                .map_or(Vec::new(), |of| of.iter().copied().collect()),
            None => names.values().flatten().copied().collect(),
        }
    }

    /// Moves away what is in the way until nothing is, in case it is made anew while we look; not for ever, though.
    fn clear(&mut self, index: usize) -> Vec<Quarantined> {
        let mut done = Vec::new();
        for _ in 0..64 {
            let Ok(Some(step)) = self.look(index) else { break };
            let quarantined = self.quarantine_step(index, &step);
            // What was moved away may have been a folder that others lie in.
            self.just_opened = self.just_opened.take().map(|_| HashMap::new());
            let failed = matches!(quarantined.outcome, Outcome::Failed(_));
            // Gone by itself in the meantime.
            if quarantined.outcome != Outcome::Failed(Errno::NOENT) {
                done.push(quarantined);
            }
            if failed {
                break;
            }
        }
        done
    }

    /// Follows the way to a wanted path as far as it exists, watching each folder *before* looking into it, so that what
    /// appears in between is either seen or heard. Gives what must not be there.
    fn look(&mut self, index: usize) -> Result<Option<Step>, Errno> {
        let Wanted { root, parts, own } = &self.wanted[index];
        let mut rel = PathBuf::new();
        let open = || self.roots[*root].dir(Path::new(""));
        let mut dir = once(&mut self.just_opened, (*root, &rel), open)?;
        for (at, name) in parts.iter().enumerate() {
            if let Some(inotify) = &self.inotify {
                let watched = match &mut self.just_watched {
                    None => add_watch(inotify, &dir),
                    Some(watched) => match watched.entry((*root, rel.clone())) {
                        Entry::Occupied(known) => Ok(*known.get()),
                        Entry::Vacant(place) => add_watch(inotify, &dir).map(|wd| *place.insert(wd)),
                    },
                };
                match watched {
                    Ok(wd) => {
                        self.names.entry(wd).or_default().entry(name.clone()).or_default().insert(index);
                    }
                    // What is there is still looked for; what comes later would not be heard.
                    Err(errno) => self.deaf = Some(errno),
                }
            }
            let Some(stat) = absent_is_none(rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW))?
            else {
                return Ok(None);
            };
            rel.push(name);
            let last = at + 1 == parts.len();
            if own.as_ref().is_some_and(|own| own.is(&dir, name, &stat)) {
                return Ok(None);
            }
            let later = self.until.is_some_and(|until| Identity::of(&stat).ctime > until);
            if !later && (last || leads_elsewhere(name, &stat)) {
                return Ok(Some(Step { dir, name: name.clone(), rel, stat }));
            }
            let open =
                || tree::beneath(&dir, name.as_os_str(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
            let next = once(&mut self.just_opened, (*root, &rel), open);
            let Some(next) = absent_is_none(next)? else { return Ok(None) };
            dir = next;
        }
        Ok(None)
    }

    fn quarantine_step(&mut self, index: usize, step: &Step) -> Quarantined {
        let wanted = &self.wanted[index];
        Quarantined {
            wanted: self.path_of(wanted),
            path: self.roots[wanted.root].path().join(&step.rel),
            kind: FileKind::from_type(FileType::from_raw_mode(step.stat.st_mode)),
            outcome: self.keep.take(&step.dir, &step.name).unwrap_or_else(Outcome::Failed),
        }
    }

    fn failed(&self, index: usize, source: Errno) -> QuarantineError {
        QuarantineError::Watch { path: self.path_of(&self.wanted[index]), source }
    }

    fn path_of(&self, wanted: &Wanted) -> PathBuf {
        let root = self.roots[wanted.root].path().to_path_buf();
        wanted.parts.iter().fold(root, |path, part| path.join(part))
    }
}

impl Wanted {
    fn below(roots: &[Root], path: &Path) -> Result<Self, QuarantineError> {
        let outside = || QuarantineError::Outside { path: path.to_path_buf() };
        let holds = |(_, root): &(usize, &Root)| path.starts_with(root.path());
        let longest = |(_, root): &(usize, &Root)| root.path().as_os_str().len();
        let (index, root) = roots.iter().enumerate().filter(holds).max_by_key(longest).ok_or_else(outside)?;
        let part = |component: Component<'_>| match component {
            Component::Normal(name) => Ok(name.to_owned()),
            _ => Err(outside()),
        };
        let rel = path.strip_prefix(root.path()).map_err(|_| outside())?;
        let parts = rel.components().map(part).collect::<Result<Vec<_>, _>>()?;
        if parts.is_empty() { Err(outside()) } else { Ok(Self { root: index, parts, own: None }) }
    }
}

/// Opens a folder, unless the look that is under way has opened it: most of what is wanted lies in a few.
fn once(
    opened: &mut Option<HashMap<(usize, PathBuf), Rc<OwnedFd>>>,
    (root, rel): (usize, &PathBuf),
    open: impl FnOnce() -> Result<OwnedFd, Errno>,
) -> Result<Rc<OwnedFd>, Errno> {
    let Some(opened) = opened else { return open().map(Rc::new) };
    match opened.entry((root, rel.clone())) {
        Entry::Occupied(known) => Ok(Rc::clone(known.get())),
        Entry::Vacant(place) => Ok(Rc::clone(place.insert(Rc::new(open()?)))),
    }
}

/// Names that lead on without being a folder: a link, and git's file that says where its folder is.
fn leads_elsewhere(name: &OsStr, stat: &Stat) -> bool {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => true,
        FileType::RegularFile => name == ".git",
        _ => false,
    }
}

fn absent_is_none<T>(result: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
    }
}

/// inotify takes paths only; the descriptor's name in /proc is the one that nobody can swap.
fn add_watch(inotify: &OwnedFd, dir: &OwnedFd) -> Result<i32, Errno> {
    let path = format!("/proc/self/fd/{}", dir.as_raw_fd());
    let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR;
    inotify::add_watch(inotify, path, flags)
}
