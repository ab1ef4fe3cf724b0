//! Where something is to be written.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use redoma_layers::beneath::in_root;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fchmod, mkdirat, openat, renameat, symlinkat, unlinkat};
use rustix::io::Errno;

use super::error::TransferError;
use super::item::{Item, Kind};
use crate::walk::tree::{as_path, beneath};

/// As many links as the kernel follows.
const LINKS_MAX: usize = 40;

/// How often another name is tried for a file that is not whole yet.
const NAMES_MAX: usize = 16;

/// What a folder is made with where nobody says it.
const FOLDER: u32 = 0o755;

/// What a path is meant from.
pub(super) enum Base<'a> {
    /// This machine's root, or this process's folder: a path that the user wrote.
    Host,
    /// The root of a sandbox.
    Inside(BorrowedFd<'a>),
}

/// What a path leads to.
pub(super) enum Destination {
    /// A folder that exists.
    Folder(OwnedFd),
    /// Something that is no folder.
    Other(Spot),
    /// Nothing yet.
    Absent(Spot),
}

/// A name in a folder.
pub(super) struct Spot {
    folder: OwnedFd,
    name: OsString,
    pub(super) path: PathBuf,
}

// === impl Base ===

impl Base<'_> {
    /// Opens a path, following the links on the way to it.
    pub(super) fn open(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match self {
            Self::Host => openat(CWD, path, flags | OFlags::CLOEXEC, Mode::empty()),
            Self::Inside(root) => in_root(root, path, flags),
        }
    }

    /// Opens the folder `path`, and makes it if that is wanted.
    fn folder(&self, path: &Path, make: bool) -> Result<OwnedFd, TransferError> {
        match self.open(path, OFlags::PATH | OFlags::DIRECTORY) {
            Err(Errno::NOENT) if make => {}
            opened => return opened.map_err(TransferError::step(path, "open")),
        }
        let no_name = || TransferError::NoName { path: path.into() };
        let name = path.file_name().ok_or_else(no_name)?;
        let parent = self.folder(path.parent().ok_or_else(no_name)?, true)?;
        match mkdirat(&parent, name, Mode::from_raw_mode(FOLDER)) {
            // Somebody else made it, or it is a link that leads nowhere: what opens it tells.
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(TransferError::step(path, "mkdir")(error)),
        }
        beneath(&parent, name, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())
            .map_err(TransferError::step(path, "open"))
    }
}

// === impl Destination ===

impl Destination {
    /// What `path` leads to, links followed; `make` makes the folder that it is to be in.
    pub(super) fn find(base: &Base<'_>, path: &Path, make: bool) -> Result<Self, TransferError> {
        let mut at = path.to_path_buf();
        for _ in 0..LINKS_MAX {
            match base.open(&at, OFlags::PATH | OFlags::DIRECTORY) {
                Ok(folder) => return Ok(Self::Folder(folder)),
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(error) => return Err(TransferError::step(path, "open")(error)),
            }
            let (parent, name) = at.parent().zip(at.file_name()).ok_or_else(|| absent(path))?;
            let folder = base.folder(parent, make)?;
            let item = match Item::within(&folder, name, path) {
                Err(TransferError::Absent { .. }) => return Ok(Self::Absent(Spot::new(folder, name, path))),
                item => item?,
            };
            match item.kind {
                // Relative to where the link is; an absolute target replaces all of the path.
                Kind::Link => at = parent.join(as_path(&item.target()?)),
                Kind::Folder | Kind::File => return Ok(Self::Other(Spot::new(folder, name, path))),
                Kind::Special => return Err(TransferError::Special { path: path.into() }),
            }
        }
        Err(TransferError::Link { path: path.into() })
    }
}

fn absent(path: &Path) -> TransferError {
    TransferError::Absent { path: path.into() }
}

// === impl Spot ===

impl Spot {
    pub(super) fn new(folder: OwnedFd, name: &OsStr, path: &Path) -> Self {
        Self { folder, name: name.to_owned(), path: path.into() }
    }

    pub(super) fn step(&self, step: &'static str) -> impl Fn(Errno) -> TransferError {
        TransferError::step(&self.path, step)
    }

    pub(super) fn io(&self, step: &'static str) -> impl Fn(io::Error) -> TransferError {
        let path = self.path.clone();
        move |source| TransferError::Step { path: path.clone(), step, source }
    }

    /// Makes a file with what `fill` writes: whole or not at all.
    pub(super) fn write<T>(
        &self,
        mode: u32,
        fill: impl FnOnce(&mut File) -> Result<T, TransferError>,
    ) -> Result<T, TransferError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let own = Mode::RUSR | Mode::WUSR;
        let (name, made) = self.under_another_name(|name| openat(&self.folder, name, flags, own))?;
        let mut file = File::from(made);
        let filled = fill(&mut file).and_then(|filled| {
            fchmod(&file, Mode::from_raw_mode(mode & 0o7777)).map_err(self.step("fchmod"))?;
            self.rename(&name)?;
            Ok(filled)
        });
        filled.inspect_err(|_| self.forget(&name))
    }

    /// Makes a link, in the place of whatever is no folder.
    pub(super) fn link(&self, target: &[u8]) -> Result<(), TransferError> {
        let (name, ()) = self.under_another_name(|name| symlinkat(as_path(target), &self.folder, name))?;
        self.rename(&name).inspect_err(|_| self.forget(&name))
    }

    /// Makes a folder, or takes the one that is there; whether it was made.
    pub(super) fn folder(&self) -> Result<(OwnedFd, bool), TransferError> {
        let made = match mkdirat(&self.folder, &self.name, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(error) => return Err(self.step("mkdirat")(error)),
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let opened = beneath(&self.folder, self.name.as_os_str(), flags, Mode::empty());
        Ok((opened.map_err(self.step("openat2"))?, made))
    }

    /// Random, since somebody inside could have made the names that can be guessed.
    fn under_another_name<T>(
        &self,
        make: impl Fn(&str) -> Result<T, Errno>,
    ) -> Result<(String, T), TransferError> {
        for _ in 0..NAMES_MAX {
            let mut bytes = [0; 8];
            rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
                .map_err(self.step("getrandom"))?;
            let name = format!(".redoma-{:016x}", u64::from_ne_bytes(bytes));
            match make(&name) {
                Err(Errno::EXIST) => {}
                made => return made.map(|made| (name, made)).map_err(self.step("make")),
            }
        }
        Err(self.step("make")(Errno::EXIST))
    }

    fn rename(&self, name: &str) -> Result<(), TransferError> {
        renameat(&self.folder, name, &self.folder, &self.name).map_err(self.step("rename"))
    }

    fn forget(&self, name: &str) {
        // The error that led here says more.
        let _removed = unlinkat(&self.folder, name, AtFlags::empty());
    }
}
