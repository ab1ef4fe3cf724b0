//! `redoma sandbox pause`, `resume`, `logs`, `stats`, `checkpoint` and `restore`: what goes on in a sandbox.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;

use redoma_audit::escape::printable_block;
use redoma_sandbox::driver::{Driver, Stats};
use redoma_sandbox::{Driven, Manager};

use crate::args::{OneArgs, SandboxLogsArgs, StatsArgs};
use crate::exit::Exit;
use crate::printer::{DIM, Printer, Table};

pub(super) fn pause(manager: &Manager, args: &OneArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let driven = super::find(manager, &args.id)?;
    driven.able("pause a sandbox", |driver: &dyn Driver| driver.pausing())?.pause(&driven.id)?;
    tell(&driven, args, printer)
}

pub(super) fn resume(manager: &Manager, args: &OneArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let driven = super::find(manager, &args.id)?;
    driven.able("resume a sandbox", |driver: &dyn Driver| driver.pausing())?.resume(&driven.id)?;
    tell(&driven, args, printer)
}

pub(super) fn checkpoint(manager: &Manager, args: &OneArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let driven = super::find(manager, &args.id)?;
    driven
        .able("checkpoint a sandbox", |driver: &dyn Driver| driver.checkpoints())?
        .checkpoint(&driven.id)?;
    tell(&driven, args, printer)
}

pub(super) fn restore(manager: &Manager, args: &OneArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let driven = super::find(manager, &args.id)?;
    driven.able("restore a sandbox", |driver: &dyn Driver| driver.checkpoints())?.restore(&driven.id)?;
    tell(&driven, args, printer)
}

fn tell(driven: &Driven<'_>, args: &OneArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let info = driven.driver.info(&driven.id)?;
    if args.json {
        printer.json(&info)?;
    } else {
        printer.line(format_args!("{} is {}", info.spec.name, info.state))?;
    }
    Ok(Exit::OK)
}

/// A longer line is shown in pieces.
const LONGEST: u64 = 64 << 10;

pub(super) fn logs(manager: &Manager, args: &SandboxLogsArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let driven = super::find(manager, &args.id)?;
    let logs = driven.able("show logs", |driver: &dyn Driver| driver.logging())?;
    let mut text = BufReader::new(logs.logs(&driven.id, args.follow)?);
    let mut line = Vec::new();
    // What a sandbox wrote is shown, not obeyed.
    while text.by_ref().take(LONGEST).read_until(b'\n', &mut line)? > 0 {
        let shown = printable_block(OsStr::from_bytes(&line)).into_owned();
        printer.raw(shown.as_bytes())?;
        line.clear();
    }
    Ok(Exit::OK)
}

pub(super) fn stats(manager: &Manager, args: &StatsArgs, printer: &Printer) -> anyhow::Result<Exit> {
    const EVERY: std::time::Duration = std::time::Duration::from_secs(1);
    let driven = super::find(manager, &args.id)?;
    let statistics = driven.able("tell what a sandbox uses", |driver: &dyn Driver| driver.statistics())?;
    loop {
        let stats = statistics.stats(&driven.id)?;
        match (args.json, args.follow) {
            (true, true) => printer.json_line(&stats)?,
            (true, false) => printer.json(&stats)?,
            (false, _) => printer.line(table(&stats))?,
        }
        if !args.follow {
            return Ok(Exit::OK);
        }
        std::thread::sleep(EVERY);
    }
}

fn table(stats: &Stats) -> String {
    let mut table = Table::headed(&["MEMORY", "PEAK", "PROCESSES", "PROCESSOR", "DISK"]);
    let bytes = |bytes: Option<u64>| {
        bytes.map_or_else(|| "-".to_owned(), |bytes| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)))
    };
    table.row([
        (DIM, bytes(stats.memory)),
        (DIM, bytes(stats.peak_memory)),
        (DIM, stats.pids.map_or_else(|| "-".into(), |pids| pids.to_string())),
        (DIM, stats.cpu_us.map_or_else(|| "-".into(), |micros| format!("{:.2} s", micros as f64 / 1e6))),
        (DIM, bytes(stats.disk)),
    ]);
    table.render()
}
