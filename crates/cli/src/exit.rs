//! Exit codes: they are part of the interface.

use std::process::ExitCode;

/// How the process ends. Codes of `run` follow env(1), timeout(1) and the shell's 128+N.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit(u8);

impl Exit {
    /// It worked.
    pub(crate) const OK: Self = Self(0);
    /// It did not work, or the answer is no.
    pub(crate) const FAILED: Self = Self(1);
    /// No boundary could be built or the policy is not usable: nothing was started.
    pub(crate) const NO_BOUNDARY: Self = Self(125);

    /// The code of the command that ran, or of `run` itself. The kernel keeps eight bits (exit(3)); what has more
    /// counts as a failure.
    pub(crate) fn of_command(code: i32) -> Self {
        Self(u8::try_from(code).unwrap_or(u8::MAX))
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}
