//! A copy of one layer, exactly as it is.

mod attributes;
mod data;

use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Dev, FileType, Mode, OFlags, Stat, linkat, mkdirat, mknodat, openat, symlinkat,
};
use rustix::io::Errno;

use crate::beneath::{as_path, beneath};
use crate::layer::{Layer, is_whiteout};
use crate::links::{Known, Links};
use crate::{Error, Kind, remove_layer};

pub use data::spread;

/// Paths of one layer.
const ENTRIES_MAX: u64 = 50_000_000;

/// Paths that are named in [`Copied::left_out`].
const NAMED_MAX: usize = 100;

/// What came of copying.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Paths, whiteouts included.
    pub entries: u64,
    /// Bytes of files that original and copy share on disk until one of them changes.
    pub shared: u64,
    /// Bytes of files that were copied; holes do not count.
    pub copied: u64,
    /// How often an owner, an access list or a capability could not be kept, for lack of the right to.
    pub unkept: u64,
    /// How many sockets and devices were left out.
    pub skipped: u64,
    /// The first hundred of those, relative to the layer.
    pub left_out: Vec<PathBuf>,
}

/// Copies the layer `from` to `to`, which must not exist, with modes, owners, times, attributes (overlayfs's marks too), hard
/// links, whiteouts, holes and FIFOs. Sockets are left out, and so are devices where they cannot be made. File data is shared
/// where the file system can (`ioctl_ficlone(2)`), else copied inside the kernel.
///
/// Nothing may write to the layer meanwhile: pause its sandbox. What changes nevertheless is copied as one finds it, and an error
/// where that is something else than it was.
///
/// # Errors
/// [`Error::Open`], [`Error::Read`], [`Error::Write`], [`Error::TooMany`], [`Error::Changed`]. Then nothing is left at `to`.
pub fn copy(from: &Path, to: &Path) -> Result<Copied, Error> {
    let source = Layer::open(from)?;
    let made = |step| move |errno: Errno| Error::Write { path: to.into(), step, source: errno.into() };
    mkdirat(CWD, to, Mode::RWXU).map_err(made("mkdir"))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let copied = openat(CWD, to, flags, Mode::empty()).map_err(made("open")).and_then(|target| {
        let mut copy = Copy {
            source: &source,
            target,
            to,
            links: Links::default(),
            clones: true,
            copied: Copied::default(),
        };
        copy.run()?;
        Ok(copy.copied)
    });
    copied.inspect_err(|_| {
        // The first error says more than that of clearing up.
        let _cleared = remove_layer(to);
    })
}

struct Copy<'a> {
    source: &'a Layer,
    target: OwnedFd,
    to: &'a Path,
    links: Links,
    /// Whether the file system may be able to share data.
    clones: bool,
    copied: Copied,
}

/// A folder is filled, and gets its own mode and times after that.
enum Step {
    Fill(PathBuf),
    Finish(PathBuf),
}

/// A name in a folder that is open on both sides.
#[derive(Clone, Copy)]
struct Place<'p> {
    from: &'p OwnedFd,
    to: &'p OwnedFd,
    name: &'p OsStr,
    path: &'p Path,
}

