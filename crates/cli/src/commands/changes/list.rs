//! `redoma changes [list]`.

use redoma_sandbox::changes::Change;
use serde::Serialize;

use super::Subject;
use crate::args::ChangesListArgs;
use crate::exit::Exit;
use crate::printer::{BOLD, Printer, Table, paint};

#[derive(Serialize)]
struct Row {
    path: String,
    kind: &'static str,
    obstacle: Option<String>,
}

/// Lists what waits to be applied.
pub(super) fn list(args: &ChangesListArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let subject = Subject::find(args.session.as_deref())?;
    let matcher = subject.matcher();
    let set = subject.set(&matcher);
    let changes = set.list()?;
    if args.json {
        printer.json(&changes.iter().map(row).collect::<Vec<_>>())?;
    } else if changes.is_empty() {
        printer.note(format_args!("session {} changed nothing that waits", subject.kept.session));
    } else {
        let mut table = Table::default();
        changes.iter().for_each(|change| table.row(super::cells(change)));
        printer.line(paint(BOLD, format_args!("session {}", subject.kept.session)))?;
        printer.line(table.render())?;
        printer.hint(format_args!("redoma changes apply {}", subject.kept.session));
    }
    Ok(Exit::OK)
}

fn row(change: &Change) -> Row {
    Row {
        path: change.path.to_string_lossy().into_owned(),
        kind: super::verb(change.kind).1,
        obstacle: super::obstacle(change),
    }
}
