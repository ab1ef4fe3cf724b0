//! What a contributor runs: `cargo xtask setup | test | bench | generate`.
//!
//! Each recipe is also what CI runs, so that a failure there can be repeated here with the same words.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "xtask talks to the person who runs it")]

mod bench;
mod docs;
mod generate;
mod process;
mod setup;
mod stage;
mod test;
mod user;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Recipes for contributors")]
struct Cli {
    #[command(subcommand)]
    recipe: Recipe,
}

#[derive(Subcommand)]
enum Recipe {
    /// Install what the tests need on Debian or Ubuntu. Safe to run again.
    Setup(setup::Options),
    /// Run everything a contributor can run, and say loudly what had to be skipped.
    Test(test::Options),
    /// Measure what Redoma costs, beside its peers.
    Bench(bench::Options),
    /// Write the CLI reference, the policy schema, completions and manual pages from the program.
    Generate(generate::Options),
    /// Print how long a command took, in nanoseconds; used by bench inside a sandbox.
    #[command(hide = true)]
    Clock(bench::ClockOptions),
}

fn main() -> ExitCode {
    match run(Cli::parse().recipe) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(recipe: Recipe) -> anyhow::Result<()> {
    match recipe {
        Recipe::Setup(options) => setup::run(&options),
        Recipe::Test(options) => test::run(&options),
        Recipe::Bench(options) => bench::run(&options),
        Recipe::Generate(options) => generate::run(&options),
        Recipe::Clock(options) => bench::clock_run(&options),
    }
}
