//! `redoma log [SESSION]`: the record of one session.

pub(crate) mod describe;

use redoma_audit::Record;

use super::record;
use crate::args::LogArgs;
use crate::exit::Exit;
use crate::printer::{DIM, Printer, paint};

/// Prints the events of one session; with `--follow`, until it ends.
///
/// The record's own lines (`--json`) are canonical JSON, where control characters are escaped.
pub(crate) fn log(args: &LogArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let store = record::open()?;
    let session = record::pick(&store, args.session.as_deref())?;
    let records = if args.follow { store.follow(session)? } else { store.read(session)? };
    for record in records {
        tell(&record?, args.json, printer)?;
    }
    Ok(Exit::OK)
}

fn tell(record: &Record, json: bool, printer: &Printer) -> anyhow::Result<()> {
    if json {
        printer.raw(format!("{}\n", record.json()).as_bytes())?;
        return Ok(());
    }
    let (style, kind, text) = describe::describe(&record.event);
    let time = paint(DIM, record::local_clock(record.at));
    printer.line(format_args!("{time} {} {text}", paint(style, format_args!("{kind:<13}"))))?;
    Ok(())
}
