//! The thread behind a supervised call: its registers, its memory, its descriptors.

use std::ffi::CString;
use std::os::fd::OwnedFd;

use redoma_sys::{Errno, Listener, Notification, nr};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};

/// A thread inside that waits for its call to be answered. All that it says is hostile, and all but the registers
/// changes while it is read: whatever is judged is read once.
pub(crate) struct Caller<'a> {
    listener: &'a Listener,
    notification: &'a Notification,
    thread: Pid,
}

impl<'a> Caller<'a> {
    pub(crate) fn new(listener: &'a Listener, notification: &'a Notification) -> Result<Self, Errno> {
        let thread = notification.thread.ok_or(Errno::PERM)?;
        Ok(Self { listener, notification, thread })
    }

    pub(crate) fn call(&self) -> nr::c_long {
        self.notification.call.into()
    }

    /// An argument that the kernel takes all of: an address or a length.
    pub(crate) fn word(&self, argument: usize) -> u64 {
        self.notification.arguments[argument]
    }

    /// An argument that the kernel takes the low half of: a descriptor, flags, a mode, an id.
    pub(crate) fn int(&self, argument: usize) -> u32 {
        self.word(argument) as u32
    }

    /// The bytes up to the first zero, which must come before `limit`; if not, the error is `too_long`.
    pub(crate) fn string(&self, address: u64, limit: usize, too_long: Errno) -> Result<CString, Errno> {
        let mut bytes = Vec::new();
        loop {
            let from = address.checked_add(bytes.len() as u64).ok_or(Errno::FAULT)?;
            let wanted = to_end_of_page(from).min(limit - bytes.len());
            let chunk = self.bytes(from, wanted)?;
            if let Some(end) = chunk.iter().position(|&byte| byte == 0) {
                bytes.extend(&chunk[..end]);
                return CString::new(bytes).map_err(|_| Errno::INVAL);
            }
            bytes.extend(chunk);
            if bytes.len() == limit {
                return Err(too_long);
            }
        }
    }

    /// Exactly `length` bytes.
    pub(crate) fn bytes(&self, address: u64, length: usize) -> Result<Vec<u8>, Errno> {
        let mut bytes = vec![0; length];
        match redoma_sys::read_memory(self.thread, address, &mut bytes) {
            Ok(read) if read == length => Ok(bytes),
            Ok(_) | Err(Errno::FAULT) => Err(Errno::FAULT),
            Err(_) => Err(Errno::PERM),
        }
    }

    /// A descriptor of the caller's as one of our own: the same open file, and not another opening of it. It needs the
    /// right to trace the caller, as reading its memory does: where Yama gives that to nobody (`ptrace_scope` 2 and 3),
    /// or the caller has closed itself to tracing (`PR_SET_DUMPABLE`), there is no such descriptor. See
    /// `pidfd_getfd(2)`.
    pub(crate) fn copy(&self, descriptor: i32) -> Result<OwnedFd, Errno> {
        // Threads need not share descriptors. PIDFD_THREAD is O_EXCL, older than any kernel with this tier.
        let thread = PidfdFlags::from_bits_retain(OFlags::EXCL.bits());
        let thread = rustix::process::pidfd_open(self.thread, thread).map_err(|_| Errno::ACCESS)?;
        let copied = rustix::process::pidfd_getfd(thread, descriptor, PidfdGetfdFlags::empty());
        copied.map_err(|errno| if errno == Errno::BADF { Errno::BADF } else { Errno::ACCESS })
    }

    /// The thread's id. `/proc` shows its process under it too.
    pub(crate) fn thread(&self) -> Pid {
        self.thread
    }

    /// What a relative path starts from: a descriptor of the caller, or its working folder for `AT_FDCWD`. Good for
    /// naming it, not for reading: `O_PATH` in `open(2)`.
    pub(crate) fn base(&self, descriptor: i32) -> Result<OwnedFd, Errno> {
        let thread = self.thread.as_raw_nonzero();
        let name = match descriptor {
            nr::AT_FDCWD => format!("/proc/{thread}/cwd"),
            0.. => format!("/proc/{thread}/fd/{descriptor}"),
            _ => return Err(Errno::BADF),
        };
        let opened = rustix::fs::openat(CWD, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        opened.map_err(|errno| if errno == Errno::NOENT { Errno::BADF } else { Errno::PERM })
    }

    /// The descriptor that `path` names, if it is one of the caller's by way of `/proc`, and what follows behind it.
    /// C libraries act on such names where there is no call for an `O_PATH` descriptor. Here `/proc/self` is init.
    pub(crate) fn named_descriptor<'p>(&self, path: &'p [u8]) -> Option<(i32, &'p [u8])> {
        let thread = format!("/proc/{}/fd/", self.thread.as_raw_nonzero());
        let folders: [&[u8]; 4] =
            [b"/proc/self/fd/", b"/proc/thread-self/fd/", b"/dev/fd/", thread.as_bytes()];
        let rest = folders.iter().find_map(|folder| path.strip_prefix(*folder))?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (number, behind) = rest.split_at(digits);
        let number = str::from_utf8(number).ok()?.parse().ok()?;
        (behind.is_empty() || behind.starts_with(b"/")).then_some((number, behind))
    }

    /// Fails if the caller is gone, and with it the certainty that all this was its own.
    pub(crate) fn still_waits(&self) -> Result<(), Errno> {
        if self.listener.waits(self.notification) { Ok(()) } else { Err(Errno::SRCH) }
    }
}

/// Memory that is there may end at any page's end. No page is smaller.
fn to_end_of_page(address: u64) -> usize {
    const PAGE: u64 = 4096;
    (PAGE - address % PAGE) as usize
}
