//! The `redoma` command.
//!
//! `args` says what can be typed, `commands` does it, one file per verb, `printer` is the way out, and `failure` says
//! what went wrong.

mod args;
mod commands;
mod exit;
mod failure;
mod printer;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    match commands::dispatch(cli.command, &printer::Printer) {
        Ok(exit) => exit.into(),
        Err(error) => failure::report(&error).into(),
    }
}
