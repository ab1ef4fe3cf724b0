//! Kernel interfaces that `rustix` and `landlock` lack.
//!
//! This is the only crate of the project with unsafe code. Each function is a thin, safe wrapper over
//! one system call, says why no safe crate offers it, and leaves every decision to its caller.

mod clone;
mod exec;
mod mount;
pub mod probe;
mod seccomp;
mod signal;

pub use clone::{Cloned, Namespaces, clone_process, exit_now};
pub use exec::{Program, execve};
pub use mount::{MountAttributes, mount_setattr};
pub use rustix::io::Errno;
pub use seccomp::{Instruction, install_filter};
pub use signal::{SignalFd, block_signals, restore_default_signals};

/// System call numbers of the architecture this is compiled for, by their kernel names.
pub mod nr {
    pub use libc::*;
}
