//! `cargo xtask bench`: what Redoma costs, beside its peers, in one run on one machine.
//!
//! Contenders of a row take turns after a warm-up, so that a machine that slows down slows all of them.
//! Ratios are the result; absolute times only illustrate.

mod bed;
mod clock;
mod measure;
mod peers;
mod report;
mod rows;
mod sandboxes;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{self, cargo};
use crate::stage::{PATH, copy};
use crate::user;

pub(crate) use clock::{Options as ClockOptions, run as clock_run};

#[derive(clap::Args, Clone)]
pub(crate) struct Options {
    /// A tenth of the rounds: to see whether it works, not what it costs
    #[arg(long)]
    quick: bool,
    /// Only rows whose name contains this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// The folder with the built programs; set when xtask starts itself as the ordinary user
    #[arg(long, hide = true, value_name = "DIR")]
    staged: Option<PathBuf>,
}

/// Builds for release, then measures as an ordinary user.
pub(crate) fn run(options: &Options) -> Result<()> {
    match &options.staged {
        Some(stage) => measure(options, &bed::Bed::new(stage.clone())?),
        None => stage_and_measure(options),
    }
}

fn measure(options: &Options, bed: &bed::Bed) -> Result<()> {
    let results = rows::all(options, bed)?;
    report::table(&results);
    let json = serde_json::to_string_pretty(&report::json(&results))?;
    let path = bed.out().join("bench.json");
    fs::write(&path, json).with_context(|| format!("cannot write {}", path.display()))
}

fn stage_and_measure(options: &Options) -> Result<()> {
    let stage = tempfile::Builder::new().prefix("redoma-bench-").tempdir_in("/var/tmp")?;
    fs::set_permissions(stage.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let bin = stage.path().join("bin");
    fs::create_dir(&bin)?;
    build(&["--package=redoma-cli"], "redoma", &bin.join("redoma"))?;
    build(&["--package=xtask"], "xtask", &bin.join("xtask"))?;
    build(&["--package=redoma-audit", "--example=bench"], "examples/bench", &bin.join("audit-bench"))?;
    let out = stage.path().join("out");
    fs::create_dir(&out)?;
    process::run(&mut again(options, stage.path(), &out)?)?;
    let kept = process::target().join("bench.json");
    copy(&out.join("bench.json"), &kept)?;
    println!("written to {}", kept.display());
    Ok(())
}

fn build(what: &[&str], built: &str, staged: &Path) -> Result<()> {
    process::run(cargo().args(["build", "--release", "--locked"]).args(what))?;
    copy(&process::target().join("release").join(built), staged)
}

/// This program once more, from the stage, as the ordinary user when we are root.
fn again(options: &Options, stage: &Path, out: &Path) -> Result<Command> {
    let xtask = stage.join("bin/xtask");
    let mut command = if user::is_root() {
        let user = user::find()?.context("user redoma-test is missing; hint: cargo xtask setup")?;
        user.give(out)?;
        user.command(xtask, PATH.as_ref())
    } else {
        Command::new(xtask)
    };
    command.arg("bench").arg("--staged").arg(stage);
    if options.quick {
        command.arg("--quick");
    }
    if let Some(only) = &options.only {
        command.arg("--only").arg(only);
    }
    Ok(command)
}
