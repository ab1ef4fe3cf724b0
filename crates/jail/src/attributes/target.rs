use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use redoma_sys::{Errno, nr};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};

use crate::caller::Caller;

/// The object that a call names.
pub(super) struct Target {
    /// A descriptor of the caller's, or `AT_FDCWD`.
    base: i32,
    /// From there on; none means the base itself.
    path: Option<CString>,
    follow: bool,
}

/// With the zero at its end. See `PATH_MAX` in `limits.h(0p)`.
const PATH_MAX: usize = 4096;

const FOLLOW: u32 = 0;
const NO_FOLLOW: u32 = nr::AT_SYMLINK_NOFOLLOW as u32;
const EMPTY_PATH: u32 = nr::AT_EMPTY_PATH as u32;

impl Target {
    pub(super) fn descriptor(caller: &Caller<'_>, argument: usize) -> Result<Self, Errno> {
        match caller.int(argument) as i32 {
            base @ 0.. => Ok(Self { base, path: None, follow: true }),
            _ => Err(Errno::BADF),
        }
    }

    /// From the working folder, through a symbolic link at the end.
    pub(super) fn path(caller: &Caller<'_>, argument: usize) -> Result<Self, Errno> {
        Self::read(caller, nr::AT_FDCWD, argument, FOLLOW)
    }

    /// From the working folder; a symbolic link at the end is itself what is named.
    pub(super) fn link(caller: &Caller<'_>, argument: usize) -> Result<Self, Errno> {
        Self::read(caller, nr::AT_FDCWD, argument, NO_FOLLOW)
    }

    /// A folder's descriptor as one argument and the path as the next.
    pub(super) fn at(caller: &Caller<'_>, folder: usize, flags: u32) -> Result<Self, Errno> {
        Self::read(caller, caller.int(folder) as i32, folder + 1, flags)
    }

    /// As [`Self::at`]; no path means the descriptor. See "C library/kernel differences" in `utimensat(2)`.
    pub(super) fn at_or_descriptor(caller: &Caller<'_>, folder: usize, flags: u32) -> Result<Self, Errno> {
        match (caller.word(folder + 1), flags) {
            (0, 0) => Self::descriptor(caller, folder),
            (0, _) => Err(Errno::INVAL),
            _ => Self::at(caller, folder, flags),
        }
    }

    fn read(caller: &Caller<'_>, base: i32, path: usize, flags: u32) -> Result<Self, Errno> {
        if flags & !(NO_FOLLOW | EMPTY_PATH) != 0 {
            return Err(Errno::INVAL);
        }
        let follow = flags & NO_FOLLOW == 0;
        let path = caller.string(caller.word(path), PATH_MAX, Errno::NAMETOOLONG)?;
        if path.is_empty() {
            let whole = flags & EMPTY_PATH != 0;
            return if whole { Ok(Self { base, path: None, follow }) } else { Err(Errno::NOENT) };
        }
        let (base, path) = match caller.named_descriptor(path.to_bytes()) {
            // Not followed, it is a link in /proc, which is left as it is: nobody can change that.
            Some((base, [])) if follow => (base, None),
            Some((base, behind @ [_, ..])) => (base, Some(below(behind)?)),
            _ => (base, Some(path)),
        };
        Ok(Self { base, path, follow })
    }

    /// Opens the object for no more than naming it, as the call would have found it: the caller has init's root.
    pub(super) fn open(&self, caller: &Caller<'_>) -> Result<OwnedFd, Errno> {
        let from_root = self.path.as_ref().is_some_and(|path| path.to_bytes().starts_with(b"/"));
        let base = if from_root { None } else { Some(caller.base(self.base)?) };
        caller.still_waits()?;
        match (&self.path, base) {
            (None, base) => base.ok_or(Errno::PERM),
            (Some(path), base) => self.find(base.as_ref().map_or(CWD, AsFd::as_fd), path),
        }
    }

    /// The links of `/proc` that are no paths lead where the caller could not go: to what other processes have open.
    fn find(&self, base: BorrowedFd<'_>, path: &CStr) -> Result<OwnedFd, Errno> {
        let last = if self.follow { OFlags::empty() } else { OFlags::NOFOLLOW };
        let flags = OFlags::PATH | OFlags::CLOEXEC | last;
        rustix::fs::openat2(base, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS)
    }
}

/// `behind` starts with a slash, and would be taken to start from the root.
fn below(behind: &[u8]) -> Result<CString, Errno> {
    CString::new([b".", behind].concat()).map_err(|_| Errno::INVAL)
}
