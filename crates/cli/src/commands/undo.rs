//! `redoma undo [SESSION]`: the project as it was before a session.

use std::time::SystemTime;

use clap::builder::styling::Style;
use redoma_audit::escape::printable;
use redoma_sandbox::Kept;
use redoma_sandbox::homes::Homes;
use redoma_sandbox::undo::{self, Action, Backup, Limits, Plan, Step, Undone};
use serde::Serialize;

use super::kept;
use crate::args::UndoArgs;
use crate::exit::Exit;
use crate::failure::hinted;
use crate::printer::{BAD, BOLD, DIM, GOOD, Printer, Table, WARN, paint};
use crate::prompt;

/// Steps shown before the rest is only counted.
const SHOWN: usize = 40;

#[derive(Serialize)]
struct Told<'a> {
    session: redoma_audit::SessionId,
    project: &'a std::path::Path,
    applied: bool,
    steps: Vec<ToldStep>,
    ignored: u64,
}

#[derive(Serialize)]
struct ToldStep {
    path: String,
    action: &'static str,
    changed_later: bool,
}

/// Shows what would be done, asks, and does it. The present state is kept, so that this can be undone as well.
pub(crate) fn undo(args: &UndoArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let homes = Homes::from_env()?;
    let (kept, backup) = subject(args, &homes)?;
    kept::must_have_ended(&kept, &homes)?;
    let plan = undo::plan(&backup, kept.ended.map(|ended| SystemTime::UNIX_EPOCH + ended))?;
    if !args.json {
        show(&kept, &plan, printer)?;
    }
    let nothing = plan.steps.is_empty();
    let go = !nothing && !args.dry_run && (args.yes || asked(&kept, &plan)?);
    let undone = go.then(|| undo::apply(&backup, &Limits::default(), true)).transpose()?;
    if args.json {
        printer.json(&told(&kept, &plan, undone.is_some()))?;
    }
    if let Some(undone) = undone {
        finish(&kept, undone, &homes, printer)?;
    }
    Ok(if nothing || go || args.dry_run { Exit::OK } else { Exit::FAILED })
}

fn subject(args: &UndoArgs, homes: &Homes) -> anyhow::Result<(Kept, Backup)> {
    // Without a name an undo is not itself undone: going back twice means two sessions back.
    let fits = |kept: &Kept| kept.backup.is_some() && (args.session.is_some() || kept.undid.is_none());
    let found = kept::pick(homes, args.session.as_deref(), fits)?;
    let with_backup = found.and_then(|mut kept| kept.backup.take().map(|backup| (kept, backup)));
    with_backup.ok_or_else(|| hinted("there is no session here that can be undone", "redoma sessions"))
}

fn show(kept: &Kept, plan: &Plan, printer: &Printer) -> anyhow::Result<()> {
    let project = printable(&kept.project);
    if plan.steps.is_empty() {
        printer.note(format_args!("{project} is as it was before session {}", kept.session));
        return Ok(());
    }
    printer.line(paint(BOLD, format_args!("{project}, back to before session {}", kept.session)))?;
    let mut table = Table::default();
    plan.steps.iter().take(SHOWN).for_each(|step| table.row(cells(step)));
    printer.line(table.render())?;
    if plan.steps.len() > SHOWN {
        printer.line(paint(DIM, format_args!("… and {} more", plan.steps.len() - SHOWN)))?;
    }
    if kept.ended.is_none() {
        printer.note(
            "the session was killed, nobody knows when: what was changed after it does not show as such",
        );
    }
    if plan.ignored > 0 {
        printer.note(format_args!("{} ignored by git stay as they are", plan.ignored));
    }
    Ok(())
}

fn cells(step: &Step) -> [(Style, String); 3] {
    let (style, verb) = match step.action {
        Action::Restore => (GOOD, "restore"),
        Action::Replace => (WARN, "replace"),
        Action::Mode => (WARN, "mode"),
        Action::Remove => (BAD, "remove"),
    };
    let later = if step.changed_later { "changed after the session" } else { "" };
    [(style, verb.to_owned()), (WARN, later.to_owned()), (Style::new(), name(step))]
}

fn name(step: &Step) -> String {
    if step.path.as_os_str().is_empty() { ".".to_owned() } else { printable(&step.path).into_owned() }
}

fn asked(kept: &Kept, plan: &Plan) -> anyhow::Result<bool> {
    let later = plan.steps.iter().filter(|step| step.changed_later).count();
    let question = match later {
        0 => "Bring this back?".to_owned(),
        _ => format!("{later} of these changed after the session: undo that, too?"),
    };
    prompt::confirm(&question, &format!("redoma undo --yes {}", kept.session))
}

fn finish(kept: &Kept, undone: Undone, homes: &Homes, printer: &Printer) -> anyhow::Result<()> {
    for folder in &undone.left {
        printer.note(format_args!("left, since it holds ignored files: {}", printable(folder)));
    }
    printer.note(format_args!("undid session {} ({} paths)", kept.session, undone.steps.len()));
    if let Some(before) = undone.before {
        let again = Kept::of_undo(kept.session, &kept.project, before)?;
        again.save(homes)?;
        printer.note("the state before the undo is kept as well");
        printer.hint(format_args!("redoma undo {}", again.session));
    }
    Ok(())
}

fn told<'a>(kept: &'a Kept, plan: &Plan, applied: bool) -> Told<'a> {
    let steps = plan.steps.iter().map(|step| ToldStep {
        path: step.path.to_string_lossy().into_owned(),
        action: match step.action {
            Action::Restore => "restore",
            Action::Replace => "replace",
            Action::Mode => "mode",
            Action::Remove => "remove",
        },
        changed_later: step.changed_later,
    });
    Told {
        session: kept.session,
        project: &kept.project,
        applied,
        steps: steps.collect(),
        ignored: plan.ignored,
    }
}