impl Copy<'_> {
    fn run(&mut self) -> Result<(), Error> {
        let mut steps = vec![Step::Fill(PathBuf::new())];
        while let Some(step) = steps.pop() {
            match step {
                Step::Fill(path) => {
                    let folders = self.fill(&path)?;
                    steps.push(Step::Finish(path));
                    steps.extend(folders.into_iter().map(Step::Fill));
                }
                Step::Finish(path) => self.finish(&path)?,
            }
        }
        Ok(())
    }

    /// Copies what is in a folder, and says which folders are to be filled next.
    fn fill(&mut self, path: &Path) -> Result<Vec<PathBuf>, Error> {
        let from = self.source.folder(path)?;
        let to = self.folder(path)?;
        let mut folders = Vec::new();
        for name in self.source.names(&from, path)? {
            let name = as_path(&name).as_os_str();
            let path = path.join(name);
            let Some(stat) = self.source.stat(&from, name, &path)? else { continue };
            self.count(&path)?;
            if Kind::of(&stat) == Kind::Folder {
                mkdirat(&to, name, Mode::RWXU).map_err(self.failed(&path, "mkdirat"))?;
                folders.push(path);
            } else {
                self.leaf(Place { from: &from, to: &to, name, path: &path }, &stat)?;
            }
        }
        Ok(folders)
    }

    fn count(&mut self, path: &Path) -> Result<(), Error> {
        self.copied.entries += 1;
        if self.copied.entries > ENTRIES_MAX {
            let path = self.source.path().join(path);
            return Err(Error::TooMany { path, what: "paths", limit: ENTRIES_MAX });
        }
        Ok(())
    }

    fn folder(&self, path: &Path) -> Result<OwnedFd, Error> {
        let opened = beneath(&self.target, path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
        opened.map_err(self.failed(path, "openat2"))
    }

    fn failed<'e>(&'e self, path: &'e Path, step: &'static str) -> impl Fn(Errno) -> Error + 'e {
        move |errno| Error::Write { path: self.to.join(path), step, source: errno.into() }
    }

    fn leaf(&mut self, place: Place<'_>, stat: &Stat) -> Result<(), Error> {
        #[allow(clippy::useless_conversion, reason = "the width differs between architectures")]
        let names = stat.st_nlink.into();
        if let Known::Again(first) = self.links.note((stat.st_dev, stat.st_ino), names, place.path) {
            // All on the way to the first name was made here, and nobody else knows the copy yet.
            let linked = linkat(&self.target, &first, place.to, place.name, AtFlags::empty());
            match linked {
                // Its first name was left out, or it has as many as the file system allows.
                Err(Errno::NOENT | Errno::MLINK) => {}
                linked => return linked.map_err(self.failed(place.path, "linkat")),
            }
        }
        match Kind::of(stat) {
            Kind::File => self.file(place),
            Kind::Link => self.link(place),
            Kind::Fifo => self.node(place, stat, FileType::Fifo, 0),
            Kind::CharacterDevice => self.node(place, stat, FileType::CharacterDevice, stat.st_rdev),
            Kind::BlockDevice => self.node(place, stat, FileType::BlockDevice, stat.st_rdev),
            Kind::Socket | Kind::Folder => {
                self.leave_out(place.path);
                Ok(())
            }
        }
    }

    fn leave_out(&mut self, path: &Path) {
        self.copied.skipped += 1;
        if self.copied.left_out.len() < NAMED_MAX {
            self.copied.left_out.push(path.to_path_buf());
        }
    }

    fn file(&mut self, place: Place<'_>) -> Result<(), Error> {
        let from = self.source.file(place.path)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = openat(place.to, place.name, flags, Mode::RUSR | Mode::WUSR);
        let to = File::from(made.map_err(self.failed(place.path, "openat"))?);
        self.data(&from, &to, place.path)?;
        self.attributes(&from, &to, place.path)
    }

    fn link(&mut self, place: Place<'_>) -> Result<(), Error> {
        let target = self.source.target(place.path)?;
        symlinkat(as_path(&target), place.to, place.name).map_err(self.failed(place.path, "symlinkat"))?;
        self.name_attributes(place)
    }

    fn node(&mut self, place: Place<'_>, stat: &Stat, kind: FileType, device: Dev) -> Result<(), Error> {
        let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
        match mknodat(place.to, place.name, kind, mode, device) {
            Err(Errno::PERM) if !is_whiteout(stat) => {
                self.leave_out(place.path);
                return Ok(());
            }
            made => made.map_err(self.failed(place.path, "mknodat"))?,
        }
        self.name_attributes(place)
    }

    /// A folder's own mode could forbid to fill it, and its time changes with what is made in it.
    fn finish(&mut self, path: &Path) -> Result<(), Error> {
        let (from, to) = (self.source.folder(path)?, self.folder(path)?);
        self.attributes(&from, &to, path)
    }
}
