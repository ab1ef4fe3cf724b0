//! What the log costs: events appended and bytes verified in a second, and the share of a short run.
//!
//! `cargo run --release -p redoma-audit --example bench [EVENTS]` prints one JSON object.

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use redoma_audit::event::{FileAction, FileEvent, Outcome, SessionEnd, SessionMeta, Tier, Usage};
use redoma_audit::{Argv, Digest, Event, SessionId, Store};

const RUNS: u32 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let events: u32 = std::env::args().nth(1).map_or(Ok(1_000_000), |text| text.parse())?;
    let dir = tempfile::tempdir()?;
    let store = open(dir.path())?;
    let append = append(&store, events)?;
    let started = cpu();
    let report = store.verify()?;
    let verify = cpu() - started;
    assert!(report.severity().is_none(), "{:?}", report.findings);
    let run = median(|| run(dir.path()))?;
    let result = serde_json::json!({
        "append_events_per_second": (f64::from(events) / append.as_secs_f64()).round(),
        "verify_megabytes_per_second": (report.bytes as f64 / verify.as_secs_f64() / 1e6).round(),
        "run_microseconds": run.as_secs_f64() * 1e6,
        "events": events,
        "bytes": report.bytes,
    });
    writeln!(std::io::stdout(), "{result}")?;
    Ok(())
}

/// The processor time of this thread, kernel included: what the marks are set in, and steady on a busy machine.
fn cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}

/// Events as a busy sensor makes them, text and all.
fn append(store: &Store, events: u32) -> Result<Duration, Box<dyn Error>> {
    let mut log = store.begin(meta()?)?;
    let started = cpu();
    for number in 0..events {
        log.append(&event(number))?;
    }
    let elapsed = cpu() - started;
    log.end(end())?;
    Ok(elapsed)
}

/// All that this crate does in `redoma run -- true`, in a process that has just started.
fn run(dir: &Path) -> Result<(), Box<dyn Error>> {
    let mut log = open(dir)?.begin(meta()?)?;
    (0..3).try_for_each(|number| log.append(&event(number)))?;
    log.end(end())?;
    Ok(())
}

fn median(mut work: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<Duration, Box<dyn Error>> {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let started = Instant::now();
        work()?;
        times.push(started.elapsed());
    }
    times.sort();
    Ok(times[times.len() / 2])
}

fn open(dir: &Path) -> Result<Store, redoma_audit::Error> {
    Store::open(&dir.join("state"), &dir.join("keys"))
}

fn event(number: u32) -> Event {
    Event::File(FileEvent {
        action: FileAction::Changed,
        path: format!("/home/a/project/node_modules/package-{number}/dist/index.js").into(),
        moved_to: None,
        pid: Some(number),
    })
}

fn meta() -> Result<SessionMeta, redoma_audit::Error> {
    Ok(SessionMeta {
        session: SessionId::random()?,
        version: "0.1.0".into(),
        argv: Argv::new(["true"]),
        cwd: "/home/a/project".into(),
        project: None,
        agent: None,
        sandbox: None,
        driver: "native".into(),
        tier: Tier::Full,
        net: "none".into(),
        policy: Digest::of(b""),
        uid: 1000,
        keeper: std::process::id(),
        kernel: "6.18".into(),
    })
}

fn end() -> SessionEnd {
    SessionEnd { outcome: Outcome::Exited { code: 0 }, usage: Usage::default() }
}
