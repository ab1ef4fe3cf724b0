//! `redoma pause-idle`: sandboxes that nobody has used for a while.

use redoma_policy::TimeSpan;
use redoma_sandbox::reap;

use super::sandbox::{manager, now};
use crate::args::PauseIdleArgs;
use crate::exit::Exit;
use crate::layers::amount;
use crate::printer::Printer;

pub(crate) fn pause_idle(args: &PauseIdleArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let max_idle: Option<TimeSpan> = amount("--max-idle", Some(&args.max_idle))?;
    let max_idle = max_idle.map(|idle| idle.0).unwrap_or_default();
    let mut all = Vec::new();
    for driver in manager(None)?.drivers() {
        let due = reap::idle(&driver.list()?, max_idle, args.serving, now());
        if !args.dry_run && !due.is_empty() {
            reap::pause(driver, &due)?;
        }
        all.extend(due);
    }
    super::reap::tell(&all, args.json, printer)
}
