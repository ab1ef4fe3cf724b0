//! System calls made only to see whether something refuses them.
//!
//! A closed list: the caller picks an entry and can't choose a call number or a pointer. Arguments are
//! such that the kernel changes nothing: null or dead pointers, descriptors that aren't open, flags that
//! don't exist. What comes back then tells who answered. `EPERM`, `EACCES` and `ENOSYS` come from a filter,
//! a missing capability or a kernel without the call; `EFAULT`, `EINVAL`, `EBADF` and success mean that the
//! call was let through and looked at.
//!
//! No safe crate offers this: `rustix` has safe signatures, which rule such arguments out on purpose.

use std::ffi::CString;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;

/// A call with arguments that can have no effect.
#[derive(Clone, Copy, Debug)]
pub struct Inert {
    /// The call's name in its man page, with the operation where there are several.
    pub name: &'static str,
    number: libc::c_long,
    arguments: [usize; 6],
    /// Why these arguments change nothing, whoever makes the call.
    pub reason: &'static str,
}

/// An address that is never mapped: inside the first page, below any `vm.mmap_min_addr`.
const DEAD: usize = 1;
/// A descriptor that is never open.
const NO_FD: usize = -1_isize as usize;
/// All flags at once, undefined ones included.
const ALL_FLAGS: usize = u32::MAX as usize;

const fn inert(
    name: &'static str,
    number: libc::c_long,
    arguments: [usize; 6],
    reason: &'static str,
) -> Inert {
    Inert { name, number, arguments, reason }
}

/// Every inert call, by name. Order is that of the red-team table.
pub const INERT: &[Inert] = &[
    inert("bpf", libc::SYS_bpf, [ALL_FLAGS, 0, 0, 0, 0, 0], "no such command"),
    inert("perf_event_open", libc::SYS_perf_event_open, [0, 0, NO_FD, NO_FD, 0, 0], "null attribute"),
    // UFFD_USER_MODE_ONLY, which needs no privilege, with a flag that doesn't exist.
    inert("userfaultfd", libc::SYS_userfaultfd, [0x4000_0001, 0, 0, 0, 0, 0], "no such flag"),
    inert("io_uring_setup", libc::SYS_io_uring_setup, [0, 0, 0, 0, 0, 0], "null parameters"),
    inert("io_uring_enter", libc::SYS_io_uring_enter, [NO_FD, 0, 0, 0, 0, 0], "no descriptor"),
    inert("io_uring_register", libc::SYS_io_uring_register, [NO_FD, 0, 0, 0, 0, 0], "no descriptor"),
    // KEYCTL_READ of serial 0.
    inert("keyctl", libc::SYS_keyctl, [11, 0, 0, 0, 0, 0], "there is no key 0"),
    inert("add_key", libc::SYS_add_key, [0, 0, 0, 0, 0, 0], "null type"),
    inert("request_key", libc::SYS_request_key, [0, 0, 0, 0, 0, 0], "null type"),
    inert("kexec_load", libc::SYS_kexec_load, [0, 0, 0, ALL_FLAGS, 0, 0], "no such flag"),
    inert("init_module", libc::SYS_init_module, [0, 0, 0, 0, 0, 0], "an empty image"),
    inert("finit_module", libc::SYS_finit_module, [NO_FD, 0, 0, 0, 0, 0], "no descriptor"),
    inert("delete_module", libc::SYS_delete_module, [0, 0, 0, 0, 0, 0], "null name"),
    inert("reboot", libc::SYS_reboot, [0, 0, 0, 0, 0, 0], "without its magic numbers"),
    inert("swapon", libc::SYS_swapon, [DEAD, 0, 0, 0, 0, 0], "unreadable path"),
    inert("swapoff", libc::SYS_swapoff, [DEAD, 0, 0, 0, 0, 0], "unreadable path"),
    // A null path would turn accounting off; a dead one is only unreadable.
    inert("acct", libc::SYS_acct, [DEAD, 0, 0, 0, 0, 0], "unreadable path"),
    inert("quotactl", libc::SYS_quotactl, [ALL_FLAGS, 0, 0, 0, 0, 0], "no such quota type"),
    // SYSLOG_ACTION_SIZE_BUFFER.
    inert("syslog", libc::SYS_syslog, [10, 0, 0, 0, 0, 0], "asks for the buffer's size"),
    inert("settimeofday", libc::SYS_settimeofday, [0, 0, 0, 0, 0, 0], "neither time nor zone given"),
    inert("sethostname", libc::SYS_sethostname, [0, NO_FD, 0, 0, 0, 0], "a negative length"),
    inert("setdomainname", libc::SYS_setdomainname, [0, NO_FD, 0, 0, 0, 0], "a negative length"),
    inert("mount", libc::SYS_mount, [0, 0, 0, 0, 0, 0], "null target"),
    inert("umount2", libc::SYS_umount2, [DEAD, 0, 0, 0, 0, 0], "unreadable path"),
    inert("pivot_root", libc::SYS_pivot_root, [DEAD, DEAD, 0, 0, 0, 0], "unreadable paths"),
    inert("fsmount", libc::SYS_fsmount, [NO_FD, 0, 0, 0, 0, 0], "no descriptor"),
    inert("fspick", libc::SYS_fspick, [NO_FD, DEAD, 0, 0, 0, 0], "unreadable path"),
    inert("fsconfig", libc::SYS_fsconfig, [NO_FD, 0, 0, 0, 0, 0], "no descriptor"),
    inert("move_mount", libc::SYS_move_mount, [NO_FD, DEAD, NO_FD, DEAD, 0, 0], "unreadable paths"),
    // 32 is the size of the first `struct mount_attr`, so that the pointer is what fails.
    inert("mount_setattr", libc::SYS_mount_setattr, [NO_FD, DEAD, 0, DEAD, 32, 0], "unreadable path"),
    inert("memfd_secret", libc::SYS_memfd_secret, [ALL_FLAGS, 0, 0, 0, 0, 0], "no such flag"),
    inert("setns", libc::SYS_setns, [NO_FD, 0, 0, 0, 0, 0], "no descriptor"),
    #[cfg(target_arch = "x86_64")]
    inert("ioperm", libc::SYS_ioperm, [0x80, 1, 0, 0, 0, 0], "gives up a port that it has not"),
];

