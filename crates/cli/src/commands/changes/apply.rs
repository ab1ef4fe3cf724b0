//! `redoma changes apply`.

use redoma_sandbox::changes::{Applied, Change, Selection};
use redoma_sandbox::shell;

use super::Subject;
use crate::args::ChangesApplyArgs;
use crate::exit::Exit;
use crate::printer::{Printer, Table};
use crate::prompt;

/// Takes changes over into the project. Exits with 1 when some were left.
pub(super) fn apply(args: &ChangesApplyArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let subject = Subject::find_ended(args.pick.session.as_deref())?;
    let matcher = subject.matcher();
    let set = subject.set(&matcher);
    let selection = super::selection(&args.pick.paths)?;
    let force = if args.force.is_empty() { Selection::none() } else { Selection::of(&args.force)? };
    let changes: Vec<Change> = set.list()?;
    let wanted: Vec<_> = changes.iter().filter(|change| selection.has(&change.path)).collect();
    if wanted.is_empty() {
        printer.note("nothing to apply");
        return Ok(Exit::OK);
    }
    if !args.yes {
        let mut table = Table::default();
        wanted.iter().for_each(|change| table.row(super::cells(change)));
        printer.line(table.render())?;
        if !prompt::confirm("Apply these?", &unasked(args, &subject))? {
            return Ok(Exit::FAILED);
        }
    }
    let applied = set.apply(&selection, &force)?;
    tell(&applied, printer);
    Ok(if applied.conflicts.is_empty() && applied.refused.is_empty() { Exit::OK } else { Exit::FAILED })
}

/// The same again where nobody can be asked.
fn unasked(args: &ChangesApplyArgs, subject: &Subject) -> String {
    let typed = |flag: &'static str, values: &[String]| -> String {
        values.iter().map(|value| format!(" {flag} {}", shell::word(value))).collect()
    };
    let (paths, force) = (typed("--path", &args.pick.paths), typed("--force", &args.force));
    format!("redoma changes apply --yes{paths}{force} {}", subject.kept.session)
}

fn tell(applied: &Applied, printer: &Printer) {
    printer.note(format_args!("applied {} changes", applied.applied.len()));
    let left: Vec<_> = applied.refused.iter().chain(&applied.conflicts).collect();
    if !left.is_empty() {
        let mut table = Table::default();
        left.iter().for_each(|change| table.row(super::cells(change)));
        printer.note(format_args!("left {}:\n{}", left.len(), table.render()));
    }
    if let Some(first) = applied.conflicts.first() {
        printer.hint(format_args!("redoma changes apply --force {}", shell::word(&first.path)));
    }
}
