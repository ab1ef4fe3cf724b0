//! `redoma redteam`: attacks the boundary of this machine from inside, with the harmless part of the threat list.
//!
//! Each attempt gets a planted tree of its own, a `redoma run` of this very program, and a look at the tree afterwards.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use redoma_redteam::{Attempt, Outcome, Planted, Stage};
use serde::Serialize;

use super::tier;
use crate::args::RedteamArgs;
use crate::exit::Exit;
use crate::failure::hinted;
use crate::printer::{BAD, BOLD, DIM, GOOD, Printer, Table};

#[derive(Serialize)]
struct Row {
    attempt: &'static str,
    what: &'static str,
    section: redoma_redteam::Section,
    tier: redoma_redteam::Tier,
    #[serde(flatten)]
    outcome: Outcome,
}

/// Makes all harmless attempts, or inside, the one that is named. Exits with 1 when one of them succeeded.
pub(crate) fn redteam(args: &RedteamArgs, printer: &Printer) -> anyhow::Result<Exit> {
    if let (Some(name), Some(stage)) = (&args.attempt, &args.stage) {
        return attempt_here(name, stage, printer);
    }
    let tier = tier::of_redteam(args.tier)?;
    let chosen = redoma_redteam::attempts().iter().filter(|one| one.harmless && one.tiers.contains(&tier));
    let rows =
        chosen.map(|one| Ok(row(one, tier, besiege(one, tier)?))).collect::<anyhow::Result<Vec<_>>>()?;
    let succeeded = rows.iter().filter(|row| matches!(row.outcome, Outcome::Succeeded { .. })).count();
    if args.json {
        printer.json(&rows)?;
    } else {
        printer.line(table(&rows).render())?;
        printer.line(format_args!("\n{} attempts, {succeeded} succeeded", rows.len()))?;
    }
    Ok(if succeeded == 0 { Exit::OK } else { Exit::FAILED })
}

/// Runs inside: makes one attempt and prints its outcome as one JSON line.
fn attempt_here(name: &str, stage: &str, printer: &Printer) -> anyhow::Result<Exit> {
    let stage = Stage::from_json(stage).context("--stage")?;
    let outcome = redoma_redteam::run_attempt(name, &stage)
        .ok_or_else(|| hinted(format!("there is no attempt {name}"), "redoma redteam --json"))?;
    printer.json_line(&outcome)?;
    Ok(Exit::OK)
}

/// Plants a tree, runs the attempt inside, and looks at the tree again.
fn besiege(attempt: &Attempt, tier: redoma_redteam::Tier) -> anyhow::Result<Outcome> {
    let place = tempfile::Builder::new().prefix("redoma-redteam-").tempdir()?;
    let root = place.path().join("root");
    std::fs::create_dir(&root)?;
    let planted = Planted::new(&root, tier)?;
    let policy = place.path().join("policy.toml");
    std::fs::write(&policy, planted.policy())?;
    let output =
        inside(attempt, &planted, &policy, tier)?.env("REDOMA_HOME", place.path().join("redoma")).output()?;
    let reported = serde_json::from_slice(&output.stdout);
    let inside = reported.or_else(|_| ended_early(attempt, &output))?;
    Ok(planted.verdict(attempt, inside))
}

/// `redoma run … -- redoma redteam --attempt NAME --stage JSON`.
fn inside(
    attempt: &Attempt,
    planted: &Planted,
    policy: &Path,
    tier: redoma_redteam::Tier,
) -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let tier = if tier == redoma_redteam::Tier::Full { "full" } else { "landlock" };
    let mut command = Command::new(&program);
    command
        .args(["run", "-q", "--no-undo", "--tier", tier, "--policy"])
        .arg(policy)
        .arg("--read")
        .arg(&program)
        .arg("--")
        .arg(&program)
        .args(["redteam", "--attempt", attempt.name, "--stage", &planted.stage().to_json()?])
        .current_dir(&planted.stage().project)
        .env("HOME", &planted.stage().home)
        .stdin(std::process::Stdio::null());
    Ok(command)
}

/// No outcome came back: the boundary killed the attempt on the way; or something broke, or there was no boundary, which
/// is no pass.
fn ended_early(attempt: &Attempt, output: &std::process::Output) -> anyhow::Result<Outcome> {
    let said = String::from_utf8_lossy(&output.stderr);
    let stopped = output.status.code().and_then(|code| attempt.stopped_by_end(code));
    stopped.ok_or_else(|| {
        let why = anyhow::anyhow!("{}: {}", output.status, said.trim());
        why.context(format!("the attempt {} ended without saying what came of it", attempt.name))
    })
}

fn row(attempt: &Attempt, tier: redoma_redteam::Tier, outcome: Outcome) -> Row {
    Row { attempt: attempt.name, what: attempt.what, section: attempt.section, tier, outcome }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::headed(&["ATTEMPT", "WHAT", "OUTCOME"]);
    for row in rows {
        let (style, outcome) = match &row.outcome {
            Outcome::Stopped { by } => (GOOD, format!("stopped by {by}")),
            Outcome::Succeeded { evidence } => (BAD, format!("SUCCEEDED: {evidence}")),
        };
        let outcome = redoma_audit::escape::printable(&outcome).into_owned();
        table.row([(BOLD, row.attempt.to_owned()), (DIM, row.what.to_owned()), (style, outcome)]);
    }
    table
}
