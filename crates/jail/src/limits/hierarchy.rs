//! Where this process stands in the cgroup hierarchies, and where those are mounted.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// This process's place in one hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Where the hierarchy is mounted.
    pub(super) mount: PathBuf,
    /// The folder of this process's cgroup, at or below the mount.
    pub(super) own: PathBuf,
}

/// This process's places. See `cgroups(7)`, `/proc/pid/cgroup`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Hierarchies {
    /// In version 2.
    pub(super) unified: Option<Place>,
    /// In those of version 1, by controller. A controller is only ever in one hierarchy.
    pub(super) legacy: BTreeMap<String, Place>,
}

impl Hierarchies {
    pub(super) fn of_this_process() -> io::Result<Self> {
        let memberships = fs::read_to_string("/proc/self/cgroup")?;
        Ok(Self::parse(&memberships, &fs::read_to_string("/proc/self/mountinfo")?))
    }

    pub(super) fn parse(memberships: &str, mountinfo: &str) -> Self {
        let mounts: Vec<_> = mountinfo.lines().filter_map(Mount::parse).collect();
        let mut found = Self::default();
        for (controllers, path) in memberships.lines().filter_map(membership) {
            let place = |wanted: &str| {
                mounts.iter().filter(|mount| mount.has(wanted)).find_map(|mount| mount.place(path))
            };
            if controllers.is_empty() {
                found.unified = place(UNIFIED);
            }
            let named = controllers.split(',').filter(|name| !name.is_empty());
            found.legacy.extend(named.filter_map(|name| Some((name.to_owned(), place(name)?))));
        }
        found
    }

    /// The mount points of all hierarchies.
    pub(super) fn mounts(&self) -> Vec<&Path> {
        let mut mounts: Vec<_> =
            self.legacy.values().chain(&self.unified).map(|place| place.mount.as_path()).collect();
        mounts.sort_unstable();
        mounts.dedup();
        mounts
    }
}

/// No controller of version 1 has an empty name.
const UNIFIED: &str = "";

struct Mount<'a> {
    root: PathBuf,
    at: PathBuf,
    unified: bool,
    options: &'a str,
}

impl<'a> Mount<'a> {
    /// A line of `/proc/pid/mountinfo`; none for other file systems. See `proc_pid_mountinfo(5)`.
    fn parse(line: &'a str) -> Option<Self> {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, at) = (unescape(mount.next()?), unescape(mount.next()?));
        let mut filesystem = filesystem.split(' ');
        let unified = match filesystem.next()? {
            "cgroup" => false,
            "cgroup2" => true,
            _ => return None,
        };
        Some(Self { root, at, unified, options: filesystem.nth(1).unwrap_or_default() })
    }

    fn has(&self, controller: &str) -> bool {
        match controller {
            UNIFIED => self.unified,
            name => !self.unified && self.options.split(',').any(|option| option == name),
        }
    }

    /// None where the mount shows another part of the hierarchy, as bind mounts and cgroup namespaces can do.
    fn place(&self, path: &str) -> Option<Place> {
        let below = Path::new(path).strip_prefix(&self.root).ok()?;
        let plain = below.components().all(|part| matches!(part, Component::Normal(_)));
        plain.then(|| Place { mount: self.at.clone(), own: self.at.join(below) })
    }
}

/// `hierarchy:controllers:path`; version 2 has no controllers there.
fn membership(line: &str) -> Option<(&str, &str)> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    Some((controllers, path))
}

/// Space, tab, newline and backslash are written as `\ooo`.
fn unescape(field: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| byte == b'\\').and_then(|digits| str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &after[3..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(mount: &str, own: &str) -> Option<Place> {
        Some(Place { mount: mount.into(), own: own.into() })
    }

    #[test]
    fn a_hybrid_machine_has_both_kinds() {
        let mountinfo = "\
            31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
            32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
            35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
            41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
        let found =
            Hierarchies::parse("4:memory:/a/b\n1:cpu,cpuacct:/\n9:name=systemd:/\n0::/x\n", mountinfo);
        assert_eq!(
            found.legacy.get("memory").cloned(),
            place("/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/a/b")
        );
        assert_eq!(found.legacy.get("cpu"), found.legacy.get("cpuacct"));
        assert_eq!(found.unified, place("/sys/fs/cgroup/unified", "/sys/fs/cgroup/unified/x"));
        assert!(!found.legacy.contains_key("pids"));
        assert_eq!(found.mounts().len(), 3);
    }

    #[test]
    fn a_container_that_sees_a_part_is_placed_within_it() {
        let mountinfo = "9 8 0:2 /docker/1 /sys/fs/cgroup ro - cgroup2 cgroup rw\n";
        assert_eq!(
            Hierarchies::parse("0::/docker/1/in\n", mountinfo).unified,
            place("/sys/fs/cgroup", "/sys/fs/cgroup/in")
        );
        assert_eq!(Hierarchies::parse("0::/other\n", mountinfo).unified, None);
        assert_eq!(Hierarchies::parse("0::/docker/1/../x\n", mountinfo).unified, None);
    }

    #[test]
    fn spaces_in_mount_points_are_read_back() {
        assert_eq!(unescape(r"/a\040b\134\0"), Path::new(r"/a b\\0"));
    }
}
