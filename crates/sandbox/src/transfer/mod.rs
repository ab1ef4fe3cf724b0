//! Files in and out of a sandbox, by the descriptor of its root.
//!
//! What is inside may be changing while it is looked at, by somebody who wants this process to read or write something else. So a
//! path inside is resolved once, as if the sandbox's root were the root of all (`RESOLVE_IN_ROOT` of openat2(2)); everything
//! below is reached by one name at a time, with no link followed, on both sides. What is to be copied is opened with `O_PATH`
//! first, looked at, and then opened for reading by that descriptor: no FIFO, socket or device is ever opened. Files are
//! written under another name and renamed, so that nobody sees half of one, and a link in its place is replaced, not followed.
//!
//! Paths behave as for `docker cp`: what leads to a folder that exists goes into it, `folder/.` means what is in the folder.

mod carry;
mod error;
mod item;
mod place;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, statat};
use rustix::io::Errno;

use crate::driver::{Copied, DriverError, Entry, EntryKind, Files};
use crate::walk::tree::{as_path, dirent_buffer, list};
use carry::Carrier;
use item::{Item, Kind};
use place::{Base, Destination, Spot};

pub use error::TransferError;

/// How much one call carries.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of all files together. A hole in a file counts like data.
    pub bytes: u64,
    /// Files, folders and links; also of one folder that is listed.
    pub entries: u64,
}

/// The files of a sandbox whose root folder is open.
#[derive(Debug)]
pub struct Inside {
    root: OwnedFd,
    limits: Limits,
}

// === impl Limits ===

impl Default for Limits {
    /// As much as a large disk image, and as many as a large project.
    fn default() -> Self {
        Self { bytes: 256 << 30, entries: 5_000_000 }
    }
}

// === impl Inside ===

impl Inside {
    /// The files below `root`, which may be open with `O_PATH`. What is done has the rights of this process.
    pub fn new(root: OwnedFd, limits: Limits) -> Self {
        Self { root, limits }
    }

    /// Copies a file, folder or link of this machine into the sandbox.
    ///
    /// # Errors
    /// [`TransferError`]; what was copied before it stays.
    pub fn copy_in(&self, from: &Path, to: &Path) -> Result<Copied, TransferError> {
        self.copy((&Base::Host, from), (&self.base(), to), false)
    }

    /// Copies a file, folder or link of the sandbox to this machine. Set-id bits are left out: they would be the caller's.
    ///
    /// # Errors
    /// [`TransferError`]; what was copied before it stays.
    pub fn copy_out(&self, from: &Path, to: &Path) -> Result<Copied, TransferError> {
        self.copy((&self.base(), from), (&Base::Host, to), true)
    }

