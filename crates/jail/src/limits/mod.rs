//! Limits on what a session may use, by the surest means that the kernel here gives this user.
//!
//! The surest is a cgroup of the session's own: version 2 where it is delegated to the user or the user is root,
//! version 1 as root. Without one, rlimits do what they can, and [`Enforced`] says in words what they cannot. Nothing
//! is probed and nothing is made for a limit that nobody asked for.
//!
//! What is made is cleared away by a [janitor](janitor::Janitor), so that it goes even when the keeper is killed.

mod cgroup1;
mod cgroup2;
mod claim;
mod clear;
mod group;
mod hierarchy;
mod janitor;
mod leftovers;
mod plan;
mod report;
mod rlimit;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use redoma_policy::Tier;
use rustix::process::{Pid, Resource};

use crate::JailError;
use group::Group;
use janitor::Janitor;
use plan::Plan;

pub use claim::Claim;
pub use leftovers::{Leftover, LeftoverKind, gc};
pub use report::{Action, By, Enforced, Hit, Limit, Peak};

/// How a folder that commands could write into is removed with all that is in it, following nothing.
pub type Remove = fn(&Path) -> io::Result<()>;

/// The limits that a policy asks for. `None` is no limit of ours.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Processor time per time: 1.5 is one and a half processors.
    pub cpus: Option<f64>,
    /// Bytes of memory, swap included.
    pub memory: Option<u64>,
    /// Processes and threads alive at once, init not counted.
    pub pids: Option<u32>,
    /// Bytes in private folders. Enforced by the size of their file systems: `Blueprint::private_bytes`.
    pub disk: Option<u64>,
    /// From start to end. Enforced by the keeper.
    pub time: Option<Duration>,
    /// Refuse to start where one of them would not hold.
    pub strict: bool,
}

/// Folders that must not outlive the session, and how they are removed.
#[derive(Clone, Debug)]
pub struct Scraps {
    /// Absolute paths; they need not exist yet.
    pub folders: Vec<PathBuf>,
    /// How.
    pub remove: Remove,
}

/// The limits of one session. Dropping it ends what runs under them and clears away what was made for them.
#[derive(Debug)]
pub struct Limits {
    enforced: Vec<Enforced>,
    rlimits: Vec<(Resource, u64)>,
    groups: Vec<Group>,
    scraps: Option<Scraps>,
    janitor: Option<Janitor>,
}

impl Limits {
    /// Makes what the limits need, before the sandbox is started. `session` names the cgroups: `redoma-<session>`.
    ///
    /// Where there is something to clear away (a cgroup, or `scraps`), or to `finish`, this forks the janitor, so the
    /// caller must have one thread. Without any of them it does nothing at all.
    ///
    /// The janitor calls `finish` last, in a copy of this process: when the keeper is gone, however that came about.
    ///
    /// # Errors
    /// [`JailError::Limit`] for a limit that would not hold while `strict` is set, or when the janitor can't be forked.
    pub fn prepare(
        wanted: &Wanted,
        tier: Tier,
        session: &str,
        scraps: Option<Scraps>,
        finish: Option<&dyn Fn()>,
    ) -> Result<Self, JailError> {
        let amounts = wanted.amounts();
        let plan = if amounts.is_empty() { Plan::default() } else { Plan::of_host(&amounts, session) };
        let janitor = janitor_for(&plan, scraps.as_ref(), finish)?;
        let mut limits =
            Self { enforced: Vec::new(), rlimits: Vec::new(), groups: Vec::new(), scraps, janitor };
        for (limit, value, why) in plan.unmet {
            limits.fall_back(limit, value, tier, why);
        }
        for group in plan.groups {
            limits.make(group, tier);
        }
        limits.enforced.sort_by_key(|enforced| enforced.limit);
        limits.admit(wanted.strict)?;
        Ok(limits)
    }

    /// What [`Limits::prepare`] would enforce each limit by, as far as that shows without making anything.
    pub fn foresee(wanted: &Wanted, tier: Tier) -> Vec<Enforced> {
        let plan = Plan::of_host(&wanted.amounts(), "foreseen");
        let grouped = plan.groups.iter().flat_map(Group::enforced);
        let unmet =
            plan.unmet.into_iter().map(|(limit, value, why)| rlimit::fall_back(limit, value, tier, why).0);
        let mut all: Vec<_> = grouped.chain(unmet).collect();
        all.sort_by_key(|enforced| enforced.limit);
        all
    }

    /// For `Blueprint::rlimits`.
    pub fn rlimits(&self) -> &[(Resource, u64)] {
        &self.rlimits
    }

    /// Puts init under the limits. Comes after `Raising::ready`, when init has no other process left, and before the
    /// first command, which inherits its place.
    ///
    /// # Errors
    /// [`JailError::Limit`] with the kernel's reason.
    pub fn enter(&self, init: Pid) -> Result<(), JailError> {
        self.groups.iter().try_for_each(|group| {
            group.enter(init).map_err(|error| JailError::Limit {
                what: group.first_limit().name(),
                why: format!("the sandbox cannot be moved to {}: {error}", group.folder().display()),
            })
        })
    }

    /// What each limit is enforced by, in the order of [`Limit`].
    pub fn enforced(&self) -> &[Enforced] {
        &self.enforced
    }

    /// The limits reached up to now, as far as the kernel counts that. Can be asked at any time until [`Limits::remove`].
    pub fn hits(&self) -> Vec<Hit> {
        self.groups.iter().flat_map(Group::hits).collect()
    }

