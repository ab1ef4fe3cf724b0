//! Several processes, processes that are killed, and a full disk. Each child is this test program, started for one
//! of the ignored tests below.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use redoma_audit::verify::Severity;
use redoma_audit::{Error, SessionState};

use super::*;

const DIR: &str = "REDOMA_TEST_DIR";

/// How this program is started for one of its ignored tests.
fn arguments(test: &str) -> [String; 4] {
    ["--ignored".into(), "--exact".into(), "--nocapture".into(), format!("process::{test}")]
}

fn start(test: &str, dir: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(arguments(test)).env(DIR, dir).stdout(Stdio::piped()).spawn().unwrap()
}

fn child_dir() -> PathBuf {
    std::env::var_os(DIR).expect("started by another test").into()
}

#[test]
fn writers_in_many_processes_share_one_ledger_from_the_first_key_on() {
    let dir = tempfile::tempdir().unwrap();
    let children: Vec<Child> = (0..4).map(|_| start("child_that_runs_sessions", dir.path())).collect();
    for child in children {
        assert!(child.wait_with_output().unwrap().status.success());
    }
    let store = open(dir.path());
    let report = store.verify().unwrap();
    assert_eq!((report.sessions, report.findings), (4 * 25, vec![]));
    assert_eq!(lines(&dir.path().join("state/audit/ledger.jsonl")).len(), 4 * 25 * 2);
}

#[test]
#[ignore = "a child of another test"]
fn child_that_runs_sessions() {
    let store = open(&child_dir());
    for number in 0..25 {
        let mut log = store.begin(meta()).unwrap();
        log.append(&event(number)).unwrap();
        log.end(end()).unwrap();
    }
}

#[test]
fn verification_holds_while_sessions_come_and_go() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut child = start("child_that_runs_sessions", dir.path());
    while child.try_wait().unwrap().is_none() {
        assert_eq!(store.verify().unwrap().findings, []);
    }
    assert_eq!(store.verify().unwrap().sessions, 25);
}

#[test]
fn a_killed_keeper_leaves_a_readable_log_that_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut child = start("child_that_never_ends", dir.path());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    lines.find(|line| line.contains("ready")).unwrap();
    let state = || store.sessions().unwrap().next().unwrap().unwrap().state;
    assert_eq!(state(), SessionState::Running);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(state(), SessionState::Unfinished);
    assert_eq!(store.verify().unwrap().severity(), Some(Severity::Incomplete));
    let session = store.sessions().unwrap().next().unwrap().unwrap();
    assert!(store.read(session.session).unwrap().map(Result::unwrap).count() as u64 >= 10_000);
}

#[test]
#[ignore = "a child of another test"]
fn child_that_never_ends() {
    let mut log = open(&child_dir()).begin(meta()).unwrap();
    for number in 0.. {
        log.append(&event(number)).unwrap();
        if number == 10_000 {
            // Not print!, which the test harness could keep to itself.
            writeln!(std::io::stdout(), "ready").unwrap();
        }
    }
}

#[test]
fn a_full_disk_breaks_the_log_off_and_the_next_session_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let script = r#"mount -t tmpfs -o size=512k none "$REDOMA_TEST_DIR" && exec "$0" "$@""#;
    let mut unshare = Command::new("unshare");
    unshare
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap());
    let output = unshare.args(arguments("child_that_fills_the_disk")).env(DIR, dir.path()).output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "a child of another test"]
fn child_that_fills_the_disk() {
    let dir = child_dir();
    let store = open(&dir);
    let ballast = dir.join("ballast");
    std::fs::write(&ballast, vec![0; 128 * 1024]).unwrap();
    let mut log = store.begin(meta()).unwrap();
    let error = (0..).find_map(|number| log.append(&event(number)).err()).unwrap();
    let full = |error: &Error| matches!(error, Error::Write { source, .. } if source.kind() == std::io::ErrorKind::StorageFull);
    assert!(full(&error) && error.hint().is_some(), "{error}");
    assert!(matches!(log.append(&event(0)), Err(Error::BrokenOff { .. })));
    assert!(matches!(log.end(end()), Err(Error::BrokenOff { .. })));
    // Whether the ledger's page has room decides; either no session begins, or it is whole.
    let refused = std::iter::repeat_with(|| store.begin(meta()).map(drop)).find_map(Result::err).unwrap();
    assert!(full(&refused) || matches!(refused, Error::Open { .. }), "{refused}");
    std::fs::remove_file(ballast).unwrap();
    store.begin(meta()).unwrap().end(end()).unwrap();
    let report = store.verify().unwrap();
    assert_eq!(report.severity(), Some(Severity::Incomplete), "{:?}", report.findings);
}
