//! Owner, rights, times and extended attributes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, Gid, Mode, Timespec, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;

use super::root::{Root, os};
use super::{Ownership, notes::Notes};
use crate::Error;
use crate::archive::{Entry, Time};

/// What overlayfs, mounted with `userxattr`, looks for on a folder that hides what lies below it.
/// <https://docs.kernel.org/filesystems/overlayfs.html#whiteouts-and-opaque-directories>
pub(crate) const OPAQUE: &str = "user.overlay.opaque";
/// Attributes of overlayfs's own: an archive that could set them could redirect one folder to another.
const OVERLAY: &[u8] = b"user.overlay.";
/// Rights that a program has by being started.
const CAPABILITY: &[u8] = b"security.capability";

/// What an entry says of itself.
#[derive(Debug, Clone)]
pub(super) struct Attributes {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    mtime: Option<Time>,
    xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The layer's folders. What they say of themselves is set when all is in them: a file that is made changes its folder's
/// time, and cannot be made in one that is read-only.
#[derive(Debug, Default)]
pub(super) struct Folders(BTreeMap<PathBuf, Folder>);

#[derive(Debug, Default)]
struct Folder {
    attributes: Option<Attributes>,
    is_opaque: bool,
}

// === impl Attributes ===

impl Attributes {
    pub(super) fn of(entry: &Entry) -> Self {
        let Entry { mode, uid, gid, mtime, ref xattrs, .. } = *entry;
        Self { mode, uid, gid, mtime: Some(mtime), xattrs: xattrs.clone() }
    }

    /// Of a folder that the layer has something in, but does not describe itself.
    ///
    /// A layer is unpacked without those below it, which may have described the folder. The well-known ones are known here,
    /// so that `/tmp` stays writable for everybody.
    fn of_undescribed(path: &Path) -> Self {
        let mode = match path.to_str() {
            Some("tmp" | "var/tmp" | "dev/shm" | "run/lock") => 0o1777,
            Some("root") => 0o700,
            _ => 0o755,
        };
        Self { mode, uid: 0, gid: 0, mtime: None, xattrs: Vec::new() }
    }

    /// Sets everything, in an order in which nothing is lost: a new owner clears set-id bits and capabilities, and
    /// attributes can't be set once the mode forbids writing.
    pub(super) fn set(
        &self,
        fd: impl AsFd,
        name: &str,
        ownership: Ownership,
        notes: &mut Notes,
    ) -> Result<(), Error> {
        let failed = |step| move |errno: Errno| unpack_error(name, step, errno);
        if ownership == Ownership::Keep {
            fs::fchown(&fd, Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)))
                .map_err(failed("chown"))?;
        }
        for (key, value) in &self.xattrs {
            set_xattr(&fd, name, key, value, notes)?;
        }
        fs::fchmod(&fd, Mode::from_raw_mode(self.mode)).map_err(failed("chmod"))?;
        match self.times() {
            Some(times) => fs::futimens(&fd, &times).map_err(failed("utimensat")),
            None => Ok(()),
        }
    }

    /// Sets what a symbolic link or a FIFO can have, which are not opened. `folder` is ours alone meanwhile.
    pub(super) fn set_at(
        &self,
        folder: impl AsFd,
        file: &OsStr,
        name: &str,
        ownership: Ownership,
    ) -> Result<(), Error> {
        let failed = |step| move |errno: Errno| unpack_error(name, step, errno);
        if ownership == Ownership::Keep {
            let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
            fs::chownat(&folder, file, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(failed("chown"))?;
        }
        match self.times() {
            Some(times) => {
                fs::utimensat(&folder, file, &times, AtFlags::SYMLINK_NOFOLLOW).map_err(failed("utimensat"))
            }
            None => Ok(()),
        }
    }

    fn times(&self) -> Option<Timestamps> {
        let Time { seconds, nanoseconds } = self.mtime?;
        let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() };
        Some(Timestamps { last_access: time, last_modification: time })
    }
}

/// Sets one attribute, or notes why not.
fn set_xattr(fd: impl AsFd, name: &str, key: &[u8], value: &[u8], notes: &mut Notes) -> Result<(), Error> {
    let is_user = key.starts_with(b"user.") && !key.starts_with(OVERLAY);
    if !is_user && key != CAPABILITY {
        notes.add(|| format!("{name}: the attribute {} is left out", String::from_utf8_lossy(key)));
        return Ok(());
    }
    match fs::fsetxattr(fd, os(key), value, XattrFlags::empty()) {
        Ok(()) => Ok(()),
        // Capabilities take CAP_SETFCAP, which an ordinary user has in a namespace of their own only; file systems have
        // bounds of their own for how long a value may be.
        Err(errno @ (Errno::PERM | Errno::NOTSUP | Errno::INVAL | Errno::TOOBIG | Errno::RANGE)) => {
            notes.add(|| {
                format!("{name}: the attribute {} cannot be set: {errno}", String::from_utf8_lossy(key))
            });
            Ok(())
        }
        Err(errno) => Err(unpack_error(name, "setxattr", errno)),
    }
}

pub(super) fn unpack_error(entry: &str, step: &'static str, errno: Errno) -> Error {
    Error::Unpack { entry: entry.to_owned(), step, source: errno.into() }
}

// === impl Folders ===

impl Folders {
    /// The layer has something in this folder.
    pub(super) fn add(&mut self, path: &Path) {
        self.0.entry(path.into()).or_default();
    }

    /// The layer says what this folder is.
    pub(super) fn describe(&mut self, path: &Path, attributes: Attributes) {
        self.0.entry(path.into()).or_default().attributes = Some(attributes);
    }

    /// Nothing of the layers below is seen in this folder.
    pub(super) fn hide_below(&mut self, path: &Path) {
        self.0.entry(path.into()).or_default().is_opaque = true;
    }

    /// The folder is gone, with all that was in it.
    pub(super) fn forget(&mut self, path: &Path) {
        // In the order of paths what lies below a folder follows it directly.
        let below = self.0.range(path.to_path_buf()..).take_while(|(key, _)| key.starts_with(path));
        let gone: Vec<PathBuf> = below.map(|(key, _)| key.clone()).collect();
        for key in gone {
            self.0.remove(&key);
        }
    }

    /// Sets what the folders say of themselves, from the deepest up: above one that forbids to enter it, nothing is left
    /// to do.
    pub(super) fn finish(self, root: &Root, ownership: Ownership, notes: &mut Notes) -> Result<(), Error> {
        for (path, folder) in self.0.iter().rev() {
            let name = path.to_string_lossy();
            let fd = root.open_folder(path).map_err(|errno| unpack_error(&name, "openat2", errno))?;
            if folder.is_opaque {
                let set = fs::fsetxattr(&fd, OPAQUE, b"y", XattrFlags::empty());
                set.map_err(|errno| unpack_error(&name, "setxattr", errno))?;
            }
            let described = folder.attributes.clone().unwrap_or_else(|| Attributes::of_undescribed(path));
            // The layer itself stays with whoever unpacks: only an owner may move it to its place (rename(2)).
            let ownership = if path.as_os_str().is_empty() { Ownership::Mine } else { ownership };
            described.set(&fd, &name, ownership, notes)?;
        }
        Ok(())
    }
}
