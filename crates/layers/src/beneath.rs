//! Reading a folder that somebody hostile may have filled, and may be changing right now.
//!
//! Every open goes through openat2(2) with `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS`: a link swapped in on the way
//! makes the call fail instead of leading it elsewhere. `RESOLVE_NO_MAGICLINKS` is implied by the second flag.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, Stat};
use rustix::io::{Errno, Result};
use rustix::path::Arg;

/// How often openat2 is asked again when a rename elsewhere made it give up (`EAGAIN`).
const RETRIES: usize = 64;

/// Large enough that most folders need one getdents64 call and one that says "end".
const DIRENT_BUFFER: usize = 32 * 1024;

/// A folder held open; everything below it is named by relative paths.
#[derive(Debug)]
pub struct Root {
    fd: OwnedFd,
    path: PathBuf,
}

impl Root {
    /// Opens `path`, which the caller vouches for (it came from the policy, made absolute and canonical).
    ///
    /// # Errors
    /// Those of openat(2).
    pub fn open(path: &Path) -> Result<Self> {
        let fd = rustix::fs::openat(CWD, path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { fd, path: path.to_path_buf() })
    }

    /// A folder that is open already; `path` is what it is called.
    pub fn of(fd: OwnedFd, path: &Path) -> Self {
        Self { fd, path: path.to_path_buf() }
    }

    /// What it is called.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The folder itself.
    pub fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Opens the folder `rel` for reading; the empty path is the root itself.
    ///
    /// # Errors
    /// Those of openat2(2).
    pub fn dir(&self, rel: impl Arg + Copy + EmptyIsDot) -> Result<OwnedFd> {
        beneath(&self.fd, rel, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
    }

    /// Opens the file `rel` for reading. `O_NONBLOCK`, since a FIFO may have taken its place.
    ///
    /// # Errors
    /// Those of openat2(2).
    pub fn file(&self, rel: &Path) -> Result<OwnedFd> {
        beneath(&self.fd, rel, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, Mode::empty())
    }

    /// Opens the folder that holds `rel` and gives the last name with it.
    ///
    /// # Errors
    /// Those of openat2(2); `EINVAL` if there is no last name.
    pub fn parent<'p>(&self, rel: &'p Path) -> Result<(OwnedFd, &'p OsStr)> {
        let name = rel.file_name().ok_or(Errno::INVAL)?;
        Ok((self.dir(rel.parent().unwrap_or(Path::new("")))?, name))
    }

    /// lstat(2) of `rel`, with no link followed on the way either.
    ///
    /// # Errors
    /// Those of openat2(2) and fstatat(2).
    pub fn stat(&self, rel: &Path) -> Result<Stat> {
        if rel.as_os_str().is_empty() {
            return rustix::fs::fstat(&self.fd);
        }
        let (dir, name) = self.parent(rel)?;
        rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
    }
}

/// openat2(2) below `dir`, following no link, with `O_CLOEXEC | O_NOFOLLOW` added.
///
/// # Errors
/// Those of openat2(2).
pub fn beneath(
    dir: impl AsFd,
    rel: impl Arg + Copy + EmptyIsDot,
    flags: OFlags,
    mode: Mode,
) -> Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    if rel.is_empty_path() {
        return openat2(&dir, c".", flags, mode, resolve);
    }
    openat2(&dir, rel, flags, mode, resolve)
}

/// openat2(2) with `O_CLOEXEC | O_NOFOLLOW` added.
///
/// # Errors
/// Those of openat2(2).
pub fn openat2(
    dir: impl AsFd,
    path: impl Arg + Copy,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Result<OwnedFd> {
    persistent(dir, path, flags | OFlags::NOFOLLOW, mode, resolve)
}

/// Opens `path` as if `root` were the root of all: links that are absolute, and `..`, lead to places below it. For the root
/// of a sandbox, whose own links are to work.
///
/// # Errors
/// Those of openat2(2).
pub fn in_root(root: impl AsFd, path: impl Arg + Copy, flags: OFlags) -> Result<OwnedFd> {
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    persistent(root, path, flags, Mode::empty(), resolve)
}

/// Asks again when a rename elsewhere made the kernel give up.
fn persistent(
    dir: impl AsFd,
    path: impl Arg + Copy,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Result<OwnedFd> {
    for _ in 0..RETRIES {
        let opened = rustix::fs::openat2(&dir, path, flags | OFlags::CLOEXEC, mode, resolve);
        if opened.as_ref().err() != Some(&Errno::AGAIN) {
            return opened;
        }
    }
    Err(Errno::AGAIN)
}

/// Paths of which the empty one means "this folder", which the kernel would answer with `ENOENT`.
pub trait EmptyIsDot {
    /// Whether it is.
    fn is_empty_path(&self) -> bool;
}

impl EmptyIsDot for &Path {
    fn is_empty_path(&self) -> bool {
        self.as_os_str().is_empty()
    }
}

impl EmptyIsDot for &OsStr {
    fn is_empty_path(&self) -> bool {
        self.is_empty()
    }
}

/// One name in a folder, as getdents64(2) gives it.
pub struct Entry<'a> {
    /// One component, never `.` or `..`.
    pub name: &'a [u8],
    /// Its kind when the folder was read.
    pub kind: FileType,
    /// Inode number in the folder's own file system (that of the mount point, not of what is mounted there).
    pub ino: u64,
}

/// Calls `each` for every name in `dir` but `.` and `..`. File systems that leave `d_type` unknown cost one stat each.
///
/// # Errors
/// Those of getdents64(2), and what `each` returns.
pub fn list(
    dir: &OwnedFd,
    buffer: &mut [MaybeUninit<u8>],
    mut each: impl FnMut(Entry<'_>) -> Result<()>,
) -> Result<()> {
    let mut entries = RawDir::new(dir, buffer);
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error),
            },
            kind => kind,
        };
        each(Entry { name: name.to_bytes(), kind, ino: entry.ino() })?;
    }
    Ok(())
}

/// A buffer for [`list`].
pub fn dirent_buffer() -> Vec<MaybeUninit<u8>> {
    vec![MaybeUninit::uninit(); DIRENT_BUFFER]
}

/// `base/name` without normalising anything; an empty base gives `name`.
pub fn join(base: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(base.len() + 1 + name.len());
    path.extend_from_slice(base);
    if !base.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

/// Bytes as a path.
pub fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
