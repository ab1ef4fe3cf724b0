//! Whose a folder is, told by the kernel: a lock ends with the processes that hold it.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// A folder that belongs to a living session: made by it, and locked by `flock(2)` for as long as it lives.
///
/// The lock belongs to the open file, so a forked process that outlives the session must close it.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    #[expect(dead_code, reason = "holds the lock")]
    folder: File,
}

impl Claim {
    /// Makes the folder, for its owner alone, and locks it.
    ///
    /// # Errors
    /// `EEXIST` when there already is something. Otherwise what `mkdir(2)` says.
    pub fn make(path: impl Into<PathBuf>) -> io::Result<Self> {
        const TRIES: u32 = 100;
        let path = path.into();
        let mut last = Ok(());
        for _ in 0..TRIES {
            DirBuilder::new().mode(0o700).create(&path)?;
            match Self::existing(&path) {
                Ok(claim) => return Ok(claim),
                // `gc` saw the folder before it was locked and takes it for a leftover: let it, and begin again.
                Err(error) => last = Err(error),
            }
            rustix::thread::sched_yield();
            match fs::remove_dir(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        last.and(Err(io::ErrorKind::WouldBlock.into()))
    }

    /// Locks a folder that is there, if nobody else has.
    pub(super) fn existing(path: &Path) -> io::Result<Self> {
        let folder = File::open(path)?;
        flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
        // What is locked may have been removed in between, and another folder have come in its place.
        let (locked, named) = (folder.metadata()?, fs::symlink_metadata(path)?);
        if (locked.dev(), locked.ino()) != (named.dev(), named.ino()) {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Self { path: path.to_owned(), folder })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_folder_cannot_be_claimed_again_until_it_is_let_go() {
        let outside = tempfile::tempdir().unwrap();
        let claim = Claim::make(outside.path().join("x")).unwrap();
        assert_eq!(Claim::existing(claim.path()).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(Claim::make(claim.path()).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let path = claim.path().to_owned();
        drop(claim);
        assert!(Claim::existing(&path).is_ok());
    }
}
