//! One file per verb.

mod completions;
mod man;
mod version;

use crate::args::Command;
use crate::exit::Exit;
use crate::printer::Printer;

/// Does what was typed.
pub(crate) fn dispatch(command: Command, printer: &Printer) -> anyhow::Result<Exit> {
    match command {
        Command::Completions(args) => completions::completions(&args, printer),
        Command::Man(args) => man::man(&args, printer),
        Command::Version(args) => version::version(&args, printer),
    }
}
