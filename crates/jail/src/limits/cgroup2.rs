//! Version 2: a cgroup of ours as near above the caller's own as the kernel's rules and the user's rights allow.
//! See the kernel's `admin-guide/cgroup-v2`.
//!
//! Processes may only be in leaves, so where the caller stands there can be nothing below. The next place is beside
//! it; that takes the right to move processes there from the caller's cgroup, which means the right to write
//! `cgroup.procs` of the nearest cgroup above both. systemd gives it to users below `user@UID.service`.
//! What limited the caller below that place is copied, or the sandbox would be freer than its caller.

use std::fs;
use std::io;
use std::path::Path;

use redoma_sys::Errno;

use super::cgroup1::{PERIOD, quota};
use super::group::{Group, Setting, Version, keyed, number};
use super::hierarchy::Place;
use super::report::{Action, Limit};
use super::rlimit::INIT;

/// Where the processes are, below the cgroup that has the limits.
pub(super) const LEAF: &str = "in";

const SUBTREE: &str = "cgroup.subtree_control";

/// Whether this process may write a file; a test has its own answer.
pub(super) type Writable<'a> = &'a dyn Fn(&Path) -> Result<(), Errno>;

/// Where a cgroup can be made, and what must be enabled for it.
pub(super) struct Site<'a> {
    place: &'a Place,
    parent: &'a Path,
    writable: Writable<'a>,
}

impl<'a> Site<'a> {
    /// The nearest one.
    pub(super) fn find(place: &'a Place, writable: Writable<'a>) -> Result<Self, String> {
        let above = place.own.ancestors().take_while(|folder| folder.starts_with(&place.mount));
        let mut refused = None;
        for parent in above {
            if !may_have_children(parent) {
                continue;
            }
            let needed = ["", "cgroup.procs", SUBTREE].map(|name| parent.join(name));
            match needed.iter().try_for_each(|file| writable(file)) {
                Ok(()) => return Ok(Self { place, parent, writable }),
                // The nearest says best what is wrong: further up it is root's in any case.
                Err(errno) => refused = refused.or(Some(errno)),
            }
        }
        Err(refusal(refused))
    }

    pub(super) fn draw(&self, session: &str) -> Group {
        let mut group = Group::new(Version::Two, self.parent, session);
        for (file, value) in self.inherited() {
            group.settings.push(Setting { file: group.folder.join(file), value, limit: None, swap: false });
        }
        group
    }

    /// Adds what sets `limit`; an error says why it can't be.
    pub(super) fn set(&self, group: &mut Group, limit: Limit, value: u64) -> Result<(), String> {
        let controller = limit.controller().ok_or("no controller is for that")?;
        for setting in self.enable(controller)? {
            let enable = Setting { limit: Some(limit), ..setting };
            group.enable.push(enable);
        }
        group.limits.push((limit, value));
        match limit {
            Limit::Cpus => {
                let own = self.tightest("cpu.max", quota_in).unwrap_or(u64::MAX);
                group.set("cpu.max", &format!("{} {PERIOD}", quota(value).min(own)), limit, false);
            }
            Limit::Memory => {
                let own = self.tightest("memory.max", number).unwrap_or(u64::MAX);
                group.set("memory.max", &own.min(value), limit, false);
                group.set("memory.swap.max", &0, limit, true);
            }
            _ => {
                let own = self.tightest("pids.max", number).unwrap_or(u64::MAX);
                group.set("pids.max", &own.min(value.saturating_add(INIT)), limit, false);
            }
        }
        Ok(())
    }

    /// The writes, from the top down, after which the new cgroup has the controller.
    fn enable(&self, controller: &str) -> Result<Vec<Setting>, String> {
        let mut writes = Vec::new();
        for folder in self.parent.ancestors().take_while(|folder| folder.starts_with(&self.place.mount)) {
            if lists(&folder.join(SUBTREE), controller) {
                return Ok(writes);
            }
            if !may_have_children(folder) || (self.writable)(&folder.join(SUBTREE)).is_err() {
                break;
            }
            let value = format!("+{controller}");
            writes.insert(0, Setting { file: folder.join(SUBTREE), value, limit: None, swap: false });
            if lists(&folder.join("cgroup.controllers"), controller) {
                return Ok(writes);
            }
        }
        Err(format!(
            "the {controller} controller of cgroup v2 is not available below {}",
            self.parent.display()
        ))
    }

