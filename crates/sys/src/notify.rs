use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::Errno;
use rustix::process::Pid;

use crate::clone::last_error;
use crate::seccomp::{Instruction, set_filter};

/// Installs `program` as [`install_filter`](crate::install_filter) does. The descriptor that comes back receives the
/// calls that the program answers with `SECCOMP_RET_USER_NOTIF`; it is closed by the next `execve`.
///
/// Once a call was received only death interrupts its wait, so that no signal makes the caller ask twice for what
/// was done already.
///
/// # Errors
/// As `install_filter`; `EBUSY` where a filter of this process has such a descriptor already.
///
/// No safe crate has this: see [`install_filter`](crate::install_filter).
pub fn install_supervised_filter(program: &[Instruction]) -> Result<OwnedFd, Errno> {
    let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    let fd = set_filter(program, flags)?;
    // SAFETY: with NEW_LISTENER the kernel returns a new descriptor, which nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// The supervisor's end of a filter: readable when a call waits, hung up when no process is left under the filter.
/// When it is closed, calls that wait fail with `ENOSYS`, and so do all later ones. See `seccomp_unotify(2)`.
#[derive(Debug)]
pub struct Listener(OwnedFd);

/// A call that waits for an answer. Registers only: what an argument points to is the caller's to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification {
    /// Names this call of this filter, and never another.
    pub id: u64,
    /// The thread that makes it; none if the supervisor's pid namespace does not show it.
    pub thread: Option<Pid>,
    /// Number of the call.
    pub call: i32,
    /// Its arguments.
    pub arguments: [u64; 6],
}

/// Room for one of the kernel's records, aligned as they are: twice what they need today.
type Record = [u64; 20];

impl Listener {
    /// Takes over what [`install_supervised_filter`] gave.
    ///
    /// # Errors
    /// `EOVERFLOW` on a kernel whose records are larger than there is room for here.
    ///
    /// No safe crate has this: `libseccomp` binds a C library that comes with its own filters.
    pub fn new(fd: OwnedFd) -> Result<Self, Errno> {
        let mut sizes =
            libc::seccomp_notif_sizes { seccomp_notif: 0, seccomp_notif_resp: 0, seccomp_data: 0 };
        // SAFETY: the operation fills in the structure it is given.
        let done =
            unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_NOTIF_SIZES, 0, &raw mut sizes) };
        match sizes.seccomp_notif.max(sizes.seccomp_notif_resp) {
            _ if done != 0 => Err(last_error()),
            size if usize::from(size) > size_of::<Record>() => Err(Errno::OVERFLOW),
            _ => Ok(Self(fd)),
        }
    }

    /// The next call that waits; none if its caller was killed meanwhile. Blocks unless the descriptor is readable.
    ///
    /// # Errors
    /// What `SECCOMP_IOCTL_NOTIF_RECV` says.
    pub fn receive(&self) -> Result<Option<Notification>, Errno> {
        let mut record: Record = [0; _];
        // SAFETY: the kernel wants the record zeroed and writes no more than the size checked in `new`.
        match unsafe { self.request(libc::SECCOMP_IOCTL_NOTIF_RECV, &mut record) } {
            Err(Errno::NOENT | Errno::INTR) => return Ok(None),
            answer => answer?,
        }
        // SAFETY: the record is aligned for the structure, longer than it, and any bits are a valid one.
        let told = unsafe { record.as_ptr().cast::<libc::seccomp_notif>().read() };
        Ok(Some(Notification {
            id: told.id,
            thread: Pid::from_raw(told.pid as i32),
            call: told.data.nr,
            arguments: told.data.args,
        }))
    }

    /// Whether the call still waits. If it does, what was looked up under its thread's id until now was its own, and
    /// not another's that was given the same id.
    pub fn waits(&self, notification: &Notification) -> bool {
        let mut record: Record = [0; _];
        record[0] = notification.id;
        // SAFETY: the kernel reads the id, eight bytes.
        unsafe { self.request(libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &mut record) }.is_ok()
    }

    /// Lets the call return: 0, or the error. There is no way here to let the kernel carry the call out, since the
    /// caller could have changed it since it was judged.
    ///
    /// # Errors
    /// `ENOENT` if its caller was killed meanwhile.
    pub fn answer(&self, notification: &Notification, outcome: Result<(), Errno>) -> Result<(), Errno> {
        let error = outcome.err().map_or(0, |errno| -errno.raw_os_error());
        let answer = libc::seccomp_notif_resp { id: notification.id, val: 0, error, flags: 0 };
        let mut record: Record = [0; _];
        // SAFETY: the record is aligned for the structure and longer than it.
        unsafe { record.as_mut_ptr().cast::<libc::seccomp_notif_resp>().write(answer) };
        // SAFETY: the kernel reads no more than the size checked in `new`.
        unsafe { self.request(libc::SECCOMP_IOCTL_NOTIF_SEND, &mut record) }
    }

    /// # Safety
    /// The kernel must read and write no more than a record for `request`.
    unsafe fn request(&self, request: libc::Ioctl, record: &mut Record) -> Result<(), Errno> {
        // SAFETY: the descriptor is open, the record is valid, and long enough as the caller promises.
        let done = unsafe { libc::ioctl(self.0.as_raw_fd(), request, record.as_mut_ptr()) };
        if done == 0 { Ok(()) } else { Err(last_error()) }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Copies memory of `thread`'s process from `address` on into `buffer`; the count may fall short where the memory
/// ends. See `process_vm_readv(2)`.
///
/// # Errors
/// `EFAULT` if nothing is there, `EPERM` if this process may not trace that one (`ptrace(2)`, "access mode
/// checking"), `ESRCH` if it is gone.
///
/// No safe crate has this: it reads at addresses that mean nothing here.
pub fn read_memory(thread: Pid, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
    let here = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let there =
        libc::iovec { iov_base: std::ptr::without_provenance_mut(address as usize), iov_len: buffer.len() };
    let thread = thread.as_raw_nonzero().get();
    // SAFETY: `here` is the buffer, which the kernel fills; `there` is an address of the other process, which the
    // kernel checks and only reads.
    let read = unsafe { libc::process_vm_readv(thread, &raw const here, 1, &raw const there, 1, 0) };
    usize::try_from(read).map_err(|_| last_error())
}