    /// At most `length` bytes of a file, from `offset` on.
    ///
    /// # Errors
    /// [`TransferError`], also for what is no regular file.
    pub fn read(&self, path: &Path, offset: u64, length: u64) -> Result<impl Read + use<>, TransferError> {
        let item = Item::find(&self.base(), path, true)?;
        let file = item.file()?;
        if offset > 0 {
            let sought = rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(offset));
            sought.map_err(TransferError::step(path, "lseek"))?;
        }
        Ok(file.take(length))
    }

    /// As [`Inside::read`], into a file; how many bytes.
    ///
    /// # Errors
    /// [`TransferError`].
    pub fn read_to(
        &self,
        path: &Path,
        offset: u64,
        length: u64,
        mut to: &File,
    ) -> Result<u64, TransferError> {
        let mut content = self.read(path, offset, length.min(self.limits.bytes))?;
        std::io::copy(&mut content, &mut to).map_err(|source| TransferError::Step {
            path: path.into(),
            step: "read",
            source,
        })
    }

    /// Writes a file as a whole, and makes the folders that it is to lie in. A link in its place is followed, inside.
    ///
    /// # Errors
    /// [`TransferError`]; then what was there before is as it was.
    pub fn write(&self, path: &Path, mode: u32, content: &mut dyn Read) -> Result<u64, TransferError> {
        let spot = match Destination::find(&self.base(), path, true)? {
            Destination::Folder(_) => return Err(TransferError::IsFolder { path: path.into() }),
            Destination::Other(spot) | Destination::Absent(spot) => spot,
        };
        let limit = self.limits.bytes;
        spot.write(mode, |file| {
            let mut content = content.take(limit.saturating_add(1));
            let written = std::io::copy(&mut content, file).map_err(spot.io("write"))?;
            if written > limit {
                return Err(TransferError::TooLarge { path: path.into(), limit });
            }
            Ok(written)
        })
    }

    /// What lies in a folder, in the order of names.
    ///
    /// # Errors
    /// [`TransferError`], also for what is no folder.
    pub fn list(&self, path: &Path) -> Result<Vec<Entry>, TransferError> {
        let folder = Item::find(&self.base(), path, true)?.folder()?;
        let names = names(&folder, path, self.limits.entries)?;
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            match statat(&folder, as_path(&name), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => entries.push(entry(&name, &stat)),
                // It went away meanwhile.
                Err(Errno::NOENT) => {}
                Err(error) => return Err(TransferError::step(&path.join(as_path(&name)), "stat")(error)),
            }
        }
        Ok(entries)
    }

    fn base(&self) -> Base<'_> {
        Base::Inside(self.root.as_fd())
    }

    fn copy(
        &self,
        (source, from): (&Base<'_>, &Path),
        (target, to): (&Base<'_>, &Path),
        is_out: bool,
    ) -> Result<Copied, TransferError> {
        let ends = |path: &Path, end: &[u8]| path.as_os_str().as_bytes().ends_with(end);
        let is_content = ends(from, b"/.") || from == Path::new(".") || from == Path::new("/");
        let item = Item::find(source, from, is_content || ends(from, b"/"))?;
        let mut carrier = Carrier::new(self.limits, is_out);
        match Destination::find(target, to, false)? {
            Destination::Folder(folder) if is_content && item.kind == Kind::Folder => {
                carrier.pour(&item, &folder, to, 0)?;
            }
            Destination::Folder(folder) => {
                let name = from.file_name().ok_or_else(|| TransferError::NoName { path: from.into() })?;
                carrier.put(&item, &Spot::new(folder, name, &to.join(name)), 0)?;
            }
            Destination::Other(_) if item.kind == Kind::Folder => {
                return Err(TransferError::NotFolder { path: to.into() });
            }
            Destination::Other(_) | Destination::Absent(_) if item.kind != Kind::Folder && ends(to, b"/") => {
                return Err(TransferError::NotFolder { path: to.into() });
            }
            Destination::Other(spot) | Destination::Absent(spot) => carrier.put(&item, &spot, 0)?,
        }
        Ok(carrier.finish())
    }
}

impl Files for Inside {
    fn copy_in(&self, from: &Path, to: &Path) -> Result<Copied, DriverError> {
        Ok(Self::copy_in(self, from, to)?)
    }

    fn copy_out(&self, from: &Path, to: &Path) -> Result<Copied, DriverError> {
        Ok(Self::copy_out(self, from, to)?)
    }

    fn read(&self, path: &Path, offset: u64, length: u64) -> Result<Box<dyn Read>, DriverError> {
        Ok(Box::new(Self::read(self, path, offset, length)?))
    }

    fn write(&self, path: &Path, mode: u32, content: &mut dyn Read) -> Result<(), DriverError> {
        Self::write(self, path, mode, content)?;
        Ok(())
    }

    fn list(&self, path: &Path) -> Result<Vec<Entry>, DriverError> {
        Ok(Self::list(self, path)?)
    }
}

/// The names in a folder, in order.
fn names(folder: &OwnedFd, path: &Path, limit: u64) -> Result<Vec<Vec<u8>>, TransferError> {
    let mut names = Vec::new();
    let listed = list(folder, &mut dirent_buffer(), |entry| {
        names.push(entry.name.to_vec());
        if names.len() as u64 > limit { Err(Errno::OVERFLOW) } else { Ok(()) }
    });
    match listed {
        Err(Errno::OVERFLOW) => return Err(TransferError::TooMany { path: path.into(), limit }),
        listed => listed.map_err(TransferError::step(path, "getdents64"))?,
    }
    names.sort_unstable();
    Ok(names)
}

fn entry(name: &[u8], stat: &rustix::fs::Stat) -> Entry {
    Entry {
        name: std::str::from_utf8(name).map_or_else(|_| name.escape_ascii().to_string(), str::to_owned),
        kind: match Kind::of(stat) {
            Kind::File => EntryKind::File,
            Kind::Folder => EntryKind::Folder,
            Kind::Link => EntryKind::Link,
            Kind::Special => EntryKind::Other,
        },
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mode: stat.st_mode & 0o7777,
        modified: stat.st_mtime,
    }
}
