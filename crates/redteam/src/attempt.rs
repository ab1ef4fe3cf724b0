use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use crate::errno;
use crate::plant::Planted;
use crate::stage::Stage;

/// One thing an attacker inside tries.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Attempt {
    /// Kebab-case and unique: what reports and `--attempt` call it.
    pub name: &'static str,
    /// The part of the threat list it belongs to.
    pub section: Section,
    /// What is tried, in one line.
    pub what: &'static str,
    /// Tries it. Runs inside.
    pub run: fn(&Stage) -> Outcome,
    /// Whether it may run on a user's own machine: it can break nothing even where it succeeds.
    pub harmless: bool,
    /// The tiers that promise to stop it.
    pub tiers: &'static [Tier],
    /// Where the same action is seen to succeed.
    pub twin: Twin,
    /// Who says whether it succeeded.
    pub judge: Judge,
    /// The limit it runs against: lines for the policy's `[limits]`.
    pub limits: &'static str,
    /// Whether it may be ended by a fault where the kernel lacks what it needs.
    pub(crate) may_fault: bool,
}

/// Exit codes of `redoma run` beside the command's own: the time limit, and a signal's number more than this.
const TIMED_OUT: i32 = 124;
const SIGNALED: i32 = 128;

const SIGKILL: i32 = rustix::process::Signal::KILL.as_raw();
const SIGSEGV: i32 = rustix::process::Signal::SEGV.as_raw();
const SIGSYS: i32 = rustix::process::Signal::SYS.as_raw();

/// A section of the threat list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the titles of the threat list")]
pub enum Section {
    Files,
    Processes,
    Kernel,
    Limits,
    NetworkNone,
}

/// What the kernel can enforce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// Namespaces, Landlock and seccomp.
    Full,
    /// Landlock and seccomp.
    Landlock,
}

impl Tier {
    pub(crate) const ALL: &'static [Self] = &[Self::Full, Self::Landlock];
    pub(crate) const FULL: &'static [Self] = &[Self::Full];
}

/// For whom an attempt succeeds when no sandbox is around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Twin {
    /// Who must be running it.
    pub who: Who,
    /// Whether a kernel may be built or set up without what it needs. Such a kernel's answer is shown as
    /// "not here" and never as a pass.
    pub optional: bool,
}

/// Who sees the twin succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Any user.
    Anyone,
    /// Root alone.
    Root,
    /// Any user, or root alone where this setting of the kernel isn't 0: a path in `/proc/sys`.
    AnyoneUnless(&'static str),
}

/// Who says whether an attempt succeeded.
#[derive(Clone, Copy)]
pub enum Judge {
    /// The attempt itself, by what it got.
    Inside,
    /// A look at the planted things from outside, after the session: what happened inside may have
    /// happened to something private. `Some` is the evidence of success.
    Outside(fn(&Planted) -> Option<String>),
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It got nothing.
    Stopped {
        /// The errno's name, or a description.
        by: String,
    },
    /// It got what it wanted.
    Succeeded {
        /// What shows it.
        evidence: String,
    },
}

// === impl Attempt ===

impl Attempt {
    /// A harmless attempt, stopped in every tier, that succeeds for anyone outside and judges itself.
    pub(crate) const fn new(
        section: Section,
        name: &'static str,
        what: &'static str,
        run: fn(&Stage) -> Outcome,
    ) -> Self {
        Self {
            name,
            section,
            what,
            run,
            harmless: true,
            tiers: Tier::ALL,
            twin: Twin { who: Who::Anyone, optional: false },
            judge: Judge::Inside,
            limits: "",
            may_fault: false,
        }
    }

    /// Only root can do this outside.
    pub(crate) const fn root(mut self) -> Self {
        self.twin.who = Who::Root;
        self
    }

    /// Only root can do this outside where `setting` is on.
    pub(crate) const fn unless(mut self, setting: &'static str) -> Self {
        self.twin.who = Who::AnyoneUnless(setting);
        self
    }

    /// Not every kernel has what this needs.
    pub(crate) const fn optional(mut self) -> Self {
        self.twin.optional = true;
        self
    }

    /// Where it succeeds it may use the machine up or leave something behind.
    pub(crate) const fn harmful(mut self) -> Self {
        self.harmless = false;
        self
    }

    /// Needs mounts or namespaces to be stopped.
    pub(crate) const fn full_only(mut self) -> Self {
        self.tiers = Tier::FULL;
        self
    }

    /// Counts only if something changed on the host: inside, it may have happened to something private.
    pub(crate) const fn on_host(self) -> Self {
        self.judged(|_| None)
    }

    pub(crate) const fn judged(mut self, judge: fn(&Planted) -> Option<String>) -> Self {
        self.judge = Judge::Outside(judge);
        self
    }

    pub(crate) const fn under(mut self, limits: &'static str) -> Self {
        self.limits = limits;
        self
    }

