//! Carrying one thing, or a tree of them, from one side to the other.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, Timespec, Timestamps, fchmod, fstat, futimens};
use rustix::io::{Errno, fcntl_dupfd_cloexec};

use super::error::TransferError;
use super::item::{Item, Kind};
use super::place::Spot;
use super::{Limits, names};
use crate::driver::Copied;
use crate::walk::tree::as_path;

/// Folders within folders, each of which costs two descriptors while it is copied.
const DEPTH_MAX: usize = 200;

/// What is read of a file that says it is empty and is not, as in /proc.
const UNSIZED_MAX: u64 = 16 << 20;

/// Things left out or changed that are named.
const NOTES_MAX: usize = 100;

/// Carries things within limits, and counts them.
pub(super) struct Carrier {
    limits: Limits,
    /// Whether it goes to the user's own folders.
    is_out: bool,
    /// The outermost folder that was made: it is not copied into itself.
    made: Option<(u64, u64)>,
    copied: Copied,
    noted: usize,
}

impl Carrier {
    pub(super) fn new(limits: Limits, is_out: bool) -> Self {
        Self { limits, is_out, made: None, copied: Copied::default(), noted: 0 }
    }

    pub(super) fn finish(mut self) -> Copied {
        if let more @ 1.. = self.noted.saturating_sub(NOTES_MAX) {
            self.copied.notes.push(format!("{more} more like these"));
        }
        self.copied
    }

    /// Makes what `item` is at `spot`.
    pub(super) fn put(&mut self, item: &Item, spot: &Spot, depth: usize) -> Result<(), TransferError> {
        match item.kind {
            Kind::File => self.file(item, spot)?,
            Kind::Link => spot.link(&item.target()?)?,
            Kind::Folder => return self.folder(item, spot, depth),
            Kind::Special => {
                self.note(&item.path, "it is no file, folder or link");
                return Ok(());
            }
        }
        self.count(&item.path)
    }

    /// Makes what is in the folder `item` in `folder`.
    pub(super) fn pour(
        &mut self,
        item: &Item,
        folder: &OwnedFd,
        to: &Path,
        depth: usize,
    ) -> Result<(), TransferError> {
        if depth == DEPTH_MAX {
            return Err(TransferError::TooDeep { path: item.path.clone(), limit: DEPTH_MAX });
        }
        let source = item.folder()?;
        for name in names(&source, &item.path, self.limits.entries)? {
            let name = as_path(&name).as_os_str();
            let inner = match Item::within(&source, name, &item.path.join(name)) {
                // It went away meanwhile.
                Err(TransferError::Absent { .. }) => continue,
                inner => inner?,
            };
            let own = fcntl_dupfd_cloexec(folder, 0).map_err(TransferError::step(to, "dup"))?;
            self.put(&inner, &Spot::new(own, name, &to.join(name)), depth + 1)?;
        }
        Ok(())
    }

    fn folder(&mut self, item: &Item, spot: &Spot, depth: usize) -> Result<(), TransferError> {
        if self.made == Some(item.id()) {
            self.note(&item.path, "it is what is being made");
            return Ok(());
        }
        let (folder, is_new) = spot.folder()?;
        if self.made.is_none() {
            let stat = fstat(&folder).map_err(spot.step("fstat"))?;
            self.made = Some((stat.st_dev, stat.st_ino));
        }
        self.count(&item.path)?;
        self.pour(item, &folder, &spot.path, depth)?;
        // At last: the mode could forbid to fill it. The mode of a folder that was there already is its owner's matter.
        if is_new {
            fchmod(&folder, Mode::from_raw_mode(self.mode(item))).map_err(spot.step("fchmod"))?;
            futimens(&folder, &times(item)).map_err(spot.step("futimens"))?;
        }
        Ok(())
    }

    fn file(&mut self, item: &Item, spot: &Spot) -> Result<(), TransferError> {
        let from = item.file()?;
        let (limit, left) = (self.limits.bytes, self.limits.bytes - self.copied.bytes);
        let too_large = || TransferError::TooLarge { path: item.path.clone(), limit };
        let size = u64::try_from(item.stat.st_size).unwrap_or(0);
        if size > left {
            return Err(too_large());
        }
        let bytes = spot.write(self.mode(item), |to| {
            let bytes = match size {
                0 => unsized_file(&from, to, left.min(UNSIZED_MAX)).map_err(spot.io("copy"))?,
                _ => Some(sized_file(&from, to, size).map_err(spot.io("copy"))?),
            };
            futimens(&*to, &times(item)).map_err(spot.step("futimens"))?;
            bytes.ok_or_else(too_large)
        })?;
        self.copied.bytes += bytes;
        Ok(())
    }

    /// Permission bits. On the way out without set-id bits: whoever runs the file would act as the user who copied it.
    fn mode(&mut self, item: &Item) -> u32 {
        let mode = item.stat.st_mode & 0o7777;
        if !self.is_out || item.kind == Kind::Folder || mode & 0o6000 == 0 {
            return if self.is_out { mode & 0o1777 } else { mode };
        }
        self.note(&item.path, "copied without its set-id bits");
        mode & 0o1777
    }

    fn count(&mut self, path: &Path) -> Result<(), TransferError> {
        self.copied.entries += 1;
        if self.copied.entries > self.limits.entries {
            return Err(TransferError::TooMany { path: path.into(), limit: self.limits.entries });
        }
        Ok(())
    }

    fn note(&mut self, path: &Path, why: &str) {
        self.noted += 1;
        if self.noted <= NOTES_MAX {
            self.copied.notes.push(format!("{}: {why}", redoma_audit::escape::printable(path)));
        }
    }
}

/// Copies a file as long as it was when it was looked at: one that grows must not grow for ever here. Holes stay holes.
fn sized_file(from: &File, to: &File, size: u64) -> io::Result<u64> {
    match redoma_layers::spread(from, to, size) {
        // A file system without holes.
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
            let mut to = to;
            io::copy(&mut from.take(size), &mut to)?;
        }
        spread => {
            spread?;
        }
    }
    // One that shrank meanwhile is as long as it is now.
    let now = from.metadata()?.len().min(size);
    to.set_len(now)?;
    Ok(now)
}

/// Copies a file whose length nobody knows; nothing if it is longer than `limit`.
fn unsized_file(from: &File, to: &File, limit: u64) -> io::Result<Option<u64>> {
    let mut to = to;
    let copied = io::copy(&mut from.take(limit + 1), &mut to)?;
    Ok((copied <= limit).then_some(copied))
}

fn times(item: &Item) -> Timestamps {
    #[allow(clippy::useless_conversion, reason = "the widths differ between architectures")]
    let modified = Timespec {
        tv_sec: item.stat.st_mtime.into(),
        tv_nsec: item.stat.st_mtime_nsec.try_into().unwrap_or(0),
    };
    Timestamps { last_access: modified, last_modification: modified }
}
