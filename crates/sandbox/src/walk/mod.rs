//! One bounded walk over the granted folders, before a session starts.
//!
//! It answers what the policy's patterns match, which sockets, FIFOs and devices lie there, and under which other names
//! the denied and protected files can be reached (hard links). The tree is hostile: nothing is followed, nothing is
//! executed, and a walk that would take too long is an error that names the folder, never an incomplete answer.
//!
//! Between sessions an answer is kept per folder, valid while the folder's inode and ctime are the same: a name cannot
//! appear in, vanish from or change its kind within a folder without a new ctime, and no program can set a ctime.

pub(crate) mod bytes;
pub(crate) mod cache;
mod links;
pub(crate) mod pool;
mod scan;
#[cfg(test)]
mod tests;
pub(crate) mod tree;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::FileType;
use rustix::io::Errno;

use scan::Scan;

pub(crate) use redoma_layers::remove;

/// What a name stands for, as far as a pattern may care. Links are never followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Dir,
    /// A symbolic link, whatever it leads to.
    Symlink,
    /// A Unix socket.
    Socket,
    /// A named pipe.
    Fifo,
    /// A block or character device.
    Device,
}

impl FileKind {
    pub(crate) fn from_type(kind: FileType) -> Self {
        match kind {
            FileType::Directory => Self::Dir,
            FileType::Symlink => Self::Symlink,
            FileType::Socket => Self::Socket,
            FileType::Fifo => Self::Fifo,
            FileType::BlockDevice | FileType::CharacterDevice => Self::Device,
            _ => Self::File,
        }
    }

    /// Sockets, FIFOs and devices reach something that is not the tree.
    fn is_special(self) -> bool {
        matches!(self, Self::Socket | Self::Fifo | Self::Device)
    }
}

/// What the policy says about a path that matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Neither readable nor writable: to be covered. A denied folder is not looked into for further matches.
    Deny,
    /// Readable, not writable.
    Protect,
    /// Nothing: the caller wants to know that it is there.
    Note,
}

/// A pattern that matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Match {
    /// What follows from it.
    pub verdict: Verdict,
    /// The caller's number for the pattern, so that `why` can name its line.
    pub rule: u32,
}

/// Decides about one absolute path; called from several threads.
pub type Matcher<'a> = &'a (dyn Fn(&Path, FileKind) -> Option<Match> + Sync);

/// How much a walk may do before it gives up with an error.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Names seen, all roots together.
    pub entries: u64,
    /// Time since the walk began.
    pub time: Duration,
    /// Pass over folders whose path is longer than the kernel takes. Never to be combined with a cache, which would
    /// pass them over for ever.
    pub pass_over_deep: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 5_000_000, time: Duration::from_secs(20), pass_over_deep: false }
    }
}

/// What to look for and how.
#[derive(Clone, Copy)]
pub struct Walk<'a> {
    /// The patterns.
    pub matcher: Matcher<'a>,
    /// Names the set of patterns: the cache answers only for the set it was filled with.
    pub fingerprint: &'a [u8],
    /// Bounds.
    pub limits: Limits,
    /// Folder of the caches, which no sandbox may write. `None` walks everything each time.
    pub cache: Option<&'a Path>,
    /// Exact denied and protected paths, wherever they are: their other names (hard links) are looked for as well.
    pub sought: &'a [(PathBuf, Match)],
}

/// A path that a pattern matched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hit {
    /// Absolute: the root as given, and the names below it.
    pub path: PathBuf,
    /// What it is; the target of a link is for the caller to resolve.
    pub kind: FileKind,
    /// Why it is here.
    pub matched: Match,
}

/// Another name of a file that is denied or protected.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alias {
    /// The name that no pattern matched.
    pub path: PathBuf,
    /// The denied or protected path it shares the inode with.
    pub of: PathBuf,
    /// What holds for `of`, and so must hold for `path`.
    pub matched: Match,
}