    /// The most that was used at once, as far as the kernel tells.
    pub fn peak(&self) -> Peak {
        self.groups.iter().map(Group::peak).fold(Peak::default(), Peak::or)
    }

    /// Ends every process under the limits. Without a cgroup there is no telling which those are, and it does nothing.
    pub fn kill(&self) {
        self.groups.iter().for_each(|group| clear::kill(group.folder()));
    }

    /// Clears away what was made; comes after the last process. What could not be removed is returned.
    pub fn remove(mut self) -> Vec<PathBuf> {
        self.finish()
    }

    fn make(&mut self, mut group: Group, tier: Tier) {
        let failures = group.make();
        self.enforced
            .extend(group.enforced().filter(|one| failures.iter().all(|(limit, ..)| *limit != one.limit)));
        for (limit, value, why) in failures {
            self.fall_back(limit, value, tier, why);
        }
        if group.is_made() {
            self.groups.push(group);
        }
    }

    fn fall_back(&mut self, limit: Limit, value: u64, tier: Tier, why: String) {
        let (enforced, rlimit) = rlimit::fall_back(limit, value, tier, why);
        self.enforced.push(enforced);
        self.rlimits.extend(rlimit);
    }

    /// A strict policy takes no limit with a caveat.
    fn admit(&self, strict: bool) -> Result<(), JailError> {
        let weak = self.enforced.iter().filter(|_| strict).find_map(|one| Some((one, one.caveat.as_ref()?)));
        weak.map_or(Ok(()), |(one, caveat)| {
            Err(JailError::Limit { what: one.limit.name(), why: caveat.clone() })
        })
    }

    /// The janitor does the work in any case, so that its way is the one that is always gone. Only when it did not
    /// end well, say because somebody killed it, is the rest done here.
    fn finish(&mut self) -> Vec<PathBuf> {
        let done = self.janitor.take().is_none_or(Janitor::dismiss);
        let groups: Vec<_> =
            std::mem::take(&mut self.groups).iter().map(|group| group.folder().to_owned()).collect();
        let scraps = self.scraps.take();
        if !done {
            clean(&groups, scraps.as_ref());
        }
        let folders = scraps.into_iter().flat_map(|scraps| scraps.folders);
        groups.into_iter().chain(folders).filter(|path| path.symlink_metadata().is_ok()).collect()
    }
}

impl Drop for Limits {
    fn drop(&mut self) {
        self.finish();
    }
}

impl Wanted {
    /// Each limit with its amount in the unit of [`Enforced::value`].
    fn amounts(&self) -> Vec<(Limit, u64)> {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        [
            (Limit::Cpus, self.cpus.map(|cpus| (cpus * 1000.0).ceil() as u64)),
            (Limit::Memory, self.memory),
            (Limit::Pids, self.pids.map(u64::from)),
            (Limit::Disk, self.disk),
            (Limit::Time, self.time.map(micros)),
        ]
        .into_iter()
        .filter_map(|(limit, amount)| Some((limit, amount?)))
        .collect()
    }
}

/// Forked before anything is made, or a keeper killed in between would leave it behind.
fn janitor_for(
    plan: &Plan,
    scraps: Option<&Scraps>,
    finish: Option<&dyn Fn()>,
) -> Result<Option<Janitor>, JailError> {
    let folders: Vec<_> = plan.groups.iter().map(|group| group.folder().to_owned()).collect();
    let scraps = scraps.filter(|scraps| !scraps.folders.is_empty());
    if folders.is_empty() && scraps.is_none() && finish.is_none() {
        return Ok(None);
    }
    let failed = |errno| JailError::Limit {
        what: plan.groups.first().map_or("temporary files", |group| group.first_limit().name()),
        why: format!("the process that clears up afterwards cannot be started: {errno}"),
    };
    let chores = || {
        clean(&folders, scraps);
        finish.iter().for_each(|finish| finish());
    };
    Janitor::start(chores).map(Some).map_err(failed)
}

fn clean(groups: &[PathBuf], scraps: Option<&Scraps>) {
    // All are killed before the first is removed: where pids has a group of its own, only that one can stop forks.
    groups.iter().for_each(|folder| clear::kill(folder));
    groups.iter().for_each(|folder| clear::remove(folder));
    if let Some(scraps) = scraps {
        // The error shows in what is left: see `finish`.
        scraps.folders.iter().for_each(|folder| drop((scraps.remove)(folder)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_limits_nothing_is_made_and_nothing_is_said() {
        let limits = Limits::prepare(&Wanted::default(), Tier::Full, "abcdefgh27", None, None).unwrap();
        assert!(limits.janitor.is_none() && limits.groups.is_empty() && limits.enforced().is_empty());
        assert!(limits.remove().is_empty());
    }

    #[test]
    fn a_strict_policy_refuses_what_would_not_hold() {
        let wanted = Wanted { disk: Some(1 << 20), ..Wanted::default() };
        let strict = Wanted { strict: true, ..wanted.clone() };
        let prepare = |wanted| Limits::prepare(wanted, Tier::Landlock, "abcdefgh27", None, None);
        assert_eq!(prepare(&wanted).unwrap().enforced()[0].by, By::Nothing);
        assert!(matches!(prepare(&strict), Err(JailError::Limit { what: "disk", .. })));
        assert!(Limits::prepare(&strict, Tier::Full, "abcdefgh27", None, None).is_ok());
    }
}
