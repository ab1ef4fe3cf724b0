use std::ffi::{CStr, CString, c_char};
use std::ptr;

use rustix::io::Errno;

use crate::clone::last_error;

/// Arguments and environment laid out as `execve(2)` wants them, made before the fork so that the child
/// allocates nothing.
#[derive(Debug)]
pub struct Program {
    argv: Strings,
    envp: Strings,
}

impl Program {
    /// Takes `argv` (the name first) and `envp` (`NAME=value` each).
    pub fn new(argv: Vec<CString>, envp: Vec<CString>) -> Self {
        Self { argv: Strings::new(argv), envp: Strings::new(envp) }
    }

    /// The same environment with `prefix` put before the arguments after the first, as a shell does for a
    /// script without `#!`: `sh PATH ARGS…`.
    pub fn behind(&self, prefix: [CString; 2]) -> Self {
        let mut argv = Vec::from(prefix);
        argv.extend(self.argv.owned.iter().skip(1).cloned());
        Self::new(argv, self.envp.owned.clone())
    }
}

/// A null-terminated array of pointers into strings it keeps alive.
#[derive(Debug)]
struct Strings {
    owned: Vec<CString>,
    pointers: Vec<*const c_char>,
}

impl Strings {
    fn new(owned: Vec<CString>) -> Self {
        let pointers = owned.iter().map(|string| string.as_ptr()).chain([ptr::null()]).collect();
        Self { owned, pointers }
    }
}

/// Replaces this process by the program at `path`. Returns only on failure, with the reason.
///
/// No safe crate has this: `std` offers it only bundled with its own search, environment and fork.
pub fn execve(path: &CStr, program: &Program) -> Errno {
    // SAFETY: the path is a C string; both arrays end in null and point to C strings that `program` owns.
    unsafe {
        libc::execve(path.as_ptr(), program.argv.pointers.as_ptr(), program.envp.pointers.as_ptr());
    }
    last_error()
}
