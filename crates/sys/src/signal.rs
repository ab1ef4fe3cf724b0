use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Signal;

use crate::clone::last_error;

/// Signals as a readable descriptor, so that one poll loop sees everything. See `signalfd(2)`.
#[derive(Debug)]
pub struct SignalFd(OwnedFd);

impl SignalFd {
    /// Blocks `signals` for this thread and takes them from the descriptor instead.
    ///
    /// # Errors
    /// `EMFILE`, `ENFILE` or `ENOMEM` when the kernel has none left.
    ///
    /// No safe crate has this: `rustix` offers neither signal masks nor `signalfd`.
    pub fn new(signals: &[Signal]) -> Result<Self, Errno> {
        block_signals(signals)?;
        let set = set_of(signals);
        // SAFETY: `set` is an initialised signal set; -1 asks for a new descriptor.
        let fd = unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        // SAFETY: a non-negative return is a new descriptor that nothing else owns.
        if fd < 0 { Err(last_error()) } else { Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) })) }
    }

    /// The next pending signal's number, or none.
    ///
    /// # Errors
    /// What `read(2)` says, other than that nothing is pending.
    pub fn next(&self) -> Result<Option<i32>, Errno> {
        let mut record = [0u8; size_of::<libc::signalfd_siginfo>()];
        match rustix::io::read(&self.0, &mut record) {
            // The signal's number is the record's first word.
            Ok(length) if length == record.len() => {
                Ok(Some(i32::from_ne_bytes([record[0], record[1], record[2], record[3]])))
            }
            Ok(_) | Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Blocks `signals` for this thread. See `sigprocmask(2)`.
///
/// # Errors
/// None that a valid set can meet; the kernel's answer is passed on.
pub fn block_signals(signals: &[Signal]) -> Result<(), Errno> {
    let set = set_of(signals);
    // SAFETY: `set` is initialised, and the old mask is not asked for.
    let done = unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}

/// Unblocks every signal and lets `SIGPIPE`, which Rust ignores, end the process again: what a command expects to start
/// with. What else the caller ignores stays ignored, as `nohup(1)` wants it. See `signal(7)`.
pub fn restore_default_signals() {
    // SAFETY: SIG_DFL installs no handler.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let none = set_of(&[]);
    // SAFETY: `none` is initialised, and the old mask is not asked for.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) };
}

/// Sends a signal to every process that this one may signal, but itself and init: `kill(-1)`. For the init of a pid
/// namespace. See `kill(2)`.
///
/// # Errors
/// `ESRCH` when there is nobody; `EPERM` outside of a pid namespace of one's own, where it would be everybody.
///
/// No safe crate has this: `rustix` names processes and groups only.
pub fn signal_everybody(signal: Signal) -> Result<(), Errno> {
    if rustix::process::getpid() != rustix::process::Pid::INIT {
        return Err(Errno::PERM);
    }
    // SAFETY: sending a signal touches no memory of this process.
    if unsafe { libc::kill(-1, signal.as_raw()) } == 0 { Ok(()) } else { Err(last_error()) }
}

/// Bounds how long calls of this process block, by `SIGALRM`: what blocks for longer fails with `EINTR`. See
/// `setitimer(2)`.
#[derive(Debug)]
pub struct Alarm(());

impl Alarm {
    /// Takes over `SIGALRM` for the whole process, which must have one thread only, until the next `execve`.
    ///
    /// No safe crate has this: handlers are installed by unsafe code everywhere, since they interrupt any other.
    pub fn new() -> Self {
        extern "C" fn nothing(_: libc::c_int) {}
        // SAFETY: all-zero is a valid `sigaction`: without SA_RESTART, so that calls are interrupted.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as libc::sighandler_t;
        let alarm = set_of(&[Signal::ALARM]);
        // SAFETY: the handler does nothing, so it may run at any moment; both structures are initialised.
        unsafe {
            libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut());
            libc::sigprocmask(libc::SIG_UNBLOCK, &raw const alarm, std::ptr::null_mut());
        }
        Self(())
    }

    /// Does `work`, whose calls are interrupted once it took `time`, and again and again after that: one alarm could
    /// come just before a call that then blocks for good.
    pub fn limit<T>(&self, time: Duration, work: impl FnOnce() -> T) -> T {
        set_timer(time);
        let done = work();
        set_timer(Duration::ZERO);
        done
    }
}

impl Default for Alarm {
    fn default() -> Self {
        Self::new()
    }
}

/// Zero stops it.
fn set_timer(period: Duration) {
    let period = libc::timeval {
        tv_sec: period.as_secs() as _,
        tv_usec: libc::suseconds_t::from(period.subsec_micros()),
    };
    let timer = libc::itimerval { it_interval: period, it_value: period };
    // SAFETY: `timer` is initialised, and the old one is not asked for.
    let done = unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
    debug_assert_eq!(done, 0, "fails only for values that are no time");
}

fn set_of(signals: &[Signal]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: `sigemptyset` initialises the set, `sigaddset` only adds valid numbers to it.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal.as_raw());
        }
        set.assume_init()
    }
}