    /// A fault instead of an answer is how a kernel says that it lacks what this needs.
    pub(crate) const fn may_fault(mut self) -> Self {
        self.may_fault = true;
        self
    }

    /// What a run's exit code says of an attempt that did not report. `None` unless it is the boundary's doing: what
    /// merely broke on the way was not stopped.
    #[must_use]
    pub fn stopped_by_end(&self, code: i32) -> Option<Outcome> {
        let by = match code - SIGNALED {
            _ if code == TIMED_OUT && self.limits.contains("time") => "the time limit",
            SIGKILL => "SIGKILL",
            SIGSYS => "SIGSYS",
            SIGSEGV if self.may_fault => "SIGSEGV",
            _ => return None,
        };
        Some(Outcome::Stopped { by: by.to_owned() })
    }
}

impl fmt::Debug for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Attempt").field(&self.name).finish()
    }
}

// === impl Who ===

/// Restricts tracing to a process's own children. `Yama.rst`.
pub(crate) const YAMA: &str = "/proc/sys/kernel/yama/ptrace_scope";
/// Leaves a new user namespace without privileges, in Ubuntu's kernels.
pub(crate) const APPARMOR_NAMESPACES: &str = "/proc/sys/kernel/apparmor_restrict_unprivileged_userns";
/// Closes `io_uring` to all but a group.
pub(crate) const NO_IO_URING: &str = "/proc/sys/kernel/io_uring_disabled";

impl Who {
    /// Whether the caller is among them on this machine.
    pub fn includes_caller(self) -> bool {
        let root = rustix::process::geteuid().is_root();
        match self {
            Self::Anyone => true,
            Self::Root => root,
            Self::AnyoneUnless(setting) => {
                root || std::fs::read_to_string(setting).map_or(true, |value| value.trim() == "0")
            }
        }
    }
}

// === impl Outcome ===

impl Outcome {
    pub(crate) fn stopped(by: impl Into<String>) -> Self {
        Self::Stopped { by: by.into() }
    }

    pub(crate) fn succeeded(evidence: impl Into<String>) -> Self {
        Self::Succeeded { evidence: evidence.into() }
    }

    /// Success when the operation did, else stopped by its errno.
    pub(crate) fn of<T, E: Into<io::Error>>(result: Result<T, E>, evidence: &str) -> Self {
        match result {
            Ok(_) => Self::succeeded(evidence),
            Err(error) => Self::refused(error),
        }
    }

    /// Stopped by the errno of `error`.
    pub(crate) fn refused(error: impl Into<io::Error>) -> Self {
        Self::stopped(errno::name(&error.into()))
    }

    /// For a call made with inert arguments: whether the kernel was let look at it.
    pub(crate) fn of_inert<T, E: Into<io::Error>>(result: Result<T, E>) -> Self {
        match result {
            Ok(_) => Self::succeeded("the kernel did it"),
            Err(error) => {
                let error = error.into();
                if errno::is_refusal(&error) {
                    Self::refused(error)
                } else {
                    Self::succeeded(format!("the kernel took the call: {}", errno::name(&error)))
                }
            }
        }
    }

    /// For a call that takes a process's number: that there is no such process isn't the call's doing.
    pub(crate) fn unless_gone(self) -> Self {
        match self {
            Self::Succeeded { evidence } if evidence.ends_with("ESRCH") => Self::stopped("ESRCH"),
            other => other,
        }
    }

    /// The first success, or the last that stopped it.
    pub(crate) fn any(outcomes: impl IntoIterator<Item = Self>) -> Self {
        let mut last = Self::stopped("nothing to try");
        for outcome in outcomes {
            if outcome.is_success() {
                return outcome;
            }
            last = outcome;
        }
        last
    }

    /// Whether the attacker got what it wanted.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Succeeded { .. })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped { by } => write!(f, "stopped by {by}"),
            Self::Succeeded { evidence } => write!(f, "SUCCEEDED: {evidence}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Attempt =
        Attempt::new(Section::Kernel, "plain", "", |_| Outcome::of(Ok::<_, io::Error>(()), ""));

    #[test]
    fn only_what_the_boundary_does_counts_as_stopped() {
        let by = |attempt: Attempt, code| match attempt.stopped_by_end(code) {
            Some(Outcome::Stopped { by }) => Some(by),
            _ => None,
        };
        assert_eq!(by(PLAIN, 137).as_deref(), Some("SIGKILL"));
        assert_eq!(by(PLAIN, 159).as_deref(), Some("SIGSYS"));
        assert_eq!(by(PLAIN.under("time = '1s'"), 124).as_deref(), Some("the time limit"));
        assert_eq!(by(PLAIN.may_fault(), 139).as_deref(), Some("SIGSEGV"));
        // An abort, a fault, a broken pipe, no boundary, a time limit that nobody set.
        for code in [0, 1, 124, 125, 127, 129, 134, 139, 141] {
            assert_eq!(by(PLAIN, code), None, "{code}");
        }
    }
}
