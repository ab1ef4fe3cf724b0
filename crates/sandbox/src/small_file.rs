//! Reading files that somebody else may have put there: bounded, never a device, never by surprise through a link.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

/// Whether a symbolic link in the last part of the path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    /// Follow it: the folder is the user's own.
    Follow,
    /// Refuse it with `ELOOP`: whoever writes in the folder could point it anywhere.
    Refuse,
}

/// A file as it was at one moment, all of it from one descriptor.
#[derive(Debug)]
pub(crate) struct SmallFile {
    /// The whole content.
    pub(crate) bytes: Vec<u8>,
    /// The owner's user id.
    pub(crate) uid: u32,
    /// The owning group's id.
    pub(crate) gid: u32,
    /// The permission bits.
    pub(crate) mode: u32,
}

/// Why the file was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SmallFileError {
    /// A system call failed.
    #[error("{}", std::io::Error::from(*.0))]
    Io(Errno),
    /// A folder, device, pipe or socket.
    #[error("it is not a regular file")]
    NotRegular,
    /// More bytes than the bound.
    #[error("it is larger than {0} bytes")]
    TooLarge(usize),
}

impl From<Errno> for SmallFileError {
    fn from(errno: Errno) -> Self {
        Self::Io(errno)
    }
}

impl SmallFile {
    /// Reads a regular file of at most `limit` bytes; `None` if there is none.
    ///
    /// `O_NONBLOCK` keeps a FIFO planted at the path from holding us up for ever (see fifo(7)); the type is then
    /// checked on the descriptor, not on the path, so nothing can be swapped between the two.
    pub(crate) fn read(path: &Path, limit: usize, links: Links) -> Result<Option<Self>, SmallFileError> {
        match open(path, links) {
            Ok(fd) => Self::from_descriptor(fd, limit).map(Some),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn from_descriptor(fd: OwnedFd, limit: usize) -> Result<Self, SmallFileError> {
        let stat = rustix::fs::fstat(&fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(SmallFileError::NotRegular);
        }
        let mut bytes = Vec::new();
        // One byte more than allowed: a file that grows while it is read is caught as well.
        let mut bounded = std::fs::File::from(fd).take(limit as u64 + 1);
        bounded.read_to_end(&mut bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        if bytes.len() > limit {
            return Err(SmallFileError::TooLarge(limit));
        }
        Ok(Self { bytes, uid: stat.st_uid, gid: stat.st_gid, mode: stat.st_mode & 0o7777 })
    }
}

/// Puts `bytes` in the place of the file at `path`: whoever reads sees the old content or the new, never a half.
///
/// The permission bits of an old file stay; a new one gets `mode`. A link at `path` is replaced, not followed.
pub(crate) fn replace(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let old = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file);
    let mode = old.map_or(mode, |old| old.permissions().mode() & 0o777);
    let mut fresh = tempfile::Builder::new().prefix(".redoma-").tempfile_in(folder)?;
    fresh.write_all(bytes)?;
    fresh.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
    fresh.as_file().sync_all()?;
    fresh.persist(path)?;
    Ok(())
}

fn open(path: &Path, links: Links) -> rustix::io::Result<OwnedFd> {
    let mut flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    if links == Links::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    rustix::fs::open(path, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_up_to_the_bound_is_read_and_one_byte_more_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, [b'x'; 10]).unwrap();
        assert_eq!(SmallFile::read(&path, 10, Links::Refuse).unwrap().unwrap().bytes.len(), 10);
        assert!(matches!(SmallFile::read(&path, 9, Links::Refuse), Err(SmallFileError::TooLarge(9))));
    }

    #[test]
    fn absence_is_none_but_a_folder_or_pipe_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert!(SmallFile::read(&dir.path().join("no"), 9, Links::Refuse).unwrap().is_none());
        assert!(matches!(SmallFile::read(dir.path(), 9, Links::Refuse), Err(SmallFileError::NotRegular)));
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(matches!(SmallFile::read(&pipe, 9, Links::Refuse), Err(SmallFileError::NotRegular)));
    }

    #[test]
    fn a_replaced_file_keeps_its_mode_and_a_link_is_not_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("f"), dir.path().join("l"));
        replace(&file, b"one", 0o600).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        replace(&file, b"two", 0o600).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, b"three", 0o600).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"two");
        assert_eq!(std::fs::read(&link).unwrap(), b"three");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2, "nothing is left over");
    }

    #[test]
    fn a_link_is_followed_only_when_asked() {
        let dir = tempfile::tempdir().unwrap();
        let (target, link) = (dir.path().join("t"), dir.path().join("l"));
        std::fs::write(&target, "x").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(SmallFile::read(&link, 9, Links::Follow).unwrap().is_some());
        assert!(matches!(SmallFile::read(&link, 9, Links::Refuse), Err(SmallFileError::Io(Errno::LOOP))));
    }
}