/// Makes the inert call of this name.
///
/// # Errors
/// What the call says; `ENOENT` for a name that isn't in [`INERT`].
pub fn inert_call(name: &str) -> Result<i64, Errno> {
    let call = INERT.iter().find(|call| call.name == name).ok_or(Errno::NOENT)?;
    let [a, b, c, d, e, f] = call.arguments;
    // SAFETY: number and arguments come from the table above. No entry holds a pointer that the kernel
    // could write through (null or never mapped), and none creates a descriptor or changes the process.
    outcome(unsafe { libc::syscall(call.number, a, b, c, d, e, f) })
}

/// A call that acts on another process, with arguments that leave it as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// `ptrace(PTRACE_SEIZE)`: traces without stopping; ends with the caller.
    PtraceSeize,
    /// `tgkill` with signal 0.
    Tgkill,
    /// `rt_sigqueueinfo` with signal 0 and a null payload.
    SignalQueue,
    /// `kcmp(KCMP_VM)` of the caller and the other.
    Kcmp,
    /// `prlimit64(RLIMIT_NOFILE)`, neither new nor old limit.
    Prlimit,
    /// `sched_setaffinity` with an unreadable mask.
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
    let (number, [a, b, c, d, e, f]) = match reach {
        Reach::PtraceSeize => (libc::SYS_ptrace, [0x4206, target, 0, 0, 0, 0]),
        Reach::Tgkill => (libc::SYS_tgkill, [target, target, 0, 0, 0, 0]),
        Reach::SignalQueue => (libc::SYS_rt_sigqueueinfo, [target, 0, DEAD, 0, 0, 0]),
        Reach::Kcmp => (libc::SYS_kcmp, [own, target, 1, 0, 0, 0]),
        Reach::Prlimit => (libc::SYS_prlimit64, [target, 7, 0, 0, 0, 0]),
        Reach::Affinity => (libc::SYS_sched_setaffinity, [target, 8, DEAD, 0, 0, 0]),
        Reach::Priority => (libc::SYS_setpriority, [0, target, 0, 0, 0, 0]),
        Reach::MovePages => (libc::SYS_move_pages, [target, 0, 0, 0, 0, 0]),
    };
    // SAFETY: scalars, null and never mapped pointers only; memory of this process can't be touched.
    outcome(unsafe { libc::syscall(number, a, b, c, d, e, f) })
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

/// A kind of namespace, for calls that try to make a new one. `namespaces(7)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the kernel's own nouns")]
pub enum Namespace {
    User,
    Mount,
    Pid,
    Net,
    Ipc,
    Uts,
    Cgroup,
    Time,
}

impl Namespace {
    const fn flag(self) -> usize {
        (match self {
            Self::User => libc::CLONE_NEWUSER,
            Self::Mount => libc::CLONE_NEWNS,
            Self::Pid => libc::CLONE_NEWPID,
            Self::Net => libc::CLONE_NEWNET,
            Self::Ipc => libc::CLONE_NEWIPC,
            Self::Uts => libc::CLONE_NEWUTS,
            Self::Cgroup => libc::CLONE_NEWCGROUP,
            Self::Time => libc::CLONE_NEWTIME,
        }) as usize
    }
}

