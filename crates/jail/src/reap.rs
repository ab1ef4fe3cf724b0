//! Ending every process of a sandbox that has no pid namespace.

use rustix::process::{Pid, Signal, WaitOptions};

/// Kills and reaps until nothing is left. As a subreaper this process inherits every orphan below it, so a process
/// that forks faster than it is found still ends up here; a round limit keeps a bug from becoming a hang.
pub(crate) fn end_descendants() {
    const ROUNDS: u32 = 10_000;
    for _ in 0..ROUNDS {
        for child in children_of(rustix::process::getpid()) {
            kill_tree(child, 0);
        }
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

/// Children are stopped before their own are listed, or they could fork past the list.
fn kill_tree(pid: Pid, depth: u32) {
    const DEEPEST: u32 = 64;
    let _ = rustix::process::kill_process(pid, Signal::STOP);
    if depth < DEEPEST {
        for child in children_of(pid) {
            kill_tree(child, depth + 1);
        }
    }
    let _ = rustix::process::kill_process(pid, Signal::KILL);
}

/// See `/proc/pid/task/tid/children` in `proc(5)`: exact for a stopped process.
fn children_of(pid: Pid) -> Vec<Pid> {
    let pid = pid.as_raw_nonzero().get();
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = tasks.flatten().filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect::<Vec<_>>()
        })
        .collect()
}
