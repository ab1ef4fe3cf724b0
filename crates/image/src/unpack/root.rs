//! The folder that a layer is unpacked in. Nothing is reached by a path string of the archive's, only by descriptors that the kernel
//! has confined: no way leads out, neither by `..` nor by a symbolic link, also not one that points to a place inside, since
//! what it points to was chosen by the archive.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use redoma_layers::beneath::beneath;
use redoma_layers::remove::remove;
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

/// What a folder may do while it is filled; its own rights come last.
const FILLING: Mode = Mode::RWXU;

/// A folder and what is below it, and nothing else.
pub(crate) struct Root {
    fd: OwnedFd,
    /// Entries of one folder follow each other.
    last: Option<(PathBuf, Rc<OwnedFd>)>,
}

/// What stands in the way of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    Folder,
    /// A character device 0:0, which overlayfs takes for "nothing here, whatever lies below".
    Whiteout,
    Other,
}

// === impl Root ===

impl Root {
    /// The folder at `path`, which is the caller's own.
    pub(crate) fn open(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self { fd: fs::open(path, flags, Mode::empty())?, last: None })
    }

    /// The folder `path`, to make, link or remove something in it.
    ///
    /// # Errors
    /// `ELOOP` where a symbolic link is on the way, `ENOTDIR` where a file is.
    pub(crate) fn folder(&mut self, path: &Path) -> Result<Rc<OwnedFd>, Errno> {
        if let Some((last, fd)) = &self.last
            && last == path
        {
            return Ok(Rc::clone(fd));
        }
        let fd = Rc::new(beneath(&self.fd, path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?);
        self.last = Some((path.into(), Rc::clone(&fd)));
        Ok(fd)
    }

    /// The folder `path`, to read it and to set what it says of itself.
    pub(crate) fn open_folder(&self, path: &Path) -> Result<OwnedFd, Errno> {
        beneath(&self.fd, path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
    }

    /// What `name` in `folder` is.
    pub(crate) fn look(folder: impl AsFd, name: &OsStr) -> Result<Found, Errno> {
        match fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(found(&stat)),
            Err(Errno::NOENT) => Ok(Found::Nothing),
            Err(errno) => Err(errno),
        }
    }

    /// Makes the folder `name` in `folder`.
    pub(crate) fn make_folder(folder: impl AsFd, name: &OsStr) -> Result<(), Errno> {
        fs::mkdirat(folder, name, FILLING)
    }

    /// Makes `name` in `folder` a whiteout, which needs no privilege: mknod(2), "0:0".
    pub(crate) fn make_whiteout(folder: impl AsFd, name: &OsStr) -> Result<(), Errno> {
        fs::mknodat(folder, name, FileType::CharacterDevice, Mode::empty(), 0)
    }

    /// Removes `name` from `folder`, with all that is in it.
    pub(crate) fn remove(&mut self, folder: impl AsFd, name: &OsStr) -> Result<(), Errno> {
        // It may be the folder that was used last, or above it.
        self.last = None;
        remove(folder, name)
    }
}

fn found(stat: &Stat) -> Found {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Found::Folder,
        FileType::CharacterDevice if stat.st_rdev == 0 => Found::Whiteout,
        _ => Found::Other,
    }
}

/// The whole of `name` as an [`OsStr`]; for callers with bytes.
pub(crate) fn os(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}
