//! The `redoma` command.
//!
//! `args` says what can be typed, `commands` does it, one file per verb, `printer` is the way out, and `failure` says
//! what went wrong.

mod args;
mod commands;
mod exit;
mod failure;
mod layers;
mod printer;
mod prompt;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    if let args::Command::Guest(guest) = &cli.command {
        return redoma_oci::guest(&guest.words);
    }
    let printer = printer::Printer::new(cli.quiet);
    let runs = cli.command.runs_a_command();
    let started_nothing = runs.then_some(exit::Exit::NO_BOUNDARY);
    match commands::dispatch(cli.command, &printer) {
        Ok(exit) => exit.into(),
        Err(error) => failure::report(&error, started_nothing.unwrap_or(exit::Exit::FAILED)).into(),
    }
}
