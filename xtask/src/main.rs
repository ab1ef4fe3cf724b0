//! What a contributor runs: `cargo xtask setup | test | bench | generate`.
//!
//! Each recipe is also what CI runs, so that a failure there can be repeated here with the same words.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "xtask talks to the person who runs it")]

mod process;
mod setup;
mod stage;
mod test;
mod user;

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
    Setup,
    /// Run everything a contributor can run, and say loudly what had to be skipped.
    Test(test::Options),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().recipe {
        Recipe::Setup => setup::run(),
        Recipe::Test(options) => test::run(&options),
    }
}
