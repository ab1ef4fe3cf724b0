//! System calls made only to see whether something refuses them.
//!
//! A closed list: the caller picks an entry and can't choose a call number or a pointer. Arguments are
//! such that the kernel changes nothing: null or dead pointers, descriptors that aren't open, flags that
//! don't exist. What comes back then tells who answered. `EPERM`, `EACCES` and `ENOSYS` come from a filter,
//! a missing capability or a kernel without the call; `EFAULT`, `EINVAL`, `EBADF` and success mean that the
//! call was let through and looked at. The few that do change something change only the file that they name.
//!
//! No safe crate offers this: `rustix` has safe signatures, which rule such arguments out on purpose.

mod attributes;
mod birth;
mod inert;
mod object;
mod option;
mod reach;

use rustix::io::Errno;

pub use attributes::chmod_with_flags;
#[cfg(target_arch = "x86_64")]
pub use attributes::{OldTimes, set_old_times};
pub use birth::{BirthCall, Namespace, birth, personality, unshare};
#[cfg(target_arch = "x86_64")]
pub use birth::{getpid_int80, getpid_x32};
pub use inert::{INERT, Inert, inert_call};
pub use object::{
    FileHandle, HighBits, TerminalRequest, file_handle, open_by_handle, push_input, socket_high_bits,
    terminal_request,
};
pub use option::{Detour, set_detour};
pub use reach::{
    Reach, SharedMemory, limit_open_files, reach, read_process_memory, set_signal_owner, write_process_memory,
};

/// An address that is never mapped: inside the first page, below any `vm.mmap_min_addr`.
const DEAD: usize = 1;

fn outcome(result: libc::c_long) -> Result<i64, Errno> {
    if result == -1 {
        return Err(Errno::from_raw_os_error(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)));
    }
    Ok(result)
}
