//! `redoma policy …`.

mod check;
mod diff;
mod init;
mod list;
mod schema;
mod show;
mod trust;

use redoma_audit::escape::{printable, printable_block};
use redoma_policy::Notice;

pub(crate) use check::check_source;

use crate::args::PolicyCommand;
use crate::exit::Exit;
use crate::printer::{Printer, WARN, paint};

/// Does what was typed after `policy`.
pub(crate) fn dispatch(command: PolicyCommand, printer: &Printer) -> anyhow::Result<Exit> {
    match command {
        PolicyCommand::Init(args) => init::init(&args, printer),
        PolicyCommand::Schema => schema::schema(printer),
        PolicyCommand::Diff(args) => diff::diff(&args, printer),
        PolicyCommand::Show(args) => show::show(&args, printer),
        PolicyCommand::Check(args) => check::check(&args, printer),
        PolicyCommand::Trust(args) => trust::trust(&args, printer),
        PolicyCommand::Profiles(args) => list::profiles(&args, printer),
        PolicyCommand::Agents(args) => list::agents(&args, printer),
    }
}

/// What the user should know about how the policy was resolved.
pub(crate) fn tell_notices<'a>(notices: impl Iterator<Item = &'a Notice> + Clone, printer: &Printer) {
    for notice in notices.clone() {
        let origin = notice.origin.as_ref().map(|origin| format!(" ({origin})")).unwrap_or_default();
        printer.note(format_args!(
            "{} {}{}",
            paint(WARN, "note:"),
            printable(&notice.message),
            printable(&origin)
        ));
    }
    let hints: std::collections::BTreeSet<_> = notices.filter_map(|notice| notice.hint.as_ref()).collect();
    for hint in hints {
        printer.hint(printable_block(hint));
    }
}
