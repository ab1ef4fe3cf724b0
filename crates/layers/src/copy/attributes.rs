//! Owners, modes, times and extended attributes.

use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, Gid, Mode, Stat, Timespec, Timestamps, Uid, chownat, fchmod, fchown, futimens, utimensat,
};
use rustix::io::Errno;

use super::{Copy, Place};
use crate::Error;
use crate::xattr;

impl Copy<'_> {
    /// Gives an open file or folder what the original has.
    ///
    /// The order: `user.*` attributes cannot be set where the mode forbids to write, a change of owner takes set-id bits and
    /// capabilities away, and a mode changes an access list.
    pub(super) fn attributes(
        &mut self,
        from: &(impl AsFd + AsRawFd),
        to: &(impl AsFd + AsRawFd),
        path: &Path,
    ) -> Result<(), Error> {
        let stat = rustix::fs::fstat(from).map_err(self.source.failed(path, "fstat"))?;
        let all = xattr::Place::Open(from).all(xattr::is_content);
        let all = all.map_err(self.source.failed(path, "getxattr"))?;
        let is_own = |name: &[u8]| name.starts_with(b"user.");
        for (name, value) in all.iter().filter(|(name, _)| is_own(name)) {
            let set = xattr::Place::Open(to).set(name, value);
            set.map_err(self.failed(path, "setxattr"))?;
        }
        let owned = fchown(to, Some(uid(&stat)), Some(gid(&stat)));
        let owned = self.permitted(owned).map_err(self.failed(path, "fchown"))?;
        fchmod(to, mode(&stat, owned)).map_err(self.failed(path, "fchmod"))?;
        for (name, value) in all.iter().filter(|(name, _)| !is_own(name)) {
            let set = self.permitted(xattr::Place::Open(to).set(name, value));
            set.map_err(self.failed(path, "setxattr"))?;
        }
        futimens(to, &times(&stat)).map_err(self.failed(path, "futimens"))
    }

    /// The same for what cannot be opened: links, FIFOs, whiteouts and other devices. They have no attributes of ours.
    pub(super) fn name_attributes(&mut self, place: Place<'_>) -> Result<(), Error> {
        let Place { to, name, path, .. } = place;
        let nofollow = AtFlags::SYMLINK_NOFOLLOW;
        let Some(stat) = self.source.stat(place.from, name, path)? else {
            return Err(Error::Changed { path: self.source.path().join(path) });
        };
        let owned = chownat(to, name, Some(uid(&stat)), Some(gid(&stat)), nofollow);
        let owned = self.permitted(owned).map_err(self.failed(path, "fchownat"))?;
        if stat.st_mode & 0o170_000 != 0o120_000 {
            // What was made a moment ago is no link, and nobody else knows it. mknod(2) left the umask's bits out.
            rustix::fs::chmodat(to, name, mode(&stat, owned), AtFlags::empty())
                .map_err(self.failed(path, "fchmodat"))?;
        }
        utimensat(to, name, &times(&stat), nofollow).map_err(self.failed(path, "utimensat"))
    }

    /// Whether something was done; what is not permitted is counted.
    fn permitted(&mut self, done: Result<(), Errno>) -> Result<bool, Errno> {
        match done {
            Ok(()) => Ok(true),
            // An owner without a number here, and an attribute that the file system does not know.
            Err(Errno::PERM | Errno::INVAL | Errno::OPNOTSUPP) => {
                self.copied.unkept += 1;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

fn uid(stat: &Stat) -> Uid {
    Uid::from_raw(stat.st_uid)
}

fn gid(stat: &Stat) -> Gid {
    Gid::from_raw(stat.st_gid)
}

/// Without set-id bits if the owner is another: they would give somebody else's rights away.
fn mode(stat: &Stat, is_owned: bool) -> Mode {
    let mode = Mode::from_raw_mode(stat.st_mode & 0o7777);
    if is_owned { mode } else { mode - (Mode::SUID | Mode::SGID) }
}

#[allow(clippy::useless_conversion, reason = "the widths differ between architectures")]
fn times(stat: &Stat) -> Timestamps {
    let time = |seconds: i64, nanos| Timespec { tv_sec: seconds, tv_nsec: nanos };
    Timestamps {
        last_access: time(stat.st_atime.into(), stat.st_atime_nsec.try_into().unwrap_or(0)),
        last_modification: time(stat.st_mtime.into(), stat.st_mtime_nsec.try_into().unwrap_or(0)),
    }
}
