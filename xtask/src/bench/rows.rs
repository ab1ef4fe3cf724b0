//! What is measured. Each row is one question a user could ask.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};

use super::bed::Bed;
use super::measure::{Contender, Finding, Mark, Row, alternate};
use super::{Options, peers, sandboxes};
use crate::setup::TOOLCHAIN;

/// One row: where to measure, and by what to divide the rounds.
type Measure = fn(&Bed, usize) -> Result<Row>;

/// Runs every row that was asked for.
pub(crate) fn all(options: &Options, bed: &Bed) -> Result<Vec<Row>> {
    let rows: [(&str, Measure); 11] = [
        ("start", start),
        ("default-profile", default_profile),
        ("git-status", git_status),
        ("cargo-check", cargo_check),
        ("npm-ci", npm_ci),
        ("forks", forks),
        ("deny-globs", deny_globs),
        ("record", record),
        ("sandbox-exec", sandboxes::exec),
        ("sandbox-life", sandboxes::life),
        ("sandbox-freeze", sandboxes::freeze),
    ];
    let wanted = rows.iter().filter(|(name, _)| options.only.as_ref().is_none_or(|only| name.contains(only)));
    let divisor = if options.quick { 10 } else { 1 };
    wanted.map(|(name, row)| row(bed, divisor).with_context(|| format!("row {name}"))).collect()
}

/// `redoma run` with these options, up to and with `--`.
fn redoma(bed: &Bed, project: &Path, options: &[&str]) -> Command {
    let mut command = bed.command(project, bed.program("redoma"));
    command.args(["--quiet", "run"]).args(options).arg("--");
    command
}

fn with(mut command: Command, words: &[&str]) -> Command {
    command.args(words);
    command
}

fn settings(bed: &Bed, name: &str, domains: &[&str], deny_read: &[&str]) -> Result<std::path::PathBuf> {
    let path = bed.out().join(name);
    let content = serde_json::json!({
        "network": {"allowedDomains": domains, "deniedDomains": []},
        "filesystem": {"denyRead": deny_read, "allowWrite": ["."], "denyWrite": []},
    });
    fs::write(&path, content.to_string())?;
    Ok(path)
}

fn start(bed: &Bed, divisor: usize) -> Result<Row> {
    let project = &bed.small()?;
    let closed = &settings(bed, "srt-closed.json", &[], &[])?;
    let contenders = vec![
        Contender::process("bare", || bed.command(project, "true")),
        Contender::process("redoma", || with(redoma(bed, project, &["--net", "none"]), &["true"])),
        // Strict, for this tier refuses a write grant with a protected `.git/config` below it.
        Contender::process("redoma, tier landlock", || {
            with(
                redoma(bed, project, &["--net", "none", "--tier", "landlock", "--profile", "strict"]),
                &["true"],
            )
        }),
        Contender::process("bwrap", || with(peers::bwrap(bed, project, &[]), &["true"])),
        Contender::process("nono", || with(peers::nono(bed, project), &["true"])),
        Contender::process("codex", || with(peers::codex(bed, project), &["true"])),
        Contender::process("srt", || with(peers::srt(bed, project, closed), &["true"])),
    ];
    let marks = vec![
        Mark::AtMost(1.3, "bwrap"),
        Mark::Faster(4.0, "nono"),
        Mark::Faster(12.0, "codex"),
        Mark::Faster(40.0, "srt"),
    ];
    Ok(alternate("start and end: `run --net none -- true`", 100 / divisor, contenders, marks))
}

fn default_profile(bed: &Bed, divisor: usize) -> Result<Row> {
    let project = &bed.ten_thousand()?;
    let open = &settings(bed, "srt-open.json", &["example.com"], &[])?;
    let contenders = vec![
        Contender::process("redoma", || with(redoma(bed, project, &[]), &["true"])),
        Contender::process("redoma, no undo", || with(redoma(bed, project, &["--no-undo"]), &["true"])),
        Contender::process("bwrap", || with(peers::bwrap(bed, project, &[]), &["true"])),
        Contender::process("srt", || with(peers::srt(bed, project, open), &["true"])),
    ];
    let work = "start and end with the default profile in a repository of 10,000 files";
    Ok(alternate(work, 50 / divisor, contenders, vec![Mark::AtMost(2.0, "bwrap")]))
}

/// A command timed by a clock inside, so that starting the sandbox does not count.
fn cost(
    work: &'static str,
    rounds: usize,
    (bed, project): (&Bed, &Path),
    before: Option<&str>,
    words: &[&str],
) -> Row {
    let clock = |mut command: Command| -> Result<Duration> {
        command.arg("clock");
        if let Some(script) = before {
            command.arg("--before").arg(script);
        }
        command.arg("--").args(words).stdin(Stdio::null());
        printed_time(&mut command)
    };
    let (xtask, programs) = (&bed.program("xtask"), &bed.programs());
    let shown = [Path::new(programs), Path::new(TOOLCHAIN)];
    let inside = |tier: &str| {
        let options = ["--net", "none", "--no-undo", "--read", programs, "--read", TOOLCHAIN, "--tier", tier];
        with(redoma(bed, project, &options), &[xtask])
    };
    let contenders = vec![
        Contender::by("bare", || clock(bed.command(project, xtask))),
        Contender::by("redoma", || clock(inside("full"))),
        Contender::by("redoma, tier landlock", || clock(inside("landlock"))),
        Contender::by("bwrap", || clock(with(peers::bwrap(bed, project, &shown), &[xtask]))),
    ];
    alternate(work, rounds, contenders, vec![Mark::AtMost(1.05, "bare")])
}

