//! `redoma net export`: the network's record for other programs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::Context;
use redoma_audit::event::Question;
use redoma_audit::{Event, Records, SessionId, Store, export};

use crate::args::{ExportFormat, NetExportArgs};
use crate::commands::record;
use crate::exit::Exit;
use crate::printer::Printer;

/// Writes the network's part of one session's record.
pub(crate) fn export(args: &NetExportArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let store = record::open()?;
    let session = record::pick(&store, args.session.as_deref())?;
    match &args.output {
        None => write(args.format, &store, session, &mut io::stdout().lock())?,
        Some(path) => {
            let mut file = BufWriter::new(create(path)?);
            write(args.format, &store, session, &mut file)
                .and_then(|()| Ok(file.flush()?))
                .with_context(|| format!("cannot write {}", path.display()))?;
            printer.note(format_args!("written to {}", redoma_audit::escape::printable(path)));
        }
    }
    Ok(Exit::OK)
}

fn write(format: ExportFormat, store: &Store, session: SessionId, out: &mut dyn Write) -> anyhow::Result<()> {
    let records = store.read(session)?;
    match format {
        ExportFormat::Jsonl => lines(records, out)?,
        ExportFormat::Har => {
            let events = records.map(|record| Ok(record?.event)).collect::<anyhow::Result<Vec<_>>>()?;
            serde_json::to_writer_pretty(&mut *out, &export::har(session, events))?;
            out.write_all(b"\n")?;
        }
    }
    Ok(out.flush()?)
}

/// As they stand in the record, so that their hashes can still be compared.
fn lines(records: Records, out: &mut dyn Write) -> anyhow::Result<()> {
    for record in records {
        let record = record?;
        if is_about_the_network(&record.event) {
            writeln!(out, "{}", record.json())?;
        }
    }
    Ok(())
}

fn is_about_the_network(event: &Event) -> bool {
    match event {
        Event::Flow(_) | Event::Exchange(_) | Event::Dns(_) => true,
        Event::Decision(decision) => decision.question == Question::Connect,
        Event::Approval(approval) => approval.question == Question::Connect,
        _ => false,
    }
}

/// What was sent is nobody else's business, whatever was there before.
fn create(path: &Path) -> anyhow::Result<File> {
    let private = 0o600;
    let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = File::options();
    options.write(true).create(true).truncate(true).mode(private).custom_flags(nofollow);
    let opened = options.open(path).and_then(|file| {
        // A pipe or a device keeps what it has.
        if file.metadata()?.is_file() {
            file.set_permissions(std::fs::Permissions::from_mode(private))?;
        }
        Ok(file)
    });
    opened.with_context(|| format!("cannot write {}", path.display()))
}
