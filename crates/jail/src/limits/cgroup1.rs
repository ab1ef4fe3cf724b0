//! Version 1: a cgroup of ours below the caller's own, in the hierarchy of each controller. See the kernel's
//! `admin-guide/cgroup-v1`.
//!
//! Below the caller's own, so that whatever limits the caller limits the sandbox as well.

use std::path::Path;

use super::group::{Group, Version, keyed, number};
use super::report::{Action, Limit};
use super::rlimit::INIT;

/// A quota is given per this many microseconds, the kernel's default.
pub(super) const PERIOD: u64 = 100_000;

/// The least quota that the kernel takes, in microseconds.
const LEAST_QUOTA: u64 = 1000;

/// A cgroup in the hierarchy where the caller stands at `own`.
pub(super) fn draw(own: &Path, session: &str) -> Group {
    Group::new(Version::One, own, session)
}

/// Adds what sets `limit`.
pub(super) fn set(group: &mut Group, own: &Path, limit: Limit, value: u64) {
    group.limits.push((limit, value));
    match limit {
        Limit::Cpus => {
            let own = quota_of(own).unwrap_or(u64::MAX);
            group.set("cpu.cfs_period_us", &PERIOD, limit, false);
            group.set("cpu.cfs_quota_us", &quota(value).min(own), limit, false);
        }
        // In this order: the sum with swap must never be below that without.
        Limit::Memory => {
            group.set("memory.limit_in_bytes", &value, limit, false);
            group.set("memory.memsw.limit_in_bytes", &value, limit, true);
        }
        Limit::Pids => group.set("pids.max", &value.saturating_add(INIT), limit, false),
        Limit::Disk | Limit::Time => {}
    }
}

/// How often a limit was reached.
pub(super) fn reached(folder: &Path, limit: Limit) -> Option<(u64, Action)> {
    let read = |name: &str, key: &str| keyed(&folder.join(name), key);
    match limit {
        Limit::Cpus => Some((read("cpu.stat", "nr_throttled")?, Action::Throttled)),
        Limit::Memory => Some((read("memory.oom_control", "oom_kill")?, Action::Killed)),
        Limit::Pids => Some((read("pids.events", "max")?, Action::Refused)),
        Limit::Disk | Limit::Time => None,
    }
}

/// Thousandths of a processor as microseconds per [`PERIOD`].
pub(super) fn quota(milli: u64) -> u64 {
    milli.saturating_mul(PERIOD / 1000).max(LEAST_QUOTA)
}

/// The caller's own quota, which the kernel lets nothing below exceed, per [`PERIOD`].
fn quota_of(own: &Path) -> Option<u64> {
    let quota = number(&own.join("cpu.cfs_quota_us"))?;
    let period = number(&own.join("cpu.cfs_period_us")).filter(|period| *period > 0)?;
    Some((quota * PERIOD / period).max(LEAST_QUOTA))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_stays_within_that_of_the_caller() {
        let own = tempfile::tempdir().unwrap();
        let written = |milli| {
            let mut group = draw(own.path(), "x");
            set(&mut group, own.path(), Limit::Cpus, milli);
            group.settings[1].value.clone()
        };
        std::fs::write(own.path().join("cpu.cfs_quota_us"), "-1\n").unwrap();
        std::fs::write(own.path().join("cpu.cfs_period_us"), "50000\n").unwrap();
        assert_eq!(written(1500), "150000");
        assert_eq!(written(1), "1000");
        std::fs::write(own.path().join("cpu.cfs_quota_us"), "25000\n").unwrap();
        assert_eq!(written(1500), "50000");
        assert_eq!(written(200), "20000");
    }
}
