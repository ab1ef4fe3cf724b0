//! The folder that quarantined things are moved to.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::Outcome;
use crate::walk::remove::{open_own, remove};
use crate::walk::tree;

/// Things kept; a session that makes more gets them removed. Each is reported either way.
const KEPT_MAX: u32 = 1000;

/// Bytes of one thing kept across file systems; a rename within one keeps everything.
const COPY_MAX: u64 = 64 << 20;

/// Names of one thing kept across file systems.
const NAMES_MAX: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Keep {
    path: PathBuf,
    next: u32,
}

impl Keep {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_path_buf(), next: 0 }
    }

    /// Takes `name` out of `dir`. A rename moves whatever has that name at that moment, so a swap changes nothing.
    pub(crate) fn take(&mut self, dir: &OwnedFd, name: &OsStr) -> Result<Outcome, Errno> {
        let folder = self.folder()?;
        // What was kept before, by whom a killed keeper left unfinished, stays.
        while rustix::fs::statat(&folder, self.next.to_string(), AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            self.next += 1;
        }
        let kept = OsString::from(self.next.to_string());
        match unlocked(dir, || rustix::fs::renameat(dir, name, &folder, &kept)) {
            Ok(()) => {}
            Err(Errno::XDEV) => carry_over(dir, name, &folder, &kept)?,
            Err(error) => return Err(error),
        }
        if self.next >= KEPT_MAX {
            return remove(&folder, &kept).map(|()| Outcome::Removed);
        }
        self.next += 1;
        Ok(Outcome::Moved(self.path.join(kept)))
    }

    fn folder(&self) -> Result<OwnedFd, Errno> {
        std::fs::create_dir_all(&self.path)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        rustix::fs::openat(
            CWD,
            &self.path,
            OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW,
            Mode::empty(),
        )
    }
}

/// The session owns the folder and may have taken the write bit from it; it is given back for the moment.
fn unlocked(dir: &OwnedFd, action: impl Fn() -> Result<(), Errno>) -> Result<(), Errno> {
    match action() {
        Err(Errno::ACCESS) => {
            let mode = Mode::from_raw_mode(rustix::fs::fstat(dir)?.st_mode);
            rustix::fs::fchmod(dir, mode | Mode::RWXU)?;
            let result = action();
            rustix::fs::fchmod(dir, mode)?;
            result
        }
        result => result,
    }
}

/// Across file systems: the name goes at once, by a rename in place; then the content is copied and removed. What is too
/// large to be copied whole is kept in part: it is evidence, not a backup.
fn carry_over(dir: &OwnedFd, name: &OsStr, folder: &OwnedFd, kept: &OsStr) -> Result<(), Errno> {
    let aside = OsString::from(format!(".redoma-quarantine-{:x}", tree::now()));
    unlocked(dir, || rustix::fs::renameat(dir, name, dir, &aside))?;
    let mut copy = Copy { bytes: COPY_MAX, names: NAMES_MAX };
    let copied = copy.one(dir, &aside, folder, kept);
    unlocked(dir, || remove(dir, &aside))?;
    copied
}

/// A bounded copy, with what is left of the bounds.
struct Copy {
    bytes: u64,
    names: usize,
}

impl Copy {
    fn one(&mut self, from: &OwnedFd, name: &OsStr, to: &OwnedFd, as_name: &OsStr) -> Result<(), Errno> {
        let Some(left) = self.names.checked_sub(1) else { return Ok(()) };
        self.names = left;
        let stat = rustix::fs::statat(from, name, AtFlags::SYMLINK_NOFOLLOW)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => self.file(from, name, to, as_name),
            FileType::Directory => self.folder(from, name, to, as_name),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(from, name, Vec::new())?;
                rustix::fs::symlinkat(target, to, as_name)
            }
            // Nothing in them but what other processes put through.
            _ => Ok(()),
        }
    }

    fn file(&mut self, from: &OwnedFd, name: &OsStr, to: &OwnedFd, as_name: &OsStr) -> Result<(), Errno> {
        let source = tree::beneath(from, name, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let target = rustix::fs::openat(to, as_name, flags, Mode::RUSR | Mode::WUSR)?;
        let mut bounded = std::io::Read::take(std::fs::File::from(source), self.bytes);
        let copied = std::io::copy(&mut bounded, &mut std::fs::File::from(target));
        self.bytes -= copied.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        Ok(())
    }

    fn folder(&mut self, from: &OwnedFd, name: &OsStr, to: &OwnedFd, as_name: &OsStr) -> Result<(), Errno> {
        let source = open_own(from, name)?;
        rustix::fs::mkdirat(to, as_name, Mode::RWXU)?;
        let target = tree::beneath(to, as_name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
        let mut names = Vec::new();
        tree::list(&source, &mut tree::dirent_buffer(), |entry| {
            names.push(entry.name.to_vec());
            Ok(())
        })?;
        for name in &names {
            let name = tree::as_path(name).as_os_str();
            self.one(&source, name, &target, name)?;
        }
        Ok(())
    }
}
