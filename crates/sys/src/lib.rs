//! Kernel interfaces that `rustix` and `landlock` lack.
//!
//! This is the only crate of the project with unsafe code. Each function is a thin, safe wrapper over
//! one system call, says why no safe crate offers it, and leaves every decision to its caller.

mod clone;
mod exec;
mod mount;
mod notify;
pub mod probe;
mod process;
mod seccomp;
mod signal;

pub use clone::{Cloned, Namespaces, NoReturn, clone_process, exit_now, fork};
pub use exec::{Program, execve};
pub use mount::{MountAttributes, mount_setattr};
pub use notify::{Listener, Notification, install_supervised_filter, read_memory};
pub use process::{Usage, children_usage, close_all, close_all_but, close_on_exec_from};
pub use rustix::io::Errno;
pub use seccomp::{Instruction, install_filter, landlock_abi};
pub use signal::{Alarm, SignalFd, block_signals, restore_default_signals, signal_everybody};

/// System call numbers and constants of the architecture this is compiled for, by their kernel names.
#[expect(non_upper_case_globals, missing_docs, reason = "the kernel's own names")]
pub mod nr {
    pub use libc::*;

    // Numbers that libc does not have yet. Calls since Linux 5.1 have the same one everywhere.
    pub const SYS_cachestat: c_long = 451;
    pub const SYS_map_shadow_stack: c_long = 453;
    pub const SYS_futex_wake: c_long = 454;
    pub const SYS_futex_wait: c_long = 455;
    pub const SYS_futex_requeue: c_long = 456;
    #[cfg(target_arch = "x86_64")]
    pub const SYS_io_pgetevents: c_long = 333;
    #[cfg(target_arch = "aarch64")]
    pub const SYS_io_pgetevents: c_long = 292;
}
