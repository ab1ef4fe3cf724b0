//! `redoma changes discard`.

use super::Subject;
use crate::args::ChangesDiscardArgs;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::prompt;

/// Throws a session's changes away.
pub(super) fn discard(args: &ChangesDiscardArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let subject = Subject::find_ended(args.session.as_deref())?;
    let session = subject.kept.session;
    let matcher = subject.matcher();
    let set = subject.set(&matcher);
    let count = set.list().map_or(0, |changes| changes.len());
    let question = format!("Throw {count} changes of session {session} away?");
    if !args.yes && !prompt::confirm(&question, &format!("redoma changes discard --yes {session}"))? {
        return Ok(Exit::FAILED);
    }
    set.discard()?;
    printer.note(format_args!("discarded the changes of session {session}"));
    Ok(Exit::OK)
}