fn printed_time(command: &mut Command) -> Result<Duration> {
    let printed = crate::process::output(command)?;
    Ok(Duration::from_nanos(printed.trim().parse().context("the clock inside printed no number")?))
}

fn git_status(bed: &Bed, divisor: usize) -> Result<Row> {
    let project = bed.ten_thousand()?;
    Ok(cost("cost of `git status` on 10,000 files", 40 / divisor, (bed, &project), None, &["git", "status"]))
}

fn cargo_check(bed: &Bed, divisor: usize) -> Result<Row> {
    let project = bed.rust_crate()?;
    let before = Some("rm -rf target");
    let words = ["cargo", "check", "--offline", "--quiet"];
    Ok(cost("cost of `cargo check` on a crate of 300 files", 20 / divisor, (bed, &project), before, &words))
}

fn npm_ci(bed: &Bed, divisor: usize) -> Result<Row> {
    let project = bed.node_project()?;
    let words = ["npm", "ci", "--install-links", "--offline", "--no-audit", "--no-fund"];
    let before = Some("rm -rf node_modules");
    Ok(cost("cost of `npm ci` with 50 local packages", 10 / divisor, (bed, &project), before, &words))
}

fn forks(bed: &Bed, divisor: usize) -> Result<Row> {
    let project = bed.rust_crate()?;
    let script = "i=0; while [ $i -lt 5000 ]; do /bin/true; i=$((i+1)); done";
    Ok(cost(
        "cost of starting `true` 5,000 times",
        20 / divisor,
        (bed, &project),
        None,
        &["sh", "-c", script],
    ))
}

/// Starting in 278,000 files against starting in one: the difference is the walk for deny patterns.
fn deny_globs(bed: &Bed, divisor: usize) -> Result<Row> {
    let (small, large) = (&bed.small()?, &bed.monorepo()?);
    let denied = &settings(bed, "srt-deny.json", &[], &["**/.env*"])?;
    let options = ["--net", "none", "--no-undo"];
    let run = |project: &Path| super::clock::time(&mut with(redoma(bed, project, &options), &["true"]));
    let walk = |cold: bool| -> Result<Duration> {
        let base = run(small)?;
        if cold {
            forget_walks(bed)?;
        }
        Ok(run(large)?.saturating_sub(base))
    };
    let contenders = vec![
        Contender::by("redoma, cold", || walk(true)),
        Contender::by("redoma, warm", || walk(false)),
        Contender::process("srt, whole start", || with(peers::srt(bed, large, denied), &["true"])),
    ];
    let marks = vec![
        Mark::Within(Duration::from_millis(300), "redoma, cold"),
        Mark::Within(Duration::from_millis(20), "redoma, warm"),
    ];
    Ok(alternate("deny patterns over 278,000 files, beyond a plain start", 20 / divisor, contenders, marks))
}

/// Cold means without Redoma's own memory of an earlier walk.
fn forget_walks(bed: &Bed) -> Result<()> {
    let cache = bed.redoma_home().join("state/cache");
    if cache.exists() {
        fs::remove_dir_all(&cache).with_context(|| format!("cannot empty {}", cache.display()))?;
    }
    Ok(())
}

/// The audit crate measures itself; its rates are turned into the time for what the mark counts.
fn record(bed: &Bed, divisor: usize) -> Result<Row> {
    let mut bench = bed.command(bed.home(), bed.program("audit-bench"));
    let printed = crate::process::output(bench.arg((1_000_000 / divisor).to_string()))?;
    let figures: serde_json::Value =
        serde_json::from_str(&printed).context("the audit bench printed no JSON")?;
    let seconds = |name: &str, of: &dyn Fn(f64) -> f64| match figures[name].as_f64() {
        Some(figure) => Finding::Median(Duration::from_secs_f64(of(figure))),
        None => Finding::Missing(format!("no {name} in {printed}")),
    };
    Ok(Row {
        work: "the record",
        results: vec![
            ("append 200,000 events", seconds("append_events_per_second", &|rate| 200_000.0 / rate)),
            ("verify 500 MB", seconds("verify_megabytes_per_second", &|rate| 500.0 / rate)),
            ("its share of a short run", seconds("run_microseconds", &|micros| micros / 1e6)),
        ],
        marks: vec![
            Mark::Within(Duration::from_secs(1), "append 200,000 events"),
            Mark::Within(Duration::from_secs(1), "verify 500 MB"),
            Mark::Within(Duration::from_micros(300), "its share of a short run"),
        ],
    })
}
