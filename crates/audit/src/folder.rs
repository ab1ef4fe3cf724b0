//! Folders and files that only their owner can reach.

use std::fs::{DirBuilder, File};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

use crate::Error;

/// Others may neither read nor write.
pub(crate) const PRIVATE: u32 = 0o077;
/// Others may not write.
const WRITABLE: u32 = 0o022;

/// A folder of this user, held open, so that it cannot be exchanged between two steps.
#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

// === impl Folder ===

impl Folder {
    /// Opens the folder at `path`, which is made (0700) if it is missing.
    ///
    /// # Errors
    /// [`Error::Folder`]; [`Error::Owner`] and [`Error::Mode`] if somebody else could write in it.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Folder { path: path.into(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = fs::open(path, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
        check_access(&fd, path, WRITABLE)?;
        Ok(Self { fd, path: path.into() })
    }

    /// The path of `name` in it, for messages.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens `name` in it; a symbolic link is refused, and what is made is 0600.
    pub(crate) fn file(&self, name: &str, flags: OFlags) -> Result<File, Error> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR)
            .map(File::from)
            .map_err(|errno| Error::Open { path: self.path(name), source: errno.into() })
    }

    /// As [`Folder::file`], with `None` for a file that does not exist.
    pub(crate) fn existing(&self, name: &str, flags: OFlags) -> Result<Option<File>, Error> {
        match self.file(name, flags) {
            Err(Error::Open { source, .. }) if source.raw_os_error() == Some(Errno::NOENT.raw_os_error()) => {
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// The names in it, in no order.
    pub(crate) fn names(&self) -> Result<Vec<String>, Error> {
        let failed = |errno: Errno| Error::Read { path: self.path.clone(), source: errno.into() };
        let entries = fs::Dir::read_from(&self.fd).map_err(failed)?;
        let name = |entry: fs::DirEntry| entry.file_name().to_str().ok().map(String::from);
        entries.filter_map(|entry| entry.map(name).transpose()).collect::<Result<_, _>>().map_err(failed)
    }

    /// Gives `from` the second name `to`, unless there is something of that name.
    pub(crate) fn link(&self, from: &str, to: &str) -> Result<(), Errno> {
        fs::linkat(&self.fd, from, &self.fd, to, fs::AtFlags::empty())
    }

    /// Removes `name`.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Error> {
        fs::unlinkat(&self.fd, name, fs::AtFlags::empty())
            .map_err(|errno| Error::Remove { path: self.path(name), source: errno.into() })
    }
}

/// Refuses what belongs to another user, or what others have `forbidden` rights to.
pub(crate) fn check_access(fd: impl AsFd, path: &Path, forbidden: u32) -> Result<(), Error> {
    let stat = fs::fstat(fd).map_err(|errno| Error::Read { path: path.into(), source: errno.into() })?;
    let (owner, user) = (stat.st_uid, rustix::process::geteuid().as_raw());
    if owner != user {
        return Err(Error::Owner { path: path.into(), owner, user });
    }
    let mode = stat.st_mode & 0o7777;
    if mode & forbidden != 0 {
        return Err(Error::Mode { path: path.into(), mode, wanted: mode & 0o700 });
    }
    Ok(())
}
