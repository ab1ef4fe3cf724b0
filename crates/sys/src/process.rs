use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use rustix::io::Errno;

use crate::clone::last_error;

/// Marks every descriptor from `first` on to be closed by the next `execve`. See `close_range(2)`.
///
/// # Errors
/// `EINVAL` before Linux 5.11.
///
/// No safe crate has this: `rustix` closes descriptors only one by one.
pub fn close_on_exec_from(first: u32) -> Result<(), Errno> {
    // SAFETY: setting FD_CLOEXEC closes nothing in this process.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

/// Closes every descriptor but the first three and those of `kept`: for a forked process that never returns to the code that
/// opened them. See `close_range(2)`.
///
/// # Errors
/// `ENOSYS` before Linux 5.9.
///
/// No safe crate has this, since it takes descriptors from under their owners.
pub fn close_all_but(kept: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut kept: Vec<u32> = kept.iter().map(|fd| fd.as_raw_fd() as u32).filter(|fd| *fd > 2).collect();
    kept.sort_unstable();
    let firsts = [3].into_iter().chain(kept.iter().map(|fd| fd + 1));
    let lasts = kept.iter().map(|fd| fd - 1).chain([u32::MAX]);
    for (first, last) in firsts.zip(lasts) {
        // SAFETY: the owners of these descriptors are in frames that this process never returns to.
        if first <= last && unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } != 0 {
            return Err(last_error());
        }
    }
    Ok(())
}

/// Closes every descriptor but the first three, as [`close_all_but`].
///
/// # Errors
/// `ENOSYS` before Linux 5.9.
pub fn close_all() -> Result<(), Errno> {
    // SAFETY: the owners of these descriptors are in frames that this process never returns to.
    let done = unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

/// What processes that were waited for have used, with all their descendants that were waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in user mode.
    pub user: Duration,
    /// Processor time in the kernel.
    pub system: Duration,
    /// The largest resident set of any single process, in bytes.
    pub peak_memory: u64,
}

/// The usage of this process's children. See `getrusage(2)`.
///
/// No safe crate has this.
pub fn children_usage() -> Usage {
    // SAFETY: an all-zero `rusage` is valid, and the kernel fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let duration = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    Usage {
        user: duration(usage.ru_utime),
        system: duration(usage.ru_stime),
        peak_memory: usage.ru_maxrss as u64 * 1024,
    }
}
