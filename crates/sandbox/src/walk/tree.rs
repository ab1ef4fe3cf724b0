//! Reading a folder that somebody hostile may have filled, and telling whether something in it has changed.

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

pub(crate) use redoma_layers::beneath::{Root, as_path, beneath, dirent_buffer, join, list};

/// What tells that an inode is the same and has not changed. Programs can set an mtime, nobody can set a ctime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    pub(crate) dev: u64,
    pub(crate) ino: u64,
    /// Nanoseconds since 1970.
    pub(crate) ctime: i64,
}

impl Identity {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self { dev: stat.st_dev, ino: stat.st_ino, ctime: nanos(stat.st_ctime, stat.st_ctime_nsec) }
    }

    /// Whether a change made after the inode was looked at (at `seen`, nanoseconds since 1970) could carry this very
    /// ctime: time stamps are only as fine as the file system and the kernel's tick, 2 s being the coarsest (FAT).
    pub(crate) fn is_racy(&self, seen: i64) -> bool {
        self.ctime >= seen.saturating_sub(2_000_000_000)
    }
}

/// Seconds and nanoseconds as one number.
pub(crate) fn nanos(seconds: i64, nanoseconds: impl TryInto<i64>) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds.try_into().unwrap_or(0))
}

/// The present, in nanoseconds since 1970, from the clock that file systems stamp with.
pub(crate) fn now() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    nanos(now.tv_sec, now.tv_nsec)
}
