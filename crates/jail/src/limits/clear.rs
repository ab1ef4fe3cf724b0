//! Emptying cgroups and removing them.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use redoma_sys::Errno;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};

/// Processes in an uninterruptible call cannot be ended; they and their cgroup are then left to `gc`.
const PATIENCE: Duration = Duration::from_secs(5);

/// The kernel lets go of a cgroup a moment after its last process is seen to end.
const MOMENT: Duration = Duration::from_millis(1);

/// Ends every process in the cgroup and below, and waits until none is left.
pub(super) fn kill(group: &Path) {
    // cgroup.kill also ends what is being forked meanwhile. Where there is none (version 1, Linux before 5.14),
    // forks are made to fail first, or a fork bomb could stay ahead of the signals for ever.
    let _ = fs::write(group.join("cgroup.kill"), "1").or_else(|_| fs::write(group.join("pids.max"), "0"));
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        let found = members(group);
        if found.is_empty() {
            return;
        }
        let held: Vec<_> = found.iter().filter_map(|pid| Some((*pid, hold(*pid)?))).collect();
        // A number may have come to mean another process before it was held: then it is not listed any more.
        let still = members(group);
        let held: Vec<_> =
            held.into_iter().filter(|(pid, _)| still.contains(pid)).map(|(_, held)| held).collect();
        for process in &held {
            let _ = rustix::process::pidfd_send_signal(process, Signal::KILL);
        }
        wait_for_one(&held);
    }
}

/// Removes an empty cgroup with those below it. Gone already is fine.
pub(super) fn remove(group: &Path) {
    subgroups(group).iter().for_each(|below| remove(below));
    let end = Instant::now() + PATIENCE;
    while fs::remove_dir(group).is_err_and(|error| busy(&error)) && Instant::now() < end {
        pause();
    }
}

fn busy(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::BUSY.raw_os_error())
}

/// Processes that have ended, waited for or not, are not listed. See `cgroups(7)`, `cgroup.procs`.
fn members(group: &Path) -> Vec<Pid> {
    let own = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    // One of a pid namespace that this one cannot see shows as 0.
    let own = own.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?));
    own.chain(subgroups(group).iter().flat_map(|below| members(below))).collect()
}

fn subgroups(group: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

fn hold(pid: Pid) -> Option<OwnedFd> {
    rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok()
}

/// Returns when a process has ended, or after a moment: one that this process may not signal never does.
fn wait_for_one(held: &[OwnedFd]) {
    let mut fds: Vec<_> = held.iter().map(|process| PollFd::new(process, PollFlags::IN)).collect();
    let _ = rustix::event::poll(&mut fds, Timespec::try_from(MOMENT * 50).ok().as_ref());
    if fds.is_empty() || fds.iter().any(|fd| !fd.revents().is_empty()) {
        // A zombie can be listed for a moment more.
        rustix::thread::sched_yield();
    }
}

fn pause() {
    let _ = rustix::event::poll(&mut [], Timespec::try_from(MOMENT).ok().as_ref());
}
