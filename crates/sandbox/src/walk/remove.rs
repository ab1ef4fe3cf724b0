//! Removing a folder whose owner may still be writing into it.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::{Errno, Result};

use super::tree::{self, as_path};

/// Folders within folders, each of which costs a descriptor while it is being emptied.
const DEPTH_MAX: usize = 256;

/// How often a folder that is filled while it is being emptied is emptied again.
const ROUNDS: usize = 16;

/// Removes `name` in `dir` with all that is below it, following nothing. Gone already is fine.
pub(crate) fn remove(dir: impl AsFd, name: &OsStr) -> Result<()> {
    remove_at(dir.as_fd(), name, DEPTH_MAX)
}

fn remove_at(dir: impl AsFd, name: &OsStr, depth: usize) -> Result<()> {
    for _ in 0..ROUNDS {
        match rustix::fs::unlinkat(&dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            // Linux says EISDIR, POSIX and some file systems EPERM.
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(error),
        }
        match open_own(&dir, name) {
            Ok(folder) => empty(&folder, depth.checked_sub(1).ok_or(Errno::NAMETOOLONG)?)?,
            Err(Errno::NOTDIR | Errno::LOOP | Errno::NOENT) => continue,
            Err(error) => return Err(error),
        }
        match rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
            Err(error) => return Err(error),
        }
    }
    Err(Errno::NOTEMPTY)
}

fn empty(folder: &OwnedFd, depth: usize) -> Result<()> {
    let mut names = Vec::new();
    tree::list(folder, &mut tree::dirent_buffer(), |entry| {
        names.push(entry.name.to_vec());
        Ok(())
    })?;
    names.iter().try_for_each(|name| remove_at(folder, as_path(name).as_os_str(), depth))
}

/// Opens a folder for reading and changing, giving its owner (us) the permission if it was taken away.
pub(crate) fn open_own(dir: impl AsFd, name: &OsStr) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let folder = match tree::beneath(&dir, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let handle = tree::beneath(&dir, name, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
            // fchmod refuses O_PATH descriptors, and chmod by name could be led elsewhere.
            rustix::fs::chmodat(
                CWD,
                format!("/proc/self/fd/{}", handle.as_raw_fd()),
                Mode::RWXU,
                AtFlags::empty(),
            )?;
            tree::beneath(&dir, name, flags, Mode::empty())?
        }
        folder => folder?,
    };
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&folder)?.st_mode);
    if !mode.contains(Mode::RWXU) {
        rustix::fs::fchmod(&folder, mode | Mode::RWXU)?;
    }
    Ok(folder)
}
