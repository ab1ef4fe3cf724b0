//! `cargo xtask test`: every check a contributor can run, in order, with a table at the end.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::docs;
use crate::generate;
use crate::process::{self, cargo, find};
use crate::stage::Stage;
use crate::user;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Skipping anything is a failure. Also set by CI=true.
    #[arg(long)]
    ci: bool,
}

/// What became of one step.
enum Outcome {
    Passed,
    Failed(String),
    Skipped(String),
}

struct Step {
    name: &'static str,
    outcome: Outcome,
    took: Duration,
}

/// Runs all steps, even after one failed: one run tells everything that is wrong.
pub(crate) fn run(options: &Options) -> Result<()> {
    let strict = options.ci || std::env::var("CI").is_ok_and(|value| value == "true");
    let mut steps = Vec::new();
    step(&mut steps, "format", format);
    step(&mut steps, "clippy", clippy);
    step(&mut steps, "dependencies", dependencies);
    if step(&mut steps, "build", build) {
        step(&mut steps, "generated files", generated);
        step(&mut steps, "documentation", documentation);
        suites(&mut steps, strict);
    }
    report(&steps);
    verdict(&steps, strict)
}

fn step(steps: &mut Vec<Step>, name: &'static str, action: impl FnOnce() -> Result<Outcome>) -> bool {
    println!("\n== {name}");
    let start = Instant::now();
    let outcome = action().unwrap_or_else(|error| Outcome::Failed(format!("{error:#}")));
    let passed = matches!(outcome, Outcome::Passed);
    steps.push(Step { name, outcome, took: start.elapsed() });
    passed
}

fn format() -> Result<Outcome> {
    process::run(cargo().args(["fmt", "--all", "--check"]))?;
    Ok(Outcome::Passed)
}

fn clippy() -> Result<Outcome> {
    process::run(cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--locked",
        "--",
        "-D",
        "warnings",
    ]))?;
    Ok(Outcome::Passed)
}

/// Licences, bans and sources only: advisories need a database that has to be fetched.
fn dependencies() -> Result<Outcome> {
    if find("cargo-deny").is_none() {
        return Ok(Outcome::Skipped("cargo-deny is missing: cargo xtask setup".into()));
    }
    process::run(cargo().args([
        "deny",
        "--locked",
        "check",
        "--hide-inclusion-graph",
        "bans",
        "licenses",
        "sources",
    ]))?;
    Ok(Outcome::Passed)
}

fn build() -> Result<Outcome> {
    if find("cargo-nextest").is_none() {
        bail!("cargo-nextest is missing: cargo xtask setup");
    }
    process::run(cargo().args(["build", "--locked", "--package", "redoma-cli"]))?;
    Ok(Outcome::Passed)
}

fn generated() -> Result<Outcome> {
    generate::run(&generate::Options { check: true })?;
    Ok(Outcome::Passed)
}

fn documentation() -> Result<Outcome> {
    docs::check(&process::target().join("debug/redoma"))?;
    Ok(Outcome::Passed)
}

/// The suites run the same test binaries, from one archive, as who we are and as an ordinary user.
fn suites(steps: &mut Vec<Step>, strict: bool) {
    let stage = match Stage::build(strict) {
        Ok(stage) => stage,
        Err(error) => {
            let outcome = Outcome::Failed(format!("{error:#}"));
            steps.push(Step { name: "stage", outcome, took: Duration::ZERO });
            return;
        }
    };
    if user::is_root() {
        step(steps, "all tests as root", || stage.run_here().map(|()| Outcome::Passed));
        step(steps, ORDINARY, || ordinary_user(&stage));
    } else {
        step(steps, ORDINARY, || stage.run_here().map(|()| Outcome::Passed));
        step(steps, "all tests as root", || Ok(Outcome::Skipped("sudo -E cargo xtask test".into())));
    }
    step(steps, "nothing skipped inside", || skipped_inside(&stage));
}

const ORDINARY: &str = "all tests as an ordinary user";

fn ordinary_user(stage: &Stage) -> Result<Outcome> {
    let Some(user) = user::find()? else {
        return Ok(Outcome::Skipped(format!("user {} is missing: cargo xtask setup", user::NAME)));
    };
    stage.run_as(&user)?;
    Ok(Outcome::Passed)
}

/// Tests that lack a tool write a line instead of passing in silence.
fn skipped_inside(stage: &Stage) -> Result<Outcome> {
    let skips = stage.skips()?;
    if skips.is_empty() { Ok(Outcome::Passed) } else { Ok(Outcome::Skipped(skips.join("; "))) }
}

fn report(steps: &[Step]) {
    println!("\n{:<32} {:>8}  result", "step", "seconds");
    for Step { name, outcome, took } in steps {
        let result = match outcome {
            Outcome::Passed => "passed".to_owned(),
            Outcome::Failed(why) => format!("FAILED   {why}"),
            Outcome::Skipped(why) => format!("SKIPPED  {why}"),
        };
        println!("{name:<32} {:>8.1}  {result}", took.as_secs_f64());
    }
}

fn verdict(steps: &[Step], strict: bool) -> Result<()> {
    let failed = steps.iter().filter(|step| matches!(step.outcome, Outcome::Failed(_))).count();
    let skipped = steps.iter().filter(|step| matches!(step.outcome, Outcome::Skipped(_))).count();
    match (failed, skipped) {
        (0, 0) => Ok(()),
        (0, _) if !strict => Ok(()),
        (0, _) => bail!("{skipped} step(s) skipped, which CI does not accept"),
        _ => bail!("{failed} step(s) failed"),
    }
}
