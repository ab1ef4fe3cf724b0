use rustix::io::Errno;

use super::outcome;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_two_entries_agree_on_the_process_id() {
        assert_eq!(getpid_int80(), Ok(i64::from(std::process::id())));
    }
}
