//! Who the commands are, outside and inside. See `user_namespaces(7)`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use redoma_sys::Errno;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::process::Pid;

/// Who the commands are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// One user and one group, which is all that a process may map without privilege.
    One {
        /// The caller's number outside.
        user: u32,
        /// The caller's group outside.
        group: u32,
        /// Whether it is number 0 inside, instead of the same.
        as_root: bool,
    },
    /// The caller and a range of numbers that were set aside for the caller, so that other users exist inside.
    Ranges(Ranges),
}

/// What each number inside is outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges {
    users: Vec<Extent>,
    groups: Vec<Extent>,
}

/// `count` numbers from `inside` on are those from `outside` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    inside: u32,
    outside: u32,
    count: u32,
}

/// How many numbers a sandbox wants: what packages and images use.
const WANTED: u32 = 65_536;
/// Root may map what it likes. Numbers from here on are nobody's on a usual machine.
const FOR_ROOT: u32 = 1 << 30;

impl Identity {
    /// The calling user, under the same numbers inside, or as user 0 if `as_root`.
    pub fn of_caller(as_root: bool) -> Self {
        let user = rustix::process::geteuid().as_raw();
        let group = rustix::process::getegid().as_raw();
        Self::One { user, group, as_root }
    }

    /// The same with as many other users as there are for the caller in `/etc/subuid` and `/etc/subgid`, which
    /// `newuidmap(1)` maps; root needs neither. None where that cannot be, with the reason.
    ///
    /// # Errors
    /// What is missing, in words.
    pub fn with_ranges(as_root: bool, name: &str) -> Result<Self, String> {
        let user = rustix::process::geteuid().as_raw();
        let group = rustix::process::getegid().as_raw();
        let (users, groups) = if user == 0 {
            require_unmapped()?;
            ((FOR_ROOT, WANTED), (FOR_ROOT, WANTED))
        } else {
            for program in ["newuidmap", "newgidmap"] {
                program_at(program).ok_or_else(|| format!("the program {program} (package uidmap)"))?;
            }
            (subordinate("/etc/subuid", name, user)?, subordinate("/etc/subgid", name, user)?)
        };
        Ok(Self::Ranges(Ranges {
            users: extents(user, if as_root { 0 } else { user }, users),
            groups: extents(group, if as_root { 0 } else { group }, groups),
        }))
    }

    /// Whether other users than the caller exist inside.
    pub fn has_ranges(&self) -> bool {
        matches!(self, Self::Ranges(_))
    }

    /// Maps the identity into the user namespace that this process was just born into, where it has no id yet. Ranges
    /// were mapped from outside.
    pub(crate) fn map(&self) -> Result<(), Errno> {
        match *self {
            Self::One { user, group, as_root } => {
                let inside = |id: u32| if as_root { 0 } else { id };
                write("/proc/self/setgroups", "deny")?;
                write("/proc/self/uid_map", &format!("{} {user} 1", inside(user)))?;
                write("/proc/self/gid_map", &format!("{} {group} 1", inside(group)))
            }
            // The caller's other groups mean nothing inside.
            Self::Ranges(_) => rustix::thread::set_thread_groups(&[]),
        }
    }

    /// Maps ranges into the user namespace of a process that waits for it.
    pub(crate) fn map_from_outside(&self, process: Pid) -> Result<(), Errno> {
        let Self::Ranges(Ranges { users, groups }) = self else { return Ok(()) };
        let pid = process.as_raw_nonzero().get();
        if rustix::process::geteuid().is_root() {
            write(&format!("/proc/{pid}/uid_map"), &lines(users))?;
            return write(&format!("/proc/{pid}/gid_map"), &lines(groups));
        }
        run("newuidmap", pid, users)?;
        run("newgidmap", pid, groups)
    }
}

/// The caller is `inside`; every other number below the range's end is one of the range.
fn extents(caller: u32, inside: u32, (start, count): (u32, u32)) -> Vec<Extent> {
    let own = Extent { inside, outside: caller, count: 1 };
    let below = Extent { inside: 0, outside: start, count: inside.min(count) };
    let above = Extent { inside: inside + 1, outside: start + below.count, count: count - below.count };
    // A caller with a number beyond the range, as from a directory service, has all of the range below.
    [below, own, above].into_iter().filter(|extent| extent.count > 0).collect()
}

fn lines(extents: &[Extent]) -> String {
    extents.iter().fold(String::new(), |mut text, Extent { inside, outside, count }| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{inside} {outside} {count}");
        text
    })
}

fn run(program: &str, pid: i32, extents: &[Extent]) -> Result<(), Errno> {
    let numbers = extents.iter().flat_map(|extent| [extent.inside, extent.outside, extent.count]);
    let path = program_at(program).ok_or(Errno::NOENT)?;
    let status = Command::new(path)
        .arg(pid.to_string())
        .args(numbers.map(|number| number.to_string()))
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Errno::PERM),
    }
}

/// Programs that get rights by being set-user-id are looked for where only root writes, whatever `PATH` says.
fn program_at(name: &str) -> Option<std::path::PathBuf> {
    ["/usr/bin", "/bin", "/usr/local/bin", "/run/wrappers/bin"]
        .iter()
        .map(|folder| Path::new(folder).join(name))
        .find(|path| path.is_file())
}

/// The first range of the user's in a file of `name:start:count` lines; numbers stand for names too. See `subuid(5)`.
fn subordinate(file: &str, name: &str, user: u32) -> Result<(u32, u32), String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let number = user.to_string();
    let mut ranges = text.lines().filter_map(|line| {
        let mut fields = line.split(':');
        fields.next().filter(|owner| *owner == name || *owner == number)?;
        Some((fields.next()?.parse::<u32>().ok()?, fields.next()?.trim().parse::<u32>().ok()?))
    });
    ranges
        .find(|(start, count)| start.checked_add(*count).is_some() && *count > 0)
        .map(|(start, count)| (start, count.min(WANTED)))
        .ok_or_else(|| format!("a range for {name} in {file}"))
}

/// Root of a container that was itself given only some numbers cannot give others away.
fn require_unmapped() -> Result<(), String> {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let whole = map.split_whitespace().collect::<Vec<_>>() == ["0", "0", "4294967295"];
    whole.then_some(()).ok_or_else(|| "numbers of users that this container could give away".to_owned())
}

fn write(path: &str, text: &str) -> Result<(), Errno> {
    let file = rustix::fs::openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text.as_bytes()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(caller: u32, inside: u32) -> String {
        lines(&extents(caller, inside, (100_000, 65_536)))
    }

    #[test]
    fn the_caller_is_root_or_stays_itself_and_all_others_come_from_the_range() {
        assert_eq!(mapped(1000, 0), "0 1000 1\n1 100000 65536\n");
        assert_eq!(mapped(1000, 1000), "0 100000 1000\n1000 1000 1\n1001 101000 64536\n");
        assert_eq!(mapped(70_000, 70_000), "0 100000 65536\n70000 70000 1\n");
    }
}