    /// What limits the caller between its own cgroup and the new one's parent.
    fn inherited(&self) -> Vec<(&'static str, String)> {
        let plainly = ["memory.max", "memory.high", "memory.swap.max", "pids.max"];
        let mut found: Vec<_> = plainly
            .into_iter()
            .filter_map(|file| Some((file, self.tightest(file, number)?.to_string())))
            .collect();
        found
            .extend(self.tightest("cpu.max", quota_in).map(|quota| ("cpu.max", format!("{quota} {PERIOD}"))));
        found
    }

    fn tightest(&self, file: &str, read: fn(&Path) -> Option<u64>) -> Option<u64> {
        let between = self.place.own.ancestors().take_while(|folder| *folder != self.parent);
        between.filter_map(|folder| read(&folder.join(file))).min()
    }
}

/// Controllers for children and processes of one's own exclude each other, except at the real root, which is the
/// one cgroup without a type. A threaded one takes no domain below it.
fn may_have_children(folder: &Path) -> bool {
    match fs::read_to_string(folder.join("cgroup.type")) {
        Err(error) => error.kind() == io::ErrorKind::NotFound,
        Ok(kind) => {
            let processes = fs::read_to_string(folder.join("cgroup.procs"));
            kind.trim() == "domain" && processes.is_ok_and(|list| list.is_empty())
        }
    }
}

fn refusal(errno: Option<Errno>) -> String {
    match errno {
        Some(Errno::ACCESS) => "no cgroup is delegated to the user from here: \
            `systemd-run --user --scope redoma run …` starts it where one is"
            .into(),
        Some(errno) => format!("no cgroup can be made here: {errno}"),
        None => {
            "no cgroup can be made beside this process's own, which is the topmost that is seen here".into()
        }
    }
}

fn lists(file: &Path, controller: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|list| list.split_whitespace().any(|name| name == controller))
}

/// `quota period` as a quota per [`PERIOD`]; none for `max`.
fn quota_in(file: &Path) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let (quota, period) = text.trim().split_once(' ')?;
    let period: u64 = period.parse().ok().filter(|period| *period > 0)?;
    Some(quota.parse::<u64>().ok()?.saturating_mul(PERIOD) / period)
}

/// Makes the cgroup for the processes, below `folder`.
///
/// Were they in `folder` itself, a service manager that tidies up above could take its controllers away, and the
/// limits with them. With a controller in use below, that fails with `EBUSY`.
pub(super) fn pin(folder: &Path) -> io::Result<()> {
    let all = fs::read_to_string(folder.join("cgroup.controllers"))?;
    for controller in
        ["cpu", "memory", "pids"].iter().filter(|name| all.split_whitespace().any(|one| one == **name))
    {
        fs::write(folder.join(SUBTREE), format!("+{controller}"))?;
    }
    fs::create_dir(folder.join(LEAF))
}