/// Moves the caller into new namespaces. `unshare(2)`.
///
/// # Errors
/// What the call says.
pub fn unshare(namespaces: &[Namespace]) -> Result<(), Errno> {
    let flags = namespaces.iter().fold(0, |flags, namespace| flags | namespace.flag());
    // SAFETY: namespace flags alone: no memory and no descriptor table is unshared.
    outcome(unsafe { libc::syscall(libc::SYS_unshare, flags) }).map(drop)
}

/// Which call [`birth`] forks with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BirthCall {
    /// `clone(2)`: flags in a register, where a filter sees them.
    Clone,
    /// `clone3(2)`: flags in memory, which no filter can read.
    Clone3,
}

/// Forks a process into a new namespace; it ends at once.
///
/// # Errors
/// What the call says: `ENOSYS` for `clone3` under a filter that makes callers fall back to `clone`.
pub fn birth(call: BirthCall, namespace: Namespace) -> Result<(), Errno> {
    let (flags, signal) = (namespace.flag() as u64, libc::SIGCHLD as u64);
    // The first eight fields of `struct clone_args`: flags, pidfd, child_tid, parent_tid, exit_signal,
    // stack, stack_size, tls.
    let arguments: [u64; 8] = [flags, 0, 0, 0, signal, 0, 0, 0];
    // SAFETY: without CLONE_VM the child runs on a copy of this memory and stack, and does nothing but
    // leave by `_exit` below, so it can't meet a lock held by a thread it lacks.
    let pid = unsafe {
        match call {
            BirthCall::Clone => {
                libc::syscall(libc::SYS_clone, flags | signal, 0_usize, 0_usize, 0_usize, 0_usize)
            }
            BirthCall::Clone3 => libc::syscall(libc::SYS_clone3, arguments.as_ptr(), size_of_val(&arguments)),
        }
    };
    if pid == 0 {
        // SAFETY: async-signal-safe, never returns.
        unsafe { libc::_exit(0) };
    }
    let pid = outcome(pid)? as i32;
    // SAFETY: waits for that child; a null status pointer is allowed.
    unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    Ok(())
}

/// An `ioctl` request that would reach through a terminal to whoever else uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalRequest {
    /// `TIOCSTI`: type on the user's keyboard.
    PushInput,
    /// `TIOCSTI` with a bit set above the 32 that the kernel reads (CVE-2017-5226, CVE-2019-10063).
    PushInputHighBits,
    /// `TIOCLINUX`: paste the console's selection.
    PasteSelection,
    /// `TIOCCONS`: take the console's output.
    TakeConsole,
}

/// Makes a terminal request on a descriptor that isn't a terminal.
///
/// # Errors
/// `ENOTTY` when nothing but the descriptor stood in the way; `EPERM` or `EACCES` when it was refused.
pub fn terminal_request(fd: BorrowedFd<'_>, request: TerminalRequest) -> Result<i64, Errno> {
    let number: usize = match request {
        TerminalRequest::PushInput => libc::TIOCSTI as usize,
        TerminalRequest::PushInputHighBits => libc::TIOCSTI as usize | 1 << 32,
        TerminalRequest::PasteSelection => 0x541C,
        TerminalRequest::TakeConsole => 0x541D,
    };
    // SAFETY: the argument is a never mapped address, which the kernel can neither read nor write. A raw
    // call, since the C library would cut the request to 32 bits on some targets.
    outcome(unsafe { libc::syscall(libc::SYS_ioctl, fd.as_raw_fd(), number, DEAD) })
}

/// Types one byte into a terminal's input queue for real. `TIOCSTI` in `ioctl_tty(2)`.
///
/// # Errors
/// `EIO` where the kernel has `dev.tty.legacy_tiocsti` off, `EPERM` when it isn't the caller's
/// controlling terminal or a filter refuses.
pub fn push_input(fd: BorrowedFd<'_>, byte: u8) -> Result<(), Errno> {
    // SAFETY: the kernel reads one byte at the pointer, which is valid for the call.
    outcome(unsafe {
        libc::syscall(libc::SYS_ioctl, fd.as_raw_fd(), libc::TIOCSTI as usize, &raw const byte)
    })
    .map(drop)
}

/// A file's handle, by which it can be opened again without a path. `open_by_handle_at(2)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHandle {
    /// The file system's own kind of handle.
    pub kind: i32,
    /// What identifies the file within its file system; at most 128 bytes.
    pub bytes: Vec<u8>,
}

const HANDLE_MAX: usize = 128;

#[repr(C)]
struct RawHandle {
    length: u32,
    kind: i32,
    bytes: [u8; HANDLE_MAX],
}

