//! One path of what a chain shows.

use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{FileType, Stat};

use crate::layer::Layer;

/// What kind of thing a path is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link, whatever it leads to.
    Link,
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
    /// A block device.
    BlockDevice,
    /// A character device; never 0:0, which is a whiteout.
    CharacterDevice,
}

/// One path of what a chain shows, as it was when it was looked at.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Relative to the root; empty for the root itself. Bytes that a sandbox chose: escape it before a terminal sees it.
    pub path: PathBuf,
    /// Its kind.
    pub kind: Kind,
    /// Permission bits with set-id and sticky bits.
    pub mode: u32,
    /// The owner, as the calling process sees it.
    pub uid: u32,
    /// The group, as the calling process sees it.
    pub gid: u32,
    /// Bytes, of files and links.
    pub size: u64,
    /// Seconds since 1970, and nanoseconds.
    pub modified: (i64, u32),
    /// Of devices: major and minor number.
    pub device: (u32, u32),
    /// What tells that two entries are one file: device and inode of the layer's file system.
    pub inode: (u64, u64),
    /// How many names the file has in its layer. Those hidden by other layers count too.
    pub names: u64,
    /// Whether attributes other than overlayfs's own may be there.
    pub(crate) has_attributes: bool,
    /// Where it lies; several entries of a walk share it.
    pub(crate) layer: Arc<Layer>,
}

// === impl Kind ===

impl Kind {
    pub(crate) fn of(stat: &Stat) -> Self {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Link,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::BlockDevice => Self::BlockDevice,
            FileType::CharacterDevice => Self::CharacterDevice,
            _ => Self::File,
        }
    }
}

// === impl Entry ===

impl Entry {
    #[allow(clippy::useless_conversion, reason = "the widths differ between architectures")]
    pub(crate) fn of(path: PathBuf, stat: &Stat, layer: &Arc<Layer>) -> Self {
        Self {
            path,
            kind: Kind::of(stat),
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: (stat.st_mtime, stat.st_mtime_nsec.try_into().unwrap_or(0)),
            device: (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev)),
            inode: (stat.st_dev, stat.st_ino),
            names: stat.st_nlink.into(),
            has_attributes: false,
            layer: Arc::clone(layer),
        }
    }
}
