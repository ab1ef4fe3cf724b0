use std::fmt;

use serde::{Deserialize, Serialize};

/// A limit of the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Processor time per time.
    Cpus,
    /// Memory, swap included.
    Memory,
    /// Processes and threads.
    Pids,
    /// Space in private folders.
    Disk,
    /// Time on the wall clock.
    Time,
}

/// What enforces a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// `cgroups(7)`, version 2.
    Cgroup2,
    /// `cgroups(7)`, version 1.
    Cgroup1,
    /// `setrlimit(2)`.
    Rlimit,
    /// The keeper's clock.
    Timer,
    /// The size of file systems in memory.
    Tmpfs,
    /// It is not enforced.
    Nothing,
}

/// What became of a limit that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforced {
    /// Which.
    pub limit: Limit,
    /// Bytes, processes, microseconds, or thousandths of a processor.
    pub value: u64,
    /// What enforces it.
    pub by: By,
    /// In which way it can be passed, or why nothing enforces it. Without one the limit holds.
    pub caveat: Option<String>,
}

/// A limit that was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// Which.
    pub limit: Limit,
    /// The limit, in the unit of [`Enforced::value`].
    pub value: u64,
    /// How often.
    pub times: u64,
    /// What it led to.
    pub action: Action,
    /// What enforced it.
    pub by: By,
}

/// What reaching a limit led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A call failed, such as `fork(2)` with `EAGAIN`.
    Refused,
    /// Everything inside had to wait.
    Throttled,
    /// The kernel killed a process.
    Killed,
}

/// The most that was used at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peak {
    /// Bytes of memory.
    pub memory: Option<u64>,
    /// Processes and threads, init among them.
    pub pids: Option<u64>,
}

impl Limit {
    /// Its name in the policy.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpus => "cpus",
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Disk => "disk",
            Self::Time => "time",
        }
    }

    /// The kernel's name of the controller, where there is one.
    pub(super) fn controller(self) -> Option<&'static str> {
        match self {
            Self::Cpus => Some("cpu"),
            Self::Memory => Some("memory"),
            Self::Pids => Some("pids"),
            Self::Disk | Self::Time => None,
        }
    }
}

impl Peak {
    pub(super) fn or(self, other: Self) -> Self {
        Self { memory: self.memory.or(other.memory), pids: self.pids.or(other.pids) }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cgroup2 => "cgroup2",
            Self::Cgroup1 => "cgroup1",
            Self::Rlimit => "rlimit",
            Self::Timer => "timer",
            Self::Tmpfs => "tmpfs",
            Self::Nothing => "nothing",
        })
    }
}
