//! The folder that a layer is unpacked in. Nothing is reached by a path string of the archive's, only by descriptors that
//! the kernel has confined: openat2(2).

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

/// No way out: not by `..`, nor by a symbolic link (also not one that points to a place inside, since what it points to was
/// chosen by the archive), nor into another file system.
const CONFINED: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// What a folder may do while it is filled; its own rights come last.
const FILLING: Mode = Mode::RWXU;

/// A folder and what is below it, and nothing else.
pub(crate) struct Root {
    fd: OwnedFd,
    /// Entries of one folder follow each other.
    last: Option<(PathBuf, Rc<OwnedFd>)>,
}

/// What stands in the way of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    Folder,
    /// A character device 0:0, which overlayfs takes for "nothing here, whatever lies below".
    Whiteout,
    Other,
}

// === impl Root ===

impl Root {
    /// The folder at `path`, which is the caller's own.
    pub(crate) fn open(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self { fd: fs::open(path, flags, Mode::empty())?, last: None })
    }

    /// The folder `path`, to make, link or remove something in it.
    ///
    /// # Errors
    /// `ELOOP` where a symbolic link is on the way, `ENOTDIR` where a file is.
    pub(crate) fn folder(&mut self, path: &Path) -> Result<Rc<OwnedFd>, Errno> {
        if let Some((last, fd)) = &self.last
            && last == path
        {
            return Ok(Rc::clone(fd));
        }
        let fd = Rc::new(self.open_confined(path, OFlags::PATH | OFlags::DIRECTORY)?);
        self.last = Some((path.into(), Rc::clone(&fd)));
        Ok(fd)
    }

    /// The folder `path`, to read it and to set what it says of itself.
    pub(crate) fn open_folder(&self, path: &Path) -> Result<OwnedFd, Errno> {
        self.open_confined(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }

    fn open_confined(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        loop {
            match fs::openat2(&self.fd, path, flags, Mode::empty(), CONFINED) {
                // Somewhere a rename went on meanwhile, and the kernel can't tell whether it was here.
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => return other,
            }
        }
    }

    /// What `name` in `folder` is.
    pub(crate) fn look(folder: impl AsFd, name: &OsStr) -> Result<Found, Errno> {
        match fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(found(&stat)),
            Err(Errno::NOENT) => Ok(Found::Nothing),
            Err(errno) => Err(errno),
        }
    }

    /// Makes the folder `name` in `folder`.
    pub(crate) fn make_folder(folder: impl AsFd, name: &OsStr) -> Result<(), Errno> {
        fs::mkdirat(folder, name, FILLING)
    }

    /// Makes `name` in `folder` a whiteout, which needs no privilege: mknod(2), "0:0".
    pub(crate) fn make_whiteout(folder: impl AsFd, name: &OsStr) -> Result<(), Errno> {
        fs::mknodat(folder, name, FileType::CharacterDevice, Mode::empty(), 0)
    }

    /// Removes `name` from `folder`, with all that is in it.
    pub(crate) fn remove(&mut self, folder: impl AsFd, name: &OsStr) -> Result<(), Errno> {
        // It may be the folder that was used last, or above it.
        self.last = None;
        remove(folder, name)
    }
}

fn found(stat: &Stat) -> Found {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => Found::Folder,
        FileType::CharacterDevice if stat.st_rdev == 0 => Found::Whiteout,
        _ => Found::Other,
    }
}

/// Removes `name` in `folder`, a file or a whole tree, without following any link.
///
/// The tree may be hostile, but has an end: it was made by [`super::unpack`] or belongs to a sandbox that is gone. Folders
/// that their owner may not write to are made writable.
pub(crate) fn remove(folder: impl AsFd, name: &OsStr) -> Result<(), Errno> {
    match fs::unlinkat(&folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    let inside = open_writable(&folder, name)?;
    for name in names(&inside)? {
        remove(&inside, &name)?;
    }
    fs::unlinkat(&folder, name, AtFlags::REMOVEDIR)
}

/// Opens the folder `name` so that it can be emptied.
fn open_writable(folder: impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match fs::openat(&folder, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            // Its owner may always change its mode. It is no link: opening it said ACCESS, not LOOP.
            fs::chmodat(&folder, name, FILLING, AtFlags::empty())?;
            fs::openat(&folder, name, flags, Mode::empty())?
        }
        other => other?,
    };
    if fs::fstat(&fd)?.st_mode & 0o300 != 0o300 {
        // Whoever may remove it by other rights than the owner's finds out below.
        let _ = fs::fchmod(&fd, FILLING);
    }
    Ok(fd)
}

/// The names in a folder, in no order.
pub(crate) fn names(folder: impl AsFd) -> Result<Vec<OsString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push(OsString::from_vec(name.to_vec()));
        }
    }
    Ok(names)
}

/// The whole of `name` as an [`OsStr`]; for callers with bytes.
pub(crate) fn os(name: &[u8]) -> &OsStr {
    OsStr::from_bytes(name)
}
