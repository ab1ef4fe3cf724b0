use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::process::Pid;

/// The namespaces a new process is born into, as `CLONE_NEW*` bits. See `namespaces(7)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Namespaces(u64);

impl Namespaces {
    /// The caller's own: a plain fork.
    pub const NONE: Self = Self(0);
    /// User, mount, pid, network, IPC, UTS and cgroup: everything a full-tier sandbox is made of.
    pub const ALL: Self = Self(
        (libc::CLONE_NEWUSER
            | libc::CLONE_NEWNS
            | libc::CLONE_NEWPID
            | libc::CLONE_NEWNET
            | libc::CLONE_NEWIPC
            | libc::CLONE_NEWUTS
            | libc::CLONE_NEWCGROUP) as u64,
    );
    /// The user namespace alone, for probing what it grants here.
    pub const USER: Self = Self(libc::CLONE_NEWUSER as u64);
}

/// Which side of [`clone_process`] this is.
#[derive(Debug)]
pub enum Cloned {
    /// The caller; `pidfd` refers to the new process and polls readable when it ends.
    Parent {
        /// Process id of the child as the caller sees it.
        pid: Pid,
        /// A descriptor of the child that can't come to mean another process. `pidfd_open(2)`.
        pidfd: OwnedFd,
    },
    /// The new process. It must leave by `execve` or [`exit_now`], never by returning from `main`.
    Child,
}

#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
}

/// Forks into `namespaces` by `clone3(2)`, the only call that makes the process and its pidfd at once.
///
/// # Errors
/// `EDEADLK` when the process has other threads: a forked copy of a lock that another thread holds never
/// opens again. Otherwise what `clone3` says: `EPERM` or `ENOSPC` where user namespaces are off, `EAGAIN`
/// at the process limit, `ENOSYS` under a filter that hides it.
///
/// No safe crate has this: `rustix` leaves process creation to `std`, which knows no namespaces.
pub fn clone_process(namespaces: Namespaces) -> Result<Cloned, Errno> {
    require_single_thread()?;
    let mut pidfd: RawFd = -1;
    let args = CloneArgs {
        flags: namespaces.0 | libc::CLONE_PIDFD as u64,
        pidfd: (&raw mut pidfd) as u64,
        exit_signal: libc::SIGCHLD as u64,
        ..CloneArgs::default()
    };
    // SAFETY: `args` is a valid `struct clone_args` of the size given, no stack and no CLONE_VM, so the
    // child runs on a copy of this memory. The process is single-threaded (checked above), so no lock is
    // held by a thread that the child lacks.
    let pid = unsafe { libc::syscall(libc::SYS_clone3, &raw const args, size_of::<CloneArgs>()) };
    match pid {
        -1 => Err(last_error()),
        0 => Ok(Cloned::Child),
        pid => Ok(Cloned::Parent {
            pid: Pid::from_raw(pid as i32).ok_or(Errno::SRCH)?,
            // SAFETY: the kernel stored a new descriptor there, which nothing else owns.
            pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) },
        }),
    }
}

/// Ends the process when it is dropped. A forked process holds one, so that a panic in it does not unwind into the frames of
/// the process that it was forked from, which would then be two.
#[derive(Debug)]
pub struct NoReturn;

impl Drop for NoReturn {
    fn drop(&mut self) {
        const PANICKED: i32 = 101;
        exit_now(PANICKED);
    }
}

/// Ends this process without running the destructors and `atexit` handlers of the program it was forked from.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit(2)` has no preconditions.
    unsafe { libc::_exit(code) }
}

/// A thread that was joined may be in its last kernel steps: those few are waited for.
fn require_single_thread() -> Result<(), Errno> {
    const TRIES: u32 = 10_000;
    for _ in 0..TRIES {
        // A directory's link count is two plus its folders, and `/proc/self/task` has one per thread.
        if rustix::fs::stat("/proc/self/task")?.st_nlink == 3 {
            return Ok(());
        }
        rustix::thread::sched_yield();
    }
    Err(Errno::DEADLK)
}

pub(crate) fn last_error() -> Errno {
    std::io::Error::last_os_error().raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error)
}

/// A plain fork by `fork(2)`: for init, whose own filter hides `clone3`.
///
/// # Errors
/// As [`clone_process`].
///
/// No safe crate has this.
pub fn fork() -> Result<Option<Pid>, Errno> {
    require_single_thread()?;
    // SAFETY: the process is single-threaded, so the child holds no lock of a thread that it lacks.
    match unsafe { libc::fork() } {
        -1 => Err(last_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}
