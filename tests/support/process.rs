//! Waiting for processes by pidfd (pidfd_open(2)): no polling, no race with a pid used again.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Whether a process with this id exists and has not ended.
#[must_use]
pub fn alive(pid: i32) -> bool {
    !wait_gone(pid, Duration::ZERO)
}

/// Waits until the process has ended; `false` when it still runs after `patience`.
///
/// # Panics
/// If the kernel refuses a pidfd for another reason than "no such process".
#[must_use]
pub fn wait_gone(pid: i32, patience: Duration) -> bool {
    let pid = Pid::from_raw(pid).expect("process ids are positive");
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => readable(&pidfd, patience),
        Err(Errno::SRCH) => true,
        Err(errno) => panic!("pidfd_open of {pid:?}: {errno}"),
    }
}

/// Every process that `pid` started, and those that they started, as the host sees them.
///
/// # Panics
/// If `/proc` cannot be listed.
#[must_use]
pub fn descendants(pid: i32) -> Vec<i32> {
    let processes = std::fs::read_dir("/proc").expect("proc is mounted").filter_map(Result::ok);
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let family: Vec<(i32, i32)> = numbers.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![pid];
    let mut next = 0;
    while next < found.len() {
        let parent_pid = found[next];
        found.extend(family.iter().filter(|(_, parent)| *parent == parent_pid).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

/// The fourth field of proc_pid_stat(5). The second, a name in parentheses, may itself hold parentheses.
fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Waits until a descriptor has something to read (a pidfd: its process ended).
pub(crate) fn readable(fd: &impl std::os::fd::AsFd, patience: Duration) -> bool {
    let timeout = Timespec::try_from(patience).expect("patience fits a timespec");
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    loop {
        match poll(&mut fds, Some(&timeout)) {
            Err(Errno::INTR) => {}
            Ok(ready) => return ready > 0,
            Err(errno) => panic!("poll: {errno}"),
        }
    }
}
