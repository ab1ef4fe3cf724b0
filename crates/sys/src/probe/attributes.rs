use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use super::outcome;

/// Calls that set a file's times and that C libraries no longer make.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldTimes {
    /// `utime(2)`.
    Utime,
    /// `utimes(2)`.
    Utimes,
    /// `futimesat(2)`, from the working folder.
    Futimesat,
}

/// Sets both times of `path` to `seconds`.
///
/// # Errors
/// What the call says.
#[cfg(target_arch = "x86_64")]
pub fn set_old_times(call: OldTimes, path: &CStr, seconds: i64) -> Result<(), Errno> {
    let (short, long) = ([seconds; 2], [seconds, 0, seconds, 0]);
    // SAFETY: the path is a C string; the arrays are laid out as `struct utimbuf` and `struct timeval[2]`.
    let done = unsafe {
        match call {
            OldTimes::Utime => libc::syscall(libc::SYS_utime, path.as_ptr(), short.as_ptr()),
            OldTimes::Utimes => libc::syscall(libc::SYS_utimes, path.as_ptr(), long.as_ptr()),
            OldTimes::Futimesat => {
                libc::syscall(libc::SYS_futimesat, libc::AT_FDCWD, path.as_ptr(), long.as_ptr())
            }
        }
    };
    outcome(done).map(drop)
}

/// Sets the mode of `path` below `folder`, with flags, which `rustix` does not pass on. See `fchmodat2` in `chmod(2)`.
///
/// # Errors
/// What the call says.
pub fn chmod_with_flags(
    folder: BorrowedFd<'_>,
    path: &CStr,
    mode: Mode,
    flags: AtFlags,
) -> Result<(), Errno> {
    // SAFETY: the descriptor is open and the path is a C string.
    let done = unsafe {
        libc::syscall(libc::SYS_fchmodat2, folder.as_raw_fd(), path.as_ptr(), mode.bits(), flags.bits())
    };
    outcome(done).map(drop)
}
