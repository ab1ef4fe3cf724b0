//! What a sandbox uses, counted from its own list of processes: its keeper's limits may have no cgroup to ask.

use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use super::Native;
use super::control::{Ask, Line, Tell};
use crate::driver::{DriverError, SandboxId, Statistics, Stats};

impl Statistics for Native {
    fn stats(&self, id: &SandboxId) -> Result<Stats, DriverError> {
        let Some(root) = self.living_root(id)? else {
            return Ok(Stats { pids: Some(0), memory: Some(0), ..Stats::default() });
        };
        // Its own proc shows its own processes only, and these files need no rights over them.
        let processes = format!("/proc/self/fd/{}/proc", root.as_raw_fd());
        let mut stats = Stats { memory: Some(0), pids: Some(0), cpu_us: Some(0), ..Stats::default() };
        let entries = fs::read_dir(processes).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok()) {
            let Some(used) = Used::of(&entry.path()) else { continue };
            stats.memory = stats.memory.map(|sum| sum + used.memory);
            stats.pids = stats.pids.map(|sum| sum + used.threads);
            stats.cpu_us = stats.cpu_us.map(|sum| sum + used.cpu_us);
        }
        Ok(stats)
    }
}

impl Native {
    /// The root folder of a sandbox in which something is alive.
    pub(super) fn living_root(&self, id: &SandboxId) -> Result<Option<OwnedFd>, DriverError> {
        let Some(line) = Line::to_living(&self.store, id)? else { return Ok(None) };
        match line.exchange(&Ask::Root, &[])? {
            (Tell::Failed(refusal), _) => Err(refusal.into()),
            (_, root) => Ok(root.into_iter().next()),
        }
    }
}

/// What one process uses.
struct Used {
    memory: u64,
    threads: u64,
    cpu_us: u64,
}

impl Used {
    /// See `/proc/pid/stat` in `proc_pid_stat(5)`: fields are counted after the name, which may hold anything.
    fn of(process: &std::path::Path) -> Option<Self> {
        let stat = fs::read_to_string(process.join("stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let tick_us = 1_000_000 / rustix::param::clock_ticks_per_second();
        let page = rustix::param::page_size() as u64;
        Some(Self {
            memory: number(21)? * page,
            threads: number(17)?,
            cpu_us: (number(11)? + number(12)?) * tick_us,
        })
    }
}