/// The handle of the file at `path`, links not followed. `name_to_handle_at(2)`.
///
/// # Errors
/// `EOPNOTSUPP` where the file system has no handles; otherwise what the lookup says.
pub fn file_handle(path: &Path) -> Result<FileHandle, Errno> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
    let mut raw = RawHandle { length: HANDLE_MAX as u32, kind: 0, bytes: [0; HANDLE_MAX] };
    let mut mount = 0_i32;
    // SAFETY: `raw` has room for the length it states, `mount` for one int, and `path` ends in NUL.
    let done = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            path.as_ptr(),
            &raw mut raw,
            &raw mut mount,
            0,
        )
    };
    outcome(done)?;
    let length = (raw.length as usize).min(HANDLE_MAX);
    Ok(FileHandle { kind: raw.kind, bytes: raw.bytes[..length].to_vec() })
}

/// Opens the file of `handle` for reading, on the file system that `mount` is on.
///
/// # Errors
/// `EPERM` without `CAP_DAC_READ_SEARCH`, `ESTALE` when there is no such file, `EINVAL` for a handle of
/// more than 128 bytes.
pub fn open_by_handle(mount: BorrowedFd<'_>, handle: &FileHandle) -> Result<OwnedFd, Errno> {
    let mut raw = RawHandle { length: handle.bytes.len() as u32, kind: handle.kind, bytes: [0; HANDLE_MAX] };
    raw.bytes.get_mut(..handle.bytes.len()).ok_or(Errno::INVAL)?.copy_from_slice(&handle.bytes);
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: `raw` states the length of its valid part; the kernel only reads it.
    let fd = unsafe { libc::syscall(libc::SYS_open_by_handle_at, mount.as_raw_fd(), &raw mut raw, flags) };
    let fd = outcome(fd)? as i32;
    // SAFETY: a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets the execution domain and gives back the one before. `personality(2)`.
///
/// # Errors
/// What the call says.
pub fn personality(persona: u32) -> Result<u32, Errno> {
    // SAFETY: no pointers; it changes how later `execve` and `mmap` calls of this process lay out memory.
    outcome(unsafe { libc::syscall(libc::SYS_personality, persona as usize) }).map(|before| before as u32)
}

/// `getpid` by its x32 number: the 64-bit entry with bit 30 set.
///
/// # Errors
/// `ENOSYS` where the kernel has no x32 or a filter hides it.
#[cfg(target_arch = "x86_64")]
pub fn getpid_x32() -> Result<i64, Errno> {
    // SAFETY: takes no arguments and has no effect.
    outcome(unsafe { libc::syscall(0x4000_0000 | libc::SYS_getpid) })
}

/// `getpid` by the 32-bit entry, `int 0x80`, whose numbers differ from the 64-bit ones.
///
/// A kernel without 32-bit emulation ends the process with `SIGSEGV`.
///
/// # Errors
/// What a filter answers.
#[cfg(target_arch = "x86_64")]
pub fn getpid_int80() -> Result<i64, Errno> {
    let mut result: i64 = 20;
    // SAFETY: 32-bit call 20 is getpid, without arguments or effect. The entry may clear r8 to r11.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("rax") result,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
        );
    }
    let result = i64::from(result as i32);
    if (-4095..0).contains(&result) { Err(Errno::from_raw_os_error(-result as i32)) } else { Ok(result) }
}

fn outcome(result: libc::c_long) -> Result<i64, Errno> {
    if result == -1 {
        return Err(Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)));
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_inert_calls_are_unique() {
        let mut names: Vec<_> = INERT.iter().map(|call| call.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), INERT.len());
    }

    #[test]
    fn no_inert_call_can_succeed_for_its_effect() {
        // All but these three fail on their arguments whoever makes them; these three succeed at nothing.
        let succeed_at_nothing = ["syslog", "settimeofday", "ioperm"];
        for call in INERT {
            let result = inert_call(call.name);
            assert!(result.is_err() || succeed_at_nothing.contains(&call.name), "{}: {result:?}", call.name);
        }
    }

    #[test]
    fn memory_of_another_process_can_be_told_from_none() {
        let mut buffer = [0; 8];
        assert_eq!(read_process_memory(std::process::id() as i32, DEAD, &mut buffer), Err(Errno::FAULT));
        assert_eq!(read_process_memory(i32::MAX, DEAD, &mut buffer), Err(Errno::SRCH));
        assert_eq!(write_process_memory(std::process::id() as i32, DEAD, &buffer), Err(Errno::INVAL));
    }

    #[test]
    fn a_pipe_is_no_terminal() {
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        let fd = std::os::fd::AsFd::as_fd(&reader);
        assert_eq!(terminal_request(fd, TerminalRequest::PushInput), Err(Errno::NOTTY));
        assert_eq!(terminal_request(fd, TerminalRequest::PushInputHighBits), Err(Errno::NOTTY));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_two_entries_agree_on_the_process_id() {
        assert_eq!(getpid_int80(), Ok(i64::from(std::process::id())));
    }
}
