//! Removing a folder whose owner may still be writing into it, however deep it is.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::{Errno, Result};

use crate::Error;
use crate::beneath::{self, as_path};

/// Folders within folders, each of which costs a descriptor while it is being emptied. What lies deeper is moved up first.
const DEPTH_MAX: usize = 128;

/// How often a folder that is filled while it is being emptied is emptied again.
const ROUNDS: usize = 16;

/// How many deep folders are moved up. Whoever makes more of them meanwhile is not to keep us here for ever.
const MOVES_MAX: u64 = 1_000_000;

/// Removes the folder at `path`, a layer, with all that is below it, following nothing. Gone already is fine.
///
/// # Errors
/// [`Error::Remove`] if something cannot be removed; what was removed before it is gone.
pub fn remove_layer(path: &Path) -> std::result::Result<(), Error> {
    let failed = |source: Errno| Error::Remove { path: path.to_path_buf(), source: source.into() };
    let name = path.file_name().ok_or_else(|| failed(Errno::INVAL))?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::openat(CWD, parent, flags, Mode::empty()) {
        Ok(parent) => remove(parent, name).map_err(failed),
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// Removes `name` in `dir` with all that is below it, following nothing. Gone already is fine.
///
/// # Errors
/// The kernel's reason why something cannot be removed; `ENOTEMPTY` if somebody keeps filling it.
pub fn remove(dir: impl AsFd, name: &OsStr) -> Result<()> {
    Removal { top: None, moves: 0 }.remove(dir.as_fd(), name, DEPTH_MAX)
}

struct Removal {
    /// The outermost folder that is being removed: the place where deep folders are moved to.
    top: Option<OwnedFd>,
    moves: u64,
}

impl Removal {
    fn remove(&mut self, dir: BorrowedFd<'_>, name: &OsStr, depth: usize) -> Result<()> {
        let mut rounds = 0;
        while rounds < ROUNDS {
            if unlink(dir, name)? {
                return Ok(());
            }
            let folder = match open_own(dir, name) {
                Ok(folder) => folder,
                Err(Errno::NOTDIR | Errno::LOOP | Errno::NOENT) => {
                    rounds += 1;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let moves = self.moves;
            self.empty(&folder, depth)?;
            match rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {}
                Err(error) => return Err(error),
            }
            // What was moved up is no sign of somebody who fills the folder; only the outermost gets it.
            rounds += usize::from(self.moves == moves || depth < DEPTH_MAX);
        }
        Err(Errno::NOTEMPTY)
    }

    fn empty(&mut self, folder: &OwnedFd, depth: usize) -> Result<()> {
        if depth == DEPTH_MAX && self.top.is_none() {
            self.top = Some(rustix::io::fcntl_dupfd_cloexec(folder, 0)?);
        }
        let mut names = Vec::new();
        beneath::list(folder, &mut beneath::dirent_buffer(), |entry| {
            names.push(entry.name.to_vec());
            Ok(())
        })?;
        for name in &names {
            let name = as_path(name).as_os_str();
            match depth.checked_sub(1) {
                Some(depth) => self.remove(folder.as_fd(), name, depth)?,
                None => self.shorten(folder, name)?,
            }
        }
        Ok(())
    }

    /// Removes what is no folder, and moves a folder up to where a later round finds it.
    fn shorten(&mut self, folder: &OwnedFd, name: &OsStr) -> Result<()> {
        if unlink(folder.as_fd(), name)? {
            return Ok(());
        }
        // A folder that is moved gets another "..", for which its owner needs the permission to write to it.
        drop(open_own(folder, name)?);
        let Some(top) = &self.top else { return Err(Errno::NAMETOOLONG) };
        while self.moves < MOVES_MAX {
            self.moves += 1;
            let up = OsString::from(format!(".redoma-removed-{}", self.moves));
            match rustix::fs::renameat_with(folder, name, top, &up, RenameFlags::NOREPLACE) {
                Ok(()) | Err(Errno::NOENT) => return Ok(()),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        Err(Errno::NAMETOOLONG)
    }
}

/// Whether `name` is gone; if not, it is a folder.
fn unlink(dir: BorrowedFd<'_>, name: &OsStr) -> Result<bool> {
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        // Linux says EISDIR, POSIX and some file systems EPERM.
        Err(Errno::ISDIR | Errno::PERM) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens a folder for reading and changing, giving its owner (us) the permission if it was taken away.
///
/// # Errors
/// Those of openat2(2) and chmod(2).
pub fn open_own(dir: impl AsFd, name: &OsStr) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let folder = match beneath::beneath(&dir, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            let handle = beneath::beneath(&dir, name, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
            // fchmod refuses O_PATH descriptors, and chmod by name could be led elsewhere.
            rustix::fs::chmodat(
                CWD,
                format!("/proc/self/fd/{}", handle.as_raw_fd()),
                Mode::RWXU,
                AtFlags::empty(),
            )?;
            beneath::beneath(&dir, name, flags, Mode::empty())?
        }
        folder => folder?,
    };
    let mode = Mode::from_raw_mode(rustix::fs::fstat(&folder)?.st_mode);
    if !mode.contains(Mode::RWXU) {
        rustix::fs::fchmod(&folder, mode | Mode::RWXU)?;
    }
    Ok(folder)
}
