//! `redoma completions SHELL`.

use clap::CommandFactory;

use crate::args::{Cli, CompletionsArgs};
use crate::exit::Exit;
use crate::printer::Printer;

/// Prints the script that a shell sources.
pub(crate) fn completions(args: &CompletionsArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "redoma", &mut script);
    printer.raw(&script)?;
    Ok(Exit::OK)
}
