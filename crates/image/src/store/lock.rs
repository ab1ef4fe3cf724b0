//! Who may remove, and who brings in: flock(2), which ends with the process, however it ends.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::Error;

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for whoever removes something.
    pub(crate) fn shared(store: &Path) -> Result<Self, Error> {
        let (path, file) = open(store)?;
        loop {
            match flock(&file, FlockOperation::LockShared) {
                Err(Errno::INTR) => {}
                Ok(()) => return Ok(Self { _file: file }),
                Err(errno) => return Err(Error::Open { path, source: errno.into() }),
            }
        }
    }

    /// `None` while somebody brings something in or removes something.
    pub(crate) fn exclusive(store: &Path) -> Result<Option<Self>, Error> {
        let (path, file) = open(store)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(Error::Open { path, source: errno.into() }),
        }
    }
}

fn open(store: &Path) -> Result<(std::path::PathBuf, File), Error> {
    let path = store.join("lock");
    let opened = File::options().read(true).write(true).create(true).truncate(false).open(&path);
    match opened {
        Ok(file) => Ok((path, file)),
        Err(source) => Err(Error::Open { path, source }),
    }
}
