//! One layer: a folder held open, whose content a sandbox wrote.

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::Error;
use crate::beneath::{dirent_buffer, list, openat2};
use crate::xattr::{NESTED, OVERLAY, Place};

/// No way out: not by `..`, nor by a link, nor into another file system.
const CONFINED: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// Names in one folder.
const NAMES_MAX: usize = 10_000_000;

/// Overlayfs's marks that change nothing in what is shown: where something was copied up from, counts and caches.
const HARMLESS: [&str; 6] = ["origin", "impure", "nlink", "uuid", "upper", "protattr"];

/// A layer.
#[derive(Debug)]
pub(crate) struct Layer {
    fd: OwnedFd,
    path: PathBuf,
    /// Device and inode: two paths may lead to one layer.
    pub(crate) id: (u64, u64),
}

/// What a name in a layer is marked with.
#[derive(Clone, Copy, Default)]
pub(crate) struct Marks {
    pub(crate) is_opaque: bool,
    /// There are attributes that are not overlayfs's own.
    pub(crate) has_attributes: bool,
}

/// Whether a name stands for "nothing here, whatever lies below".
pub(crate) fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

// === impl Layer ===

impl Layer {
    /// The layer at `path`, which is the caller's own.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let failed = |errno: Errno| Error::Open { path: path.to_path_buf(), source: errno.into() };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, path, flags, Mode::empty()).map_err(failed)?;
        let stat = rustix::fs::fstat(&fd).map_err(failed)?;
        Ok(Self { fd, path: path.to_path_buf(), id: (stat.st_dev, stat.st_ino) })
    }

    /// Where it is, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// An error of reading `path` in this layer.
    pub(crate) fn failed<'a>(&'a self, path: &'a Path, step: &'static str) -> impl Fn(Errno) -> Error + 'a {
        move |errno| Error::Read { path: self.path.join(path), step, source: errno.into() }
    }

    /// Opens the folder `path` for reading; the empty path is the layer itself.
    pub(crate) fn folder(&self, path: &Path) -> Result<OwnedFd, Error> {
        self.open_confined(path, OFlags::RDONLY | OFlags::DIRECTORY).map_err(self.failed(path, "openat2"))
    }

    /// Opens the regular file `path` for reading, and nothing else that may have taken its place.
    pub(crate) fn file(&self, path: &Path) -> Result<File, Error> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = self.open_confined(path, flags).map_err(self.failed(path, "openat2"))?;
        let stat = rustix::fs::fstat(&opened).map_err(self.failed(path, "fstat"))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(opened.into()),
            _ => Err(Error::Changed { path: self.path.join(path) }),
        }
    }

    /// Opens whatever `path` is, without the right to read it.
    pub(crate) fn handle(&self, path: &Path) -> Result<OwnedFd, Error> {
        self.open_confined(path, OFlags::PATH).map_err(self.failed(path, "openat2"))
    }

    fn open_confined(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        openat2(&self.fd, path, flags, Mode::empty(), CONFINED)
    }

    /// Where a link leads.
    pub(crate) fn target(&self, path: &Path) -> Result<Vec<u8>, Error> {
        let link = self.handle(path)?;
        let target = rustix::fs::readlinkat(link, c"", Vec::new());
        Ok(target.map_err(self.failed(path, "readlinkat"))?.into_bytes())
    }

    /// What `name` in the open folder `dir`, which is called `path` with the name, is; nothing if it is not there.
    pub(crate) fn stat(&self, dir: &OwnedFd, name: &OsStr, path: &Path) -> Result<Option<Stat>, Error> {
        match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.failed(path, "fstatat")(error)),
        }
    }

    pub(crate) fn root_stat(&self) -> Result<Stat, Error> {
        rustix::fs::fstat(&self.fd).map_err(self.failed(Path::new(""), "fstat"))
    }

    /// All names in the open folder `dir`, which is called `path`.
    pub(crate) fn names(&self, dir: &OwnedFd, path: &Path) -> Result<Vec<Vec<u8>>, Error> {
        let mut names = Vec::new();
        let listed = list(dir, &mut dirent_buffer(), |entry| {
            names.push(entry.name.to_vec());
            if names.len() > NAMES_MAX { Err(Errno::OVERFLOW) } else { Ok(()) }
        });
        match listed {
            Ok(()) => Ok(names),
            Err(Errno::OVERFLOW) => {
                Err(Error::TooMany { path: self.path.join(path), what: "names", limit: NAMES_MAX as u64 })
            }
            Err(error) => Err(self.failed(path, "getdents64")(error)),
        }
    }

    /// How something is marked. Marks that Redoma's mounts never make are refused: the kernel refuses them too.
    pub(crate) fn marks(&self, place: &Place<'_>, path: &Path) -> Result<Marks, Error> {
        let failed = self.failed(path, "listxattr");
        let mut marks = Marks::default();
        for name in place.names().map_err(failed)? {
            match name.strip_prefix(OVERLAY).filter(|_| !name.starts_with(NESTED)) {
                None => marks.has_attributes = true,
                Some(b"opaque") => {
                    let value = place.get(&name).map_err(self.failed(path, "getxattr"))?;
                    marks.is_opaque = self.opaque(value.as_deref(), path)?;
                }
                Some(mark) if HARMLESS.iter().any(|harmless| harmless.as_bytes() == mark) => {}
                Some(_) => return Err(self.unknown(path, &name)),
            }
        }
        Ok(marks)
    }

    fn opaque(&self, value: Option<&[u8]>, path: &Path) -> Result<bool, Error> {
        match value {
            None => Ok(false),
            Some(b"y") => Ok(true),
            // "x" says that regular files may be whiteouts.
            Some(_) => Err(self.unknown(path, b"user.overlay.opaque")),
        }
    }

    fn unknown(&self, path: &Path, name: &[u8]) -> Error {
        Error::Mark { path: self.path.join(path), mark: String::from_utf8_lossy(name).into_owned() }
    }
}
