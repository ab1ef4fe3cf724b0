//! `redoma sessions`: what ran, newest first.

use clap::builder::styling::Style;
use redoma_audit::escape::printable;
use redoma_audit::event::SessionMeta;
use redoma_audit::{SessionState, SessionSummary, Store};
use serde::Serialize;

use super::log::describe::{outcome, seconds};
use super::record;
use crate::args::SessionsArgs;
use crate::exit::Exit;
use crate::printer::{BAD, BOLD, DIM, GOOD, Printer, Table, WARN, paint};

#[derive(Serialize)]
struct Row<'a> {
    session: redoma_audit::SessionId,
    state: &'static str,
    started: Option<String>,
    records: u64,
    start: Option<&'a SessionMeta>,
    end: Option<&'a redoma_audit::event::SessionEnd>,
}

/// Lists sessions.
pub(crate) fn sessions(args: &SessionsArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let store = record::open()?;
    if args.verify {
        return verify(&store, args.json, printer);
    }
    let newest = store.sessions()?.take(args.limit.unwrap_or(usize::MAX));
    let sessions = newest.collect::<Result<Vec<_>, _>>()?;
    if args.json {
        printer.json(&sessions.iter().map(row).collect::<Vec<_>>())?;
    } else if sessions.is_empty() {
        printer.note("no session yet");
        printer.hint("redoma run --net none -- true");
    } else {
        let mut table = Table::headed(&["SESSION", "STARTED", "TOOK", "END", "COMMAND"]);
        sessions.iter().for_each(|session| table.row(cells(session)));
        printer.line(table.render())?;
    }
    Ok(Exit::OK)
}

#[derive(Serialize)]
struct Verified {
    sessions: u64,
    records: u64,
    bytes: u64,
    keys: Vec<String>,
    findings: Vec<String>,
}

/// Checks the whole record. Exits with 1 when something is wrong with it.
pub(super) fn verify(store: &Store, json: bool, printer: &Printer) -> anyhow::Result<Exit> {
    let report = store.verify()?;
    let findings: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
    let sound = findings.is_empty();
    let verified = Verified {
        sessions: report.sessions,
        records: report.records,
        bytes: report.bytes,
        keys: report.keys,
        findings,
    };
    if json {
        printer.json(&verified)?;
    } else {
        let Verified { sessions, records, keys, findings, .. } = verified;
        findings.iter().try_for_each(|finding| {
            printer.line(format_args!("{} {}", paint(BAD, "wrong:"), printable(finding)))
        })?;
        let verdict = if sound { paint(GOOD, "sound:") } else { paint(BAD, "not sound:") };
        printer.line(format_args!(
            "{verdict} {sessions} sessions, {records} records, signed with {}",
            keys.join(", ")
        ))?;
    }
    Ok(if sound { Exit::OK } else { Exit::FAILED })
}

fn row(session: &SessionSummary) -> Row<'_> {
    Row {
        session: session.session,
        state: state(session.state),
        started: session.started.map(|time| time.to_string()),
        records: session.records,
        start: session.meta.as_ref(),
        end: session.end.as_ref(),
    }
}

fn state(state: SessionState) -> &'static str {
    match state {
        SessionState::Running => "running",
        SessionState::Ended => "ended",
        SessionState::Unfinished => "unfinished",
    }
}

fn cells(session: &SessionSummary) -> [(Style, String); 5] {
    let started = session.started.map(record::local_time).unwrap_or_default();
    let took = session.end.as_ref().map(|end| seconds(end.usage.wall_us)).unwrap_or_default();
    let command = session.meta.as_ref().map(|meta| meta.argv.to_string()).unwrap_or_default();
    [
        (BOLD, session.session.to_string()),
        (DIM, started),
        (Style::new(), took),
        ending(session),
        (Style::new(), shortened(&command)),
    ]
}

/// How it ended; of a session whose keeper died, that it did not.
fn ending(session: &SessionSummary) -> (Style, String) {
    match (&session.end, session.state) {
        (Some(end), _) => {
            let text = outcome(&end.outcome);
            (if text == "ok" { GOOD } else { BAD }, text)
        }
        (None, SessionState::Running) => (WARN, "running".to_owned()),
        (None, _) => (BAD, "unfinished".to_owned()),
    }
}

/// One line of a list; the whole command is in the log.
fn shortened(command: &str) -> String {
    match command.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &command[..end]),
        None => command.to_owned(),
    }
}
