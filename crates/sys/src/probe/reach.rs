use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use super::{DEAD, outcome};

/// A call that acts on another process, with arguments that leave it as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// `ptrace(PTRACE_SEIZE)`: traces without stopping; ends with the caller.
    PtraceSeize,
    /// `tgkill` with signal 0.
    Tgkill,
    /// `rt_sigqueueinfo` with signal 0.
    SignalQueue,
    /// `kcmp(KCMP_VM)` of the caller and the other.
    Kcmp,
    /// `prlimit64(RLIMIT_NOFILE)`, neither new nor old limit.
    Prlimit,
    /// `sched_setaffinity` to no CPU at all, which is invalid.
    Affinity,
    /// `setpriority` to what an ordinary process has.
    Priority,
    /// `move_pages` of no pages.
    MovePages,
}

/// Makes `reach` towards the process `pid`.
///
/// # Errors
/// What the call says: `ESRCH` where the process can't be seen.
pub fn reach(reach: Reach, pid: i32) -> Result<i64, Errno> {
    let target = pid as usize;
    let own = std::process::id() as usize;
    // A `siginfo_t` of 128 bytes: signal number, errno, then SI_QUEUE, the one code for other processes.
    let mut signal_information = [0_i32; 32];
    signal_information[2] = -1;
    let (number, [a, b, c, d, e, f]) = match reach {
        Reach::PtraceSeize => (libc::SYS_ptrace, [0x4206, target, 0, 0, 0, 0]),
        Reach::Tgkill => (libc::SYS_tgkill, [target, target, 0, 0, 0, 0]),
        Reach::SignalQueue => {
            (libc::SYS_rt_sigqueueinfo, [target, 0, signal_information.as_ptr() as usize, 0, 0, 0])
        }
        Reach::Kcmp => (libc::SYS_kcmp, [own, target, 1, 0, 0, 0]),
        Reach::Prlimit => (libc::SYS_prlimit64, [target, 7, 0, 0, 0, 0]),
        Reach::Affinity => (libc::SYS_sched_setaffinity, [target, 0, DEAD, 0, 0, 0]),
        Reach::Priority => (libc::SYS_setpriority, [0, target, 0, 0, 0, 0]),
        Reach::MovePages => (libc::SYS_move_pages, [target, 0, 0, 0, 0, 0]),
    };
    // SAFETY: scalars, null and never mapped pointers, and one to `signal_information`, which the kernel
    // only reads.
    outcome(unsafe { libc::syscall(number, a, b, c, d, e, f) })
}

/// Lowers how many files the process `pid` may open to `files`, for good unless it is root. `prlimit(2)`.
///
/// # Errors
/// `ESRCH` where the process can't be seen, `EPERM` where it is another user's.
pub fn limit_open_files(pid: i32, files: u64) -> Result<(), Errno> {
    let limit = [files, files];
    // SAFETY: the kernel reads a `struct rlimit64`, two 64-bit words; the old limit isn't asked for.
    outcome(unsafe { libc::syscall(libc::SYS_prlimit64, pid, 7, limit.as_ptr(), 0_usize) }).map(drop)
}

/// Reads another process's memory at `address` into `buffer`. `process_vm_readv(2)`.
///
/// # Errors
/// `EPERM` or `ESRCH` when the process is out of reach, `EFAULT` when it is in reach and nothing is
/// mapped there.
pub fn read_process_memory(pid: i32, address: usize, buffer: &mut [u8]) -> Result<usize, Errno> {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: buffer.len() };
    // SAFETY: `local` describes `buffer`, borrowed mutably for the call; `remote` is an address in another
    // process, which the kernel checks and only reads.
    let count = unsafe { libc::process_vm_readv(pid, &raw const local, 1, &raw const remote, 1, 0) };
    outcome(count as libc::c_long).map(|count| count as usize)
}

/// Writes `bytes` into another process's memory at `address`. `process_vm_writev(2)`.
///
/// Refused for the caller itself, whose memory only the compiler may change.
///
/// # Errors
/// `EINVAL` for the caller's own id; otherwise as [`read_process_memory`].
pub fn write_process_memory(pid: i32, address: usize, bytes: &[u8]) -> Result<usize, Errno> {
    if pid <= 0 || pid as u32 == std::process::id() {
        return Err(Errno::INVAL);
    }
    let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: bytes.len() };
    // SAFETY: `local` is only read by the kernel, and the written memory is another process's.
    let count = unsafe { libc::process_vm_writev(pid, &raw const local, 1, &raw const remote, 1, 0) };
    outcome(count as libc::c_long).map(|count| count as usize)
}

/// Asks for SIGIO to be sent to `pid` whenever something can be read. `F_SETOWN` in `fcntl(2)`.
///
/// # Errors
/// `ESRCH` where the process can't be seen. A process that may not be signalled isn't an error: the signal
/// is then never sent.
pub fn set_signal_owner(fd: BorrowedFd<'_>, pid: i32) -> Result<(), Errno> {
    for (command, value) in [(libc::F_SETOWN, pid), (libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK)] {
        // SAFETY: both commands take an int; the flags leave the descriptor's access mode alone.
        outcome(unsafe { libc::syscall(libc::SYS_fcntl, fd.as_raw_fd(), command, value) })?;
    }
    Ok(())
}

/// A System V shared memory segment of one page, removed when dropped. `shmget(2)`.
#[derive(Debug)]
pub struct SharedMemory {
    key: i32,
    id: i32,
}

impl SharedMemory {
    /// Makes a segment that every process of this user and IPC namespace finds under `key`.
    ///
    /// # Errors
    /// `EEXIST` when there is one; otherwise what the call says.
    pub fn new(key: i32) -> Result<Self, Errno> {
        let flags = libc::IPC_CREAT | libc::IPC_EXCL | 0o600;
        // SAFETY: no pointers; nothing is mapped into this process.
        let id = outcome(unsafe { libc::syscall(libc::SYS_shmget, key, 4096_usize, flags) })? as i32;
        Ok(Self { key, id })
    }

    /// Whether a process can find the segment under `key`.
    ///
    /// # Errors
    /// `ENOENT` when there is none in this IPC namespace.
    pub fn find(key: i32) -> Result<(), Errno> {
        // SAFETY: as above; without IPC_CREAT nothing is made.
        outcome(unsafe { libc::syscall(libc::SYS_shmget, key, 0_usize, 0) }).map(drop)
    }

    /// What it is found under.
    pub fn key(&self) -> i32 {
        self.key
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: removes the segment this value made, which nothing here has mapped.
        unsafe { libc::shmctl(self.id, libc::IPC_RMID, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_another_process_can_be_told_from_none() {
        let mut buffer = [0; 8];
        assert_eq!(read_process_memory(std::process::id() as i32, DEAD, &mut buffer), Err(Errno::FAULT));
        assert_eq!(read_process_memory(i32::MAX, DEAD, &mut buffer), Err(Errno::SRCH));
        assert_eq!(write_process_memory(std::process::id() as i32, DEAD, &buffer), Err(Errno::INVAL));
    }
}
