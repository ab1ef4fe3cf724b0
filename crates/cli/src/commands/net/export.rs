//! `redoma net export`: the network's record for other programs.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use anyhow::Context;
use redoma_audit::escape::printable;
use redoma_audit::event::Question;
use redoma_audit::{Event, Records, SessionId, Store, export};

use crate::args::{ExportFormat, NetExportArgs};
use crate::commands::record;
use crate::exit::Exit;
use crate::failure::hinted;
use crate::printer::Printer;

/// Writes itself.
type Export = Box<dyn FnOnce(&mut dyn Write) -> anyhow::Result<()>>;

/// Writes the network's part of one session's record.
pub(crate) fn export(args: &NetExportArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let store = record::open()?;
    let session = record::pick(&store, args.session.as_deref())?;
    // Before a file is written over: there may be nothing to write.
    let export = open(args.format, &store, session)?;
    let Some(path) = &args.output else {
        refuse_terminal(args.format, session)?;
        export(&mut io::stdout().lock())?;
        return Ok(Exit::OK);
    };
    let mut file = BufWriter::new(create(path)?);
    export(&mut file)
        .and_then(|()| Ok(file.flush()?))
        .with_context(|| format!("cannot write {}", path.display()))?;
    printer.note(format_args!("written to {}", printable(path)));
    Ok(Exit::OK)
}

fn open(format: ExportFormat, store: &Store, session: SessionId) -> anyhow::Result<Export> {
    Ok(match format {
        ExportFormat::Jsonl => {
            let records = store.read(session)?;
            Box::new(|out| lines(records, out))
        }
        ExportFormat::Har => {
            let records = store.read(session)?;
            let events = records.map(|record| Ok(record?.event)).collect::<anyhow::Result<Vec<_>>>()?;
            Box::new(move |mut out| {
                serde_json::to_writer_pretty(&mut out, &export::har(session, events))?;
                Ok(out.write_all(b"\n")?)
            })
        }
        ExportFormat::Pcapng => {
            let mut file = capture(store, session)?;
            Box::new(move |out| Ok(io::copy(&mut file, out).map(drop)?))
        }
    })
}

/// What nobody can read should not be shown.
fn refuse_terminal(format: ExportFormat, session: SessionId) -> anyhow::Result<()> {
    if format != ExportFormat::Pcapng || !io::stdout().is_terminal() {
        return Ok(());
    }
    let hint = format!("redoma net export --format pcapng {session} -o {session}.pcapng");
    Err(hinted("a capture is not for a terminal", hint))
}

/// As they stand in the record, so that their hashes can still be compared.
fn lines(records: Records, out: &mut dyn Write) -> anyhow::Result<()> {
    for record in records {
        let record = record?;
        if is_about_the_network(&record.event) {
            writeln!(out, "{}", record.json())?;
        }
    }
    Ok(out.flush()?)
}

fn capture(store: &Store, session: SessionId) -> anyhow::Result<File> {
    store.capture(session)?.ok_or_else(|| {
        let how = "redoma run --capture --allow example.com -- curl https://example.com/";
        hinted(format!("session {session} kept nothing of what went over the network"), how)
    })
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
