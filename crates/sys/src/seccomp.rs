use rustix::io::Errno;

use crate::clone::last_error;

/// One instruction of a classic BPF program, laid out as `struct sock_filter`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Operation.
    pub code: u16,
    /// Instructions to skip when the condition holds.
    pub jt: u8,
    /// Instructions to skip when it does not.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// Puts `program` in front of every later system call of this process, for good. See `seccomp(2)`.
///
/// # Errors
/// `EACCES` without `no_new_privs`, `EINVAL` for a program that the kernel's checker refuses or one of more
/// than 65,535 instructions.
///
/// No safe crate has this: `seccompiler` installs only the programs that it compiled itself.
pub fn install_filter(program: &[Instruction]) -> Result<(), Errno> {
    set_filter(program, 0).map(drop)
}

/// See `SECCOMP_SET_MODE_FILTER` in `seccomp(2)`.
pub(crate) fn set_filter(program: &[Instruction], flags: libc::c_ulong) -> Result<libc::c_long, Errno> {
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| Errno::INVAL)?,
        filter: program.as_ptr().cast_mut().cast(),
    };
    // SAFETY: `filter` points to `len` instructions laid out as the kernel's own; the kernel copies and
    // checks them before use and never writes to them.
    let done =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const filter) };
    if done < 0 { Err(last_error()) } else { Ok(done) }
}

/// Version of Landlock's interface, 0 where there is none. See `landlock_create_ruleset(2)`.
///
/// No safe crate has this: `landlock` keeps the number to itself.
pub fn landlock_abi() -> u32 {
    const LANDLOCK_CREATE_RULESET_VERSION: u32 = 1;
    // SAFETY: with this flag the kernel takes no attributes and makes no ruleset.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0usize,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(version).unwrap_or(0)
}
