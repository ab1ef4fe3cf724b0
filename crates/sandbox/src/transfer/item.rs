//! Something that is to be read, held by a descriptor that does not open it.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat, readlinkat};

use super::error::TransferError;
use super::place::Base;
use crate::walk::tree::beneath;

/// What kind of thing it is, as far as copying cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    Link,
    /// FIFOs, sockets, devices.
    Special,
}

/// Something that is to be read.
pub(super) struct Item {
    handle: OwnedFd,
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    pub(super) stat: Stat,
}

// === impl Kind ===

impl Kind {
    pub(super) fn of(stat: &Stat) -> Self {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            _ => Self::Special,
        }
    }
}

// === impl Item ===

impl Item {
    /// What is at `path`; a link there is followed only if wanted.
    pub(super) fn find(base: &Base<'_>, path: &Path, follow: bool) -> Result<Self, TransferError> {
        let nofollow = if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
        let handle = base.open(path, OFlags::PATH | nofollow).map_err(TransferError::step(path, "open"))?;
        Self::of(handle, path)
    }

    /// What `name` in a folder is.
    pub(super) fn within(dir: &OwnedFd, name: &OsStr, path: &Path) -> Result<Self, TransferError> {
        let handle = beneath(dir, name, OFlags::PATH, Mode::empty());
        Self::of(handle.map_err(TransferError::step(path, "openat2"))?, path)
    }

    fn of(handle: OwnedFd, path: &Path) -> Result<Self, TransferError> {
        let stat = fstat(&handle).map_err(TransferError::step(path, "fstat"))?;
        Ok(Self { handle, path: path.into(), kind: Kind::of(&stat), stat })
    }

    /// Device and inode.
    pub(super) fn id(&self) -> (u64, u64) {
        (self.stat.st_dev, self.stat.st_ino)
    }

    /// Opens a regular file for reading; by its descriptor, so that it is the one that was looked at.
    pub(super) fn file(&self) -> Result<File, TransferError> {
        match self.kind {
            Kind::File => {}
            Kind::Folder => return Err(TransferError::IsFolder { path: self.path.clone() }),
            Kind::Link | Kind::Special => return Err(TransferError::Special { path: self.path.clone() }),
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let path = format!("/proc/self/fd/{}", self.handle.as_raw_fd());
        let opened = openat(CWD, path, flags, Mode::empty());
        Ok(opened.map_err(TransferError::step(&self.path, "open"))?.into())
    }

    /// Opens a folder for reading.
    pub(super) fn folder(&self) -> Result<OwnedFd, TransferError> {
        if self.kind != Kind::Folder {
            return Err(TransferError::NotFolder { path: self.path.clone() });
        }
        let opened = beneath(&self.handle, Path::new(""), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
        opened.map_err(TransferError::step(&self.path, "open"))
    }

    /// Where a link leads.
    pub(super) fn target(&self) -> Result<Vec<u8>, TransferError> {
        let target = readlinkat(&self.handle, c"", Vec::new());
        Ok(target.map_err(TransferError::step(&self.path, "readlinkat"))?.into_bytes())
    }
}
