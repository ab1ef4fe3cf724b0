use bollard::query_parameters::StatsOptionsBuilder;
use futures_util::StreamExt;
use redoma_sandbox::driver::{DriverError, SandboxId, State, Statistics, Stats};

use crate::driver::OciDriver;
use crate::error::engine;

impl Statistics for OciDriver {
    fn stats(&self, id: &SandboxId) -> Result<Stats, DriverError> {
        let found = self.find(id)?;
        if found.state() == State::Stopped {
            return Ok(Stats { pids: Some(0), ..Stats::default() });
        }
        let once = StatsOptionsBuilder::default().stream(false).one_shot(true).build();
        let told = self.wait(async { self.docker().stats(found.id(), Some(once)).next().await });
        let told = told.transpose().map_err(engine)?.unwrap_or_default();
        let memory = told.memory_stats.unwrap_or_default();
        let cpu = told.cpu_stats.and_then(|cpu| cpu.cpu_usage).and_then(|usage| usage.total_usage);
        Ok(Stats {
            memory: memory.usage.filter(|usage| *usage > 0),
            peak_memory: memory.max_usage.filter(|usage| *usage > 0),
            pids: told.pids_stats.and_then(|pids| pids.current).filter(|pids| *pids > 0),
            cpu_us: cpu.map(|nanoseconds| nanoseconds / 1000),
            disk: None,
        })
    }
}
