use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use redoma_sys::Errno;
use rustix::fs::{CWD, FileType, Mode, OFlags};

use crate::blueprint::{Blueprint, Rights};
use crate::error::{Failure, InStep, Step};

/// What is granted for writing, held open as Landlock holds it: a folder that is moved stays granted, and what takes
/// its place is not.
pub(crate) struct Granted(Vec<OwnedFd>);

impl Granted {
    pub(crate) fn open(blueprint: &Blueprint) -> Result<Self, Failure> {
        let writable = blueprint.access.iter().filter(|grant| grant.rights == Rights::Write);
        let open = |path| rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        let opened = writable.map(|grant| open(&grant.path).step_at(Step::Supervise, &grant.path));
        opened.collect::<Result<_, _>>().map(Self)
    }

    /// Whether the object lies where everything may be written. As with Landlock, what else is granted there takes
    /// nothing back.
    pub(super) fn permit_change(&self, object: &OwnedFd) -> Result<(), Errno> {
        // A device is granted for reading and writing; its node is the machine's.
        let kind = FileType::from_raw_mode(rustix::fs::fstat(object)?.st_mode);
        if matches!(kind, FileType::CharacterDevice | FileType::BlockDevice) {
            return Err(Errno::PERM);
        }
        let path = path_of(object)?;
        let holds = |grant| path_of(grant).is_ok_and(|grant| path.starts_with(grant));
        if self.0.iter().any(holds) { Ok(()) } else { Err(Errno::ACCESS) }
    }
}

/// Where an open file is now. One without a place in the tree, such as a pipe, has a name that is no absolute path.
fn path_of(file: &OwnedFd) -> Result<PathBuf, Errno> {
    let path = rustix::fs::readlinkat(CWD, format!("/proc/self/fd/{}", file.as_raw_fd()), Vec::new())?;
    Ok(OsString::from_vec(path.into_bytes()).into())
}
