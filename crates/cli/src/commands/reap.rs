//! `redoma reap`: sandboxes that have been there for too long.

use redoma_policy::TimeSpan;
use redoma_sandbox::reap::{self, Due};

use super::sandbox::{manager, now};
use crate::args::ReapArgs;
use crate::exit::Exit;
use crate::layers::amount;
use crate::printer::Printer;

pub(crate) fn reap(args: &ReapArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let max_age: Option<TimeSpan> = amount("--max-age", args.max_age.as_deref())?;
    let mut all = Vec::new();
    for driver in manager(None)?.drivers() {
        let due = reap::overdue(&driver.list()?, max_age.map(|age| age.0), now());
        if !args.dry_run {
            reap::reap(driver, &due)?;
        }
        all.extend(due);
    }
    tell(&all, args.json, printer)
}

pub(super) fn tell(all: &[Due], json: bool, printer: &Printer) -> anyhow::Result<Exit> {
    if json {
        printer.json(&all)?;
    } else {
        all.iter().try_for_each(|due| printer.line(format_args!("{}  {}", due.name, due.why)))?;
    }
    Ok(Exit::OK)
}
