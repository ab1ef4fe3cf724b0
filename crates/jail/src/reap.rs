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
