//! Ending every process of a sandbox that has no pid namespace.

use rustix::process::{Pid, Signal, WaitOptions};

/// Kills and reaps until nothing is left. As a subreaper this process inherits every orphan below it, so a process
/// that forks faster than it is found still ends up here; a round limit keeps a bug from becoming a hang.
pub(crate) fn end_descendants() {
    const ROUNDS: u32 = 10_000;
    for _ in 0..ROUNDS {
        children_of(rustix::process::getpid()).into_iter().for_each(kill_tree);
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) => {}
            Err(_) => return,
        }
    }
}

/// Sends a signal to every process below this one.
pub(crate) fn signal_descendants(signal: Signal) {
    let mut pending = children_of(rustix::process::getpid());
    while let Some(pid) = pending.pop() {
        let _ = rustix::process::kill_process(pid, signal);
        pending.extend(children_of(pid));
    }
}

/// Every process below this one.
pub(crate) fn descendants() -> Vec<Pid> {
    let mut all = children_of(rustix::process::getpid());
    let mut looked = 0;
    while let Some(pid) = all.get(looked).copied() {
        all.extend(children_of(pid));
        looked += 1;
    }
    all
}

/// Every process of this pid namespace but its init.
pub(crate) fn all_others() -> Vec<Pid> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    pids.filter(|pid| !pid.is_init()).collect()
}

/// Whether no thread of a process goes on. See the state in `proc_pid_stat(5)`: what is gone stands as well.
pub(crate) fn stands(pid: Pid) -> bool {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero())) else { return true };
    tasks.flatten().all(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        matches!(state, None | Some('T' | 't' | 'Z' | 'X'))
    })
}

/// Kills what is below a subreaper that reaps, until nothing is. What forks faster than it is found is found in the next
/// round, as the subreaper's child.
pub(crate) fn end_below(leader: Pid) {
    const ROUNDS: u32 = 10_000;
    for _ in 0..ROUNDS {
        let children = children_of(leader);
        if children.is_empty() {
            return;
        }
        children.into_iter().for_each(kill_tree);
        // For the leader to reap; it stops when its command does.
        let _ = rustix::process::kill_process(leader, Signal::CONT);
        rustix::thread::sched_yield();
    }
}

/// Children are stopped before their own are listed, or they could fork past the list.
pub(crate) fn kill_tree(pid: Pid) {
    kill_to(pid, 0);
}

fn kill_to(pid: Pid, depth: u32) {
    const DEEPEST: u32 = 64;
    let _ = rustix::process::kill_process(pid, Signal::STOP);
    if depth < DEEPEST {
        for child in children_of(pid) {
            kill_to(child, depth + 1);
        }
    }
    let _ = rustix::process::kill_process(pid, Signal::KILL);
}

/// See `/proc/pid/task/tid/children` in `proc(5)`: exact for a stopped process.
pub(crate) fn children_of(pid: Pid) -> Vec<Pid> {
    let pid = pid.as_raw_nonzero().get();
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect::<Vec<_>>()
        })
        .collect()
}
