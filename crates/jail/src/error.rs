use std::fmt;
use std::path::PathBuf;

use redoma_sys::Errno;
use serde::{Deserialize, Serialize};

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum JailError {
    /// A step of building it failed inside.
    #[error("cannot {0}")]
    Step(#[from] Failure),
    /// The first process could not be made.
    #[error("cannot create the sandbox's namespaces: {0}")]
    Clone(Errno),
    /// A kernel object for talking to init could not be made.
    #[error("cannot set up the channel to the sandbox: {0}")]
    Channel(Errno),
    /// Init is gone or said something that makes no sense.
    #[error("the sandbox ended while it was being used")]
    Gone,
    /// The policy asks for something that this tier cannot enforce.
    #[error("the {tier} tier cannot {what}")]
    Tier {
        /// Name of the tier.
        tier: &'static str,
        /// What it cannot do, with the path.
        what: String,
        /// What to do instead.
        hint: String,
    },
    /// Limits could not be set.
    #[error("cannot limit {what}: {why}")]
    Limit {
        /// The limit's name in the policy.
        what: &'static str,
        /// The reason.
        why: String,
    },
}

impl JailError {
    /// What the user can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Tier { hint, .. } => hint.clone(),
            Self::Limit { .. } => {
                "to go on without it, write `strict = false` under `[limits]` in your own policy, ~/.config/redoma/policy.toml".into()
            }
            Self::Step(failure) if failure.step == Step::Redirect => {
                "load the kernel's modules with `sudo modprobe -a nf_tables nft_chain_nat nft_redir`, or go without a network: `--net none`".into()
            }
            Self::Step(failure) if failure.step == Step::Listen && failure.errno() == Errno::ADDRINUSE => {
                "two ports of the policy's network are the same: choose another one".into()
            }
            Self::Step(failure) if failure.errno() == Errno::NOENT && failure.path.is_some() => {
                "it was there a moment ago: run the command again".into()
            }
            Self::Step(failure) if failure.step == Step::Supervise && failure.errno() == Errno::BUSY => {
                "whatever runs this container answers its system calls, and only one can: use `--tier full`"
                    .into()
            }
            _ => "run `redoma doctor`: it tells what this machine lacks and how to get it".into(),
        }
    }
}

/// A failed step on the way to a running command, told by init.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What was being done.
    pub step: Step,
    /// With which file, if any.
    pub path: Option<PathBuf>,
    errno: i32,
}

impl Failure {
    /// `step` met `errno`.
    pub fn new(step: Step, errno: Errno) -> Self {
        Self { step, path: None, errno: errno.raw_os_error() }
    }

    /// `step` met `errno` at `path`.
    pub fn at(step: Step, path: impl Into<PathBuf>, errno: Errno) -> Self {
        Self { path: Some(path.into()), ..Self::new(step, errno) }
    }

    /// The kernel's answer.
    pub fn errno(&self) -> Errno {
        Errno::from_raw_os_error(self.errno)
    }
}

impl std::error::Error for Failure {}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.step.verb())?;
        if let Some(path) = &self.path {
            write!(f, " {path:?}")?;
        }
        if self.step == Step::Canary { Ok(()) } else { write!(f, ": {}", self.errno()) }
    }
}

/// What init does, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the verbs below say it")]
pub enum Step {
    Guard,
    MapUser,
    DetachMounts,
    OpenHostPath,
    Overlay,
    NewRoot,
    EnterRoot,
    Place,
    Create,
    Loopback,
    Route,
    Listen,
    Redirect,
    Rlimit,
    ForbidNested,
    ShareWatches,
    NoNewPrivileges,
    DropCapabilities,
    Landlock,
    Seccomp,
    Supervise,
    Canary,
    Terminal,
    Fork,
    Stdio,
    Folder,
    Program,
    Dial,
}

impl Step {
    fn verb(self) -> &'static str {
        match self {
            Self::Guard => "tie the sandbox's life to its keeper",
            Self::MapUser => "map the user into the new user namespace",
            Self::DetachMounts => "make the mounts private",
            Self::OpenHostPath => "open the granted path",
            Self::Overlay => "lay the workspace's overlay over",
            Self::NewRoot => "make the new root file system",
            Self::EnterRoot => "enter the new root file system",
            Self::Place => "mount",
            Self::Create => "create a mount point for",
            Self::Loopback => "bring up the loopback interface",
            Self::Route => "route all addresses to the gateway",
            Self::Listen => "open the gateway's socket inside",
            Self::Redirect => "redirect connections to the gateway (nf_tables)",
            Self::Rlimit => "set a resource limit",
            Self::ShareWatches => "limit the watches of commands",
            Self::ForbidNested => "forbid nested user namespaces",
            Self::NoNewPrivileges => "set no_new_privs",
            Self::DropCapabilities => "drop capabilities",
            Self::Landlock => "enforce the Landlock rules",
            Self::Seccomp => "install the system-call filter",
            Self::Supervise => "have system calls answered by init",
            Self::Canary => "start: the canary got through to",
            Self::Terminal => "make a terminal",
            Self::Fork => "start a process",
            Self::Stdio => "connect standard input and output",
            Self::Folder => "enter the working folder",
            Self::Program => "run",
            Self::Dial => "connect into the sandbox to",
        }
    }
}

/// Attaches the step, and the path if there is one, to a system call's error.
pub(crate) trait InStep<T> {
    fn step(self, step: Step) -> Result<T, Failure>;
    fn step_at(self, step: Step, path: impl Into<PathBuf>) -> Result<T, Failure>;
}

impl<T> InStep<T> for Result<T, Errno> {
    fn step(self, step: Step) -> Result<T, Failure> {
        self.map_err(|errno| Failure::new(step, errno))
    }

    fn step_at(self, step: Step, path: impl Into<PathBuf>) -> Result<T, Failure> {
        self.map_err(|errno| Failure::at(step, path, errno))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_redirection_is_told_apart_from_a_path_that_is_gone() {
        let error = JailError::from(Failure::new(Step::Redirect, Errno::NOENT));
        assert!(error.to_string().starts_with("cannot redirect connections to the gateway"), "{error}");
        assert!(error.hint().contains("modprobe -a nf_tables"), "{}", error.hint());
    }
}