/// What a walk found, each list in path order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Paths that patterns matched.
    pub hits: Vec<Hit>,
    /// Sockets, FIFOs and devices outside denied folders.
    pub specials: Vec<(PathBuf, FileKind)>,
    /// Hard links to what is denied or protected.
    pub aliases: Vec<Alias>,
    /// Folders that could not be read. What lies in them is unknown, and their owner can make them readable from
    /// inside: cover them.
    pub unreadable: Vec<PathBuf>,
    /// Denied or protected folders with more files than are looked at for hard links.
    pub unchecked: Vec<PathBuf>,
    /// Folders looked at.
    pub dirs: usize,
    /// Folders whose names had to be read; the rest came from the cache.
    pub dirs_read: usize,
}

/// Why a walk gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum WalkError {
    /// A granted folder, or one below it, could not be read for a reason that is not its permissions.
    #[error("cannot walk {path:?}: {source}")]
    Read {
        /// The folder.
        path: PathBuf,
        /// The kernel's reason.
        source: Errno,
    },
    /// More names than [`Limits::entries`].
    #[error(
        "{root:?} holds more than {limit} files to check against the denied patterns; counting stopped in {path:?}"
    )]
    TooMany {
        /// The granted folder.
        root: PathBuf,
        /// The folder that was being read.
        path: PathBuf,
        /// The bound.
        limit: u64,
    },
    /// Longer than [`Limits::time`].
    #[error(
        "checking {root:?} against the denied patterns took longer than {limit:?}; it stopped in {path:?}"
    )]
    TooSlow {
        /// The granted folder.
        root: PathBuf,
        /// The folder that was being read.
        path: PathBuf,
        /// The bound.
        limit: Duration,
    },
    /// A path longer than the kernel takes: nothing could be mounted over it.
    #[error("{path:?} is nested too deeply to be checked (paths end at 4096 bytes)")]
    TooDeep {
        /// The folder, cut to its beginning.
        path: PathBuf,
    },
}

impl WalkError {
    /// What the user can do.
    pub fn hint(&self) -> String {
        match self {
            Self::Read { path, .. } => format!("grant a folder that can be read, or deny {path:?}"),
            Self::TooMany { path, .. } | Self::TooSlow { path, .. } => {
                format!("grant a smaller folder, or deny {path:?} as a whole")
            }
            Self::TooDeep { path } => format!("remove {path:?}"),
        }
    }
}

impl Walk<'_> {
    /// Walks `roots` (absolute and canonical; a root below another is walked once, with the outer one). A root that is
    /// no folder, as when a single file is granted, is looked at itself.
    pub fn run(&self, roots: &[PathBuf]) -> Result<Found, WalkError> {
        let mut files = Vec::new();
        let mut folders = Vec::new();
        for root in roots {
            match kind_of(root)? {
                FileKind::Dir => folders.push(root.clone()),
                kind => files.push((root, kind)),
            }
        }
        let scan = Scan::open(self, &folders)?;
        let first = scan.all(&[])?;
        let mut links = links::Links::of(self, &first);
        let answer = if links.need_search(&first.inodes) { scan.all(&links.inodes())? } else { first };
        let mut found = links.name(&answer);
        files.into_iter().for_each(|(file, kind)| self.look_at(file, kind, &mut found));
        found.sort();
        Ok(found)
    }

    fn look_at(&self, path: &Path, kind: FileKind, found: &mut Found) {
        match (self.matcher)(path, kind) {
            Some(matched) => found.hits.push(Hit { path: path.to_owned(), kind, matched }),
            None if kind.is_special() => found.specials.push((path.to_owned(), kind)),
            None => {}
        }
    }
}

/// lstat(2): roots are canonical, so a link here was put there a moment ago and is not to be followed.
fn kind_of(root: &Path) -> Result<FileKind, WalkError> {
    let stat = rustix::fs::lstat(root).map_err(|source| WalkError::Read { path: root.to_owned(), source })?;
    Ok(FileKind::from_type(FileType::from_raw_mode(stat.st_mode)))
}

impl Found {
    fn sort(&mut self) {
        self.hits.sort();
        self.specials.sort();
        self.aliases.sort();
        self.unreadable.sort();
    }
}
