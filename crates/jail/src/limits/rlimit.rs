//! What is left without a cgroup: rlimits, and limits that never need one.

use std::fs;

use redoma_policy::Tier;
use rustix::process::Resource;

use super::report::{By, Enforced, Limit};

/// What enforces `limit` when no cgroup does, `why` being the reason for that.
pub(super) fn fall_back(
    limit: Limit,
    value: u64,
    tier: Tier,
    why: String,
) -> (Enforced, Option<(Resource, u64)>) {
    let enforced = |by, caveat| Enforced { limit, value, by, caveat };
    let nothing = |why: String| (enforced(By::Nothing, Some(why)), None);
    match limit {
        Limit::Time => (enforced(By::Timer, None), None),
        Limit::Disk if tier == Tier::Full => (enforced(By::Tmpfs, None), None),
        Limit::Disk => nothing("private folders lie on the disk in the landlock tier".into()),
        Limit::Cpus => nothing(why),
        // Not RLIMIT_AS: that also counts address space that is only reserved, which Node, Go and Java do by the
        // gigabyte, so they would not even start. See RLIMIT_DATA in getrlimit(2).
        Limit::Memory => {
            let caveat = format!("counted for each process alone, and without shared memory: {why}");
            (enforced(By::Rlimit, Some(caveat)), Some((Resource::Data, value)))
        }
        // The kernel never holds the real root to it. See RLIMIT_NPROC in getrlimit(2).
        Limit::Pids if rustix::process::getuid().is_root() => nothing(why),
        Limit::Pids => {
            let (others, caveat) = match tier {
                // Counted for each user namespace since Linux 5.14; before, all of the user's count, which is less.
                Tier::Full => (0, None),
                Tier::Landlock => (
                    threads_of_user(),
                    Some(format!("counted together with the user's other processes: {why}")),
                ),
            };
            (enforced(By::Rlimit, caveat), Some((Resource::Nproc, others + value + INIT)))
        }
    }
}

/// Init is ours, and not counted as the user's.
pub(super) const INIT: u64 = 1;

/// As `RLIMIT_NPROC` counts them: threads by real user id. See `proc_pid_status(5)`.
fn threads_of_user() -> u64 {
    let uid = rustix::process::getuid().as_raw();
    let Ok(entries) = fs::read_dir("/proc") else { return 0 };
    let statuses = entries.flatten().filter_map(|entry| fs::read_to_string(entry.path().join("status")).ok());
    statuses
        .filter(|status| field(status, "Uid:") == Some(u64::from(uid)))
        .filter_map(|status| field(&status, "Threads:"))
        .sum()
}

fn field(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_private_folders_need_no_cgroup() {
        assert_eq!(fall_back(Limit::Time, 5, Tier::Landlock, "no".into()).0.caveat, None);
        assert_eq!(fall_back(Limit::Disk, 5, Tier::Full, "no".into()).0.by, By::Tmpfs);
        assert!(fall_back(Limit::Disk, 5, Tier::Landlock, "no".into()).0.caveat.is_some());
    }

    #[test]
    fn what_rlimits_cannot_do_is_said() {
        let (enforced, rlimit) = fall_back(Limit::Memory, 1 << 20, Tier::Full, "no cgroup".into());
        assert_eq!(rlimit, Some((Resource::Data, 1 << 20)));
        assert!(enforced.caveat.unwrap().contains("each process"));
        let (enforced, rlimit) = fall_back(Limit::Cpus, 500, Tier::Full, "no cgroup".into());
        assert_eq!((enforced.by, rlimit), (By::Nothing, None));
    }

    #[test]
    fn this_process_counts_among_its_user_s() {
        let before = threads_of_user();
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || receiver.recv());
        assert!(before >= 1 && threads_of_user() >= 2);
        drop(sender);
        assert!(thread.join().is_ok());
    }

    #[test]
    fn fields_of_a_status_file_are_found_by_name() {
        let status = "Name:\tx\nUid:\t1000\t0\t0\t0\nThreads:\t7\n";
        assert_eq!((field(status, "Uid:"), field(status, "Threads:")), (Some(1000), Some(7)));
        assert_eq!(field(status, "Gid:"), None);
    }
}
