//! Which limit can be had by which means, found by looking and not by making.

use std::path::Path;

use redoma_sys::Errno;
use rustix::fs::{Access, AtFlags, CWD};

use super::cgroup1;
use super::cgroup2::{Site, Writable};
use super::group::{Failed, Group};
use super::hierarchy::{Hierarchies, Place};
use super::report::Limit;

/// The cgroups to make, and the limits that none of them can hold.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) groups: Vec<Group>,
    pub(super) unmet: Vec<Failed>,
}

impl Plan {
    pub(super) fn of_host(amounts: &[(Limit, u64)], session: &str) -> Self {
        // What can't be read is as good as not mounted.
        let hierarchies = match amounts.iter().any(|(limit, _)| limit.controller().is_some()) {
            true => Hierarchies::of_this_process().unwrap_or_default(),
            false => Hierarchies::default(),
        };
        Self::draw(amounts, session, &hierarchies, &writable)
    }

    pub(super) fn draw(
        amounts: &[(Limit, u64)],
        session: &str,
        hierarchies: &Hierarchies,
        writable: Writable<'_>,
    ) -> Self {
        let mut plan = Self::default();
        for &(limit, value) in amounts {
            if let Err(why) = plan.place(limit, value, session, hierarchies, writable) {
                plan.unmet.push((limit, value, why));
            }
        }
        plan.add_fork_stop(session, hierarchies, writable);
        plan
    }

    /// A controller is in a hierarchy of version 1, or else in that of version 2.
    fn place(
        &mut self,
        limit: Limit,
        value: u64,
        session: &str,
        hierarchies: &Hierarchies,
        writable: Writable<'_>,
    ) -> Result<(), String> {
        let controller = limit.controller().ok_or("no controller is for that")?;
        if let Some(place) = hierarchies.legacy.get(controller) {
            may_divide(place, writable)?;
            let group = self.group(cgroup1::draw(&place.own, session));
            cgroup1::set(group, &place.own, limit, value);
            return Ok(());
        }
        let unified = hierarchies.unified.as_ref().ok_or("no cgroup file system is mounted here")?;
        let site = Site::find(unified, writable)?;
        site.set(self.group(site.draw(session)), limit, value)
    }

    /// The one in the place of `drawn`, if there already is one: controllers can share a hierarchy.
    fn group(&mut self, drawn: Group) -> &mut Group {
        let at = self.groups.iter().position(|group| group.folder == drawn.folder).unwrap_or_else(|| {
            self.groups.push(drawn);
            self.groups.len() - 1
        });
        &mut self.groups[at]
    }

    /// Version 1 has no way to end a cgroup but by one signal after the other, and no way to keep it from growing
    /// meanwhile but by the pids controller: so it gets one of that, too.
    fn add_fork_stop(&mut self, session: &str, hierarchies: &Hierarchies, writable: Writable<'_>) {
        let legacy = self.groups.iter().any(Group::needs_fork_stop);
        let Some(place) = hierarchies.legacy.get("pids").filter(|_| legacy) else { return };
        if may_divide(place, writable).is_ok() {
            self.group(cgroup1::draw(&place.own, session));
        }
    }
}

fn may_divide(place: &Place, writable: Writable<'_>) -> Result<(), String> {
    writable(&place.own).map_err(|errno| match errno {
        Errno::ACCESS => "only root may make cgroups of version 1".into(),
        errno => format!("no cgroup can be made below {}: {errno}", place.own.display()),
    })
}

/// By the effective user, which the writing will be done as.
fn writable(path: &Path) -> Result<(), Errno> {
    rustix::fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS)
}
