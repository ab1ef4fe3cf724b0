//! `redoma changes diff`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use redoma_audit::escape::{printable, printable_block};
use redoma_sandbox::changes::{Body, FileDiff};

use super::Subject;
use crate::args::PickArgs;
use crate::exit::Exit;
use crate::printer::{BAD, BOLD, DIM, GOOD, Printer, paint};

/// Shows changes as a unified diff; what is no text is summed up.
pub(super) fn diff(args: &PickArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let subject = Subject::find(args.session.as_deref())?;
    let matcher = subject.matcher();
    let set = subject.set(&matcher);
    let selection = super::selection(&args.paths)?;
    for file in set.diff(&selection)? {
        tell(&file, printer)?;
    }
    Ok(Exit::OK)
}

fn tell(file: &FileDiff, printer: &Printer) -> anyhow::Result<()> {
    let (style, verb) = super::verb(file.change.kind);
    let path = paint(BOLD, printable(&file.change.path));
    let note =
        super::obstacle(&file.change).map(|note| paint(DIM, format_args!(" ({note})"))).unwrap_or_default();
    printer.line(format_args!("{} {path}{note}", paint(style, verb)))?;
    if let (Some(old), Some(new)) = (file.old_mode, file.new_mode)
        && old != new
    {
        printer.line(format_args!("mode {old:o} → {new:o}"))?;
    }
    match &file.body {
        Body::None => {}
        Body::Text(text) => text.lines().try_for_each(|line| printer.line(coloured(line)))?,
        Body::Binary { old, new } => printer.line(format_args!("binary, {} → {}", size(*old), size(*new)))?,
        Body::Link { old, new } => {
            printer.line(format_args!("link {} → {}", target(old.as_deref()), target(new.as_deref())))?;
        }
    }
    Ok(())
}

/// A line of a diff; its text comes from inside.
fn coloured(line: &str) -> String {
    let shown = printable_block(line);
    match line.as_bytes().first() {
        Some(b'+') => paint(GOOD, shown),
        Some(b'-') => paint(BAD, shown),
        Some(b'@') => paint(DIM, shown),
        _ => shown.into_owned(),
    }
}

fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "nothing".to_owned(), |bytes| format!("{bytes} bytes"))
}

fn target(bytes: Option<&[u8]>) -> String {
    bytes.map_or_else(|| "nothing".to_owned(), |bytes| printable(OsStr::from_bytes(bytes)).into_owned())
}