/// How often a limit was reached.
pub(super) fn reached(folder: &Path, limit: Limit) -> Option<(u64, Action)> {
    let read = |name: &str, key: &str| keyed(&folder.join(name), key);
    match limit {
        Limit::Cpus => Some((read("cpu.stat", "nr_throttled")?, Action::Throttled)),
        Limit::Memory => Some((read("memory.events", "oom_kill")?, Action::Killed)),
        Limit::Pids => {
            // Before Linux 6.11 a refusal was counted where the process is, not where the limit is.
            let below = keyed(&folder.join(LEAF).join("pids.events"), "max");
            Some((read("pids.events", "max").max(below)?, Action::Refused))
        }
        Limit::Disk | Limit::Time => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::hierarchy::Hierarchies;
    use super::super::plan::Plan;
    use super::*;

    /// A tree as systemd makes it for the user 1000, in which the caller is in `own`.
    struct Tree {
        root: tempfile::TempDir,
        own: &'static str,
    }

    const MANAGER: &str = "user.slice/user-1000.slice/user@1000.service";
    const TERMINAL: &str = "user.slice/user-1000.slice/user@1000.service/app.slice/term.scope";
    const LOGIN: &str = "user.slice/user-1000.slice/session-2.scope";

    impl Tree {
        fn new(own: &'static str, enabled: &str) -> Self {
            let tree = Self { root: tempfile::tempdir().unwrap(), own };
            for folder in Path::new(own).ancestors() {
                fs::create_dir_all(tree.at(folder)).unwrap();
                tree.write(folder, "cgroup.procs", if folder == Path::new(own) { "7\n" } else { "" });
                tree.write(folder, "cgroup.controllers", enabled);
                tree.write(folder, SUBTREE, if folder == Path::new(own) { "" } else { enabled });
                if folder != Path::new("") {
                    tree.write(folder, "cgroup.type", "domain\n");
                }
            }
            tree
        }

        fn at(&self, folder: impl AsRef<Path>) -> PathBuf {
            self.root.path().join(folder)
        }

        fn write(&self, folder: impl AsRef<Path>, name: &str, content: &str) {
            fs::write(self.at(folder).join(name), content).unwrap();
        }

        fn plan(&self, amounts: &[(Limit, u64)]) -> Plan {
            let place = Place { mount: self.at(""), own: self.at(self.own) };
            let hierarchies = Hierarchies { unified: Some(place), ..Hierarchies::default() };
            let delegated = self.at(MANAGER);
            let writable = |path: &Path| match path.starts_with(&delegated) {
                true => Ok(()),
                false => Err(Errno::ACCESS),
            };
            Plan::draw(amounts, "x", &hierarchies, &writable)
        }
    }

    fn value<'a>(group: &'a Group, name: &str) -> Option<&'a str> {
        let setting = group.settings.iter().find(|setting| setting.file == group.folder.join(name))?;
        Some(&setting.value)
    }

    #[test]
    fn a_terminal_of_the_user_s_manager_gets_a_cgroup_beside_its_own() {
        let tree = Tree::new(TERMINAL, "cpu memory pids\n");
        let plan = tree.plan(&[(Limit::Cpus, 1500), (Limit::Memory, 1 << 20), (Limit::Pids, 9)]);
        let [group] = plan.groups.as_slice() else { panic!("{plan:?}") };
        assert_eq!(group.folder, tree.at(MANAGER).join("app.slice/redoma-x"));
        assert_eq!(
            (value(group, "cpu.max"), value(group, "memory.max")),
            (Some("150000 100000"), Some("1048576"))
        );
        assert_eq!((value(group, "memory.swap.max"), value(group, "pids.max")), (Some("0"), Some("10")));
        assert!(group.enable.is_empty() && plan.unmet.is_empty());
    }

    #[test]
    fn a_login_session_has_nothing_delegated_and_is_told_how_to_get_it() {
        let plan = Tree::new(LOGIN, "cpu memory pids\n").plan(&[(Limit::Memory, 1 << 20)]);
        assert!(plan.groups.is_empty());
        assert!(plan.unmet[0].2.contains("systemd-run --user --scope"), "{plan:?}");
    }

    #[test]
    fn a_controller_is_enabled_from_where_it_is_available_down() {
        let tree = Tree::new(TERMINAL, "memory pids\n");
        tree.write(MANAGER, "cgroup.controllers", "cpu memory pids\n");
        let plan = tree.plan(&[(Limit::Cpus, 500)]);
        let files: Vec<_> = plan.groups[0].enable.iter().map(|setting| setting.file.clone()).collect();
        assert_eq!(files, [tree.at(MANAGER).join(SUBTREE), tree.at(MANAGER).join("app.slice").join(SUBTREE)]);
        tree.write(MANAGER, "cgroup.controllers", "memory pids\n");
        let plan = tree.plan(&[(Limit::Cpus, 500), (Limit::Pids, 9)]);
        assert_eq!(
            (plan.unmet[0].0, plan.groups[0].limits.as_slice()),
            (Limit::Cpus, &[(Limit::Pids, 9)][..])
        );
    }

    #[test]
    fn what_limits_the_caller_limits_the_sandbox() {
        let tree = Tree::new(TERMINAL, "cpu memory pids\n");
        tree.write(TERMINAL, "memory.max", "4096\n");
        tree.write(TERMINAL, "memory.high", "max\n");
        tree.write(TERMINAL, "pids.max", "5\n");
        tree.write(TERMINAL, "cpu.max", "10000 50000\n");
        let plan = tree.plan(&[(Limit::Cpus, 1500), (Limit::Memory, 1 << 20)]);
        let group = &plan.groups[0];
        assert_eq!(
            (value(group, "cpu.max"), value(group, "memory.max")),
            (Some("20000 100000"), Some("4096"))
        );
        assert_eq!((value(group, "pids.max"), value(group, "memory.high")), (Some("5"), None));
    }

    #[test]
    fn a_place_with_processes_of_its_own_is_passed_over() {
        let tree = Tree::new(TERMINAL, "pids\n");
        tree.write("user.slice/user-1000.slice/user@1000.service/app.slice", "cgroup.procs", "3\n");
        let plan = tree.plan(&[(Limit::Pids, 9)]);
        assert_eq!(plan.groups[0].folder, tree.at(MANAGER).join("redoma-x"));
    }
}
