//! The record: complete, chained, verifiable, and beyond the sandbox's reach.

use std::fs;
use std::path::PathBuf;

use redoma_tests::{Home, Project};

#[test]
fn a_session_is_listed_and_its_log_holds_start_exec_and_end() {
    let home = Home::new();
    let project = home.project("p");
    let _ = project.shell("exit 3").run().expect_code(3);
    let sessions = project.redoma(["sessions", "--json"]).run().ok();
    assert_eq!(sessions.json().as_array().map(Vec::len), Some(1), "{sessions:?}");
    let log = project.redoma(["log", "--json"]).run().ok();
    let lines: Vec<serde_json::Value> = log.out().lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert!(lines.len() >= 3, "{log:?}");
    for (number, line) in lines.iter().enumerate() {
        assert_eq!(line["seq"].as_u64(), Some(number as u64), "{line}");
    }
    assert!(log.out().contains("exit 3"), "the command is on record: {log:?}");
}

#[test]
fn the_record_and_the_keys_are_out_of_reach_inside() {
    let home = Home::new();
    let project = home.project("p");
    let _ = project.inside(["true"]).run().ok();
    let folder = home.redoma();
    let script = format!(
        "echo started; ls -R {0} 2>/dev/null; echo evil > {0}/state/audit/x 2>/dev/null",
        folder.display()
    );
    let ran = project.shell(&script).run().started();
    assert_eq!(ran.out(), "", "{ran:?}");
    assert!(!folder.join("state/audit/x").exists());
}

#[test]
fn a_denial_is_summed_up_with_the_command_that_would_allow_it() {
    let home = Home::new();
    let project = home.project("p");
    project.file(".mcp.json", "{}\n");
    let ran = project.shell("echo evil > .envrc; true").run();
    assert!(ran.err().contains(".envrc"), "{ran:?}");
    let quiet = project.shell("echo evil > .envrc; true").arg("--quiet").run();
    assert_eq!(quiet.err(), "");
}

#[test]
fn a_report_is_json_with_the_exit_code() {
    let home = Home::new();
    let project = home.project("p");
    let report = home.outside().join("report.json");
    let _ = project.shell("exit 5").option("--report", &report).run().expect_code(5);
    let json: serde_json::Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    assert!(json.to_string().contains('5'), "{json}");
}

#[test]
fn a_secret_on_the_command_line_is_redacted() {
    let home = Home::new();
    let project = home.project("p");
    let _ = secret_run(&project).run().ok();
    let log = project.redoma(["log", "--json"]).run().ok();
    assert!(!log.out().contains("ghp_0123456789abcdefghijABCDEFGHIJ012345"), "{log:?}");
}

fn secret_run(project: &Project<'_>) -> redoma_tests::Redoma {
    project.inside(["echo", "--token=ghp_0123456789abcdefghijABCDEFGHIJ012345"])
}

#[test]
fn a_session_whose_redoma_was_killed_is_shown_as_unfinished() {
    let home = Home::new();
    let project = home.project("p");
    project.shell("echo ready; exec sleep 1000").until_ready().kill();
    let sessions = project.redoma(["sessions"]).run().ok();
    assert!(sessions.out().contains("unfinished"), "{sessions:?}");
}

#[test]
fn escapes_in_a_command_do_not_reach_the_terminal() {
    let home = Home::new();
    let project = home.project("p");
    let _ = project.inside(["echo", "\x1b]0;evil\x07\u{202e}"]).run().ok();
    for args in [&["log"][..], &["sessions"]] {
        let shown = project.redoma(args.iter().copied()).run().ok();
        assert!(!shown.out().contains('\x1b') && !shown.out().contains('\u{202e}'), "{shown:?}");
    }
}

/// The only session's log: the JSON Lines file that is not the ledger.
fn segment(home: &Home) -> PathBuf {
    let mut folders = vec![home.redoma().join("state/audit")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else if name.ends_with(".jsonl") && !name.contains("ledger") {
                return entry.path();
            }
        }
    }
    panic!("no session log below {}", home.redoma().display());
}

#[test]
fn verification_passes_and_notices_one_changed_byte() {
    let home = Home::new();
    let project = home.project("p");
    let _ = project.inside(["true"]).run().ok();
    let verify = || project.redoma(["sessions", "--verify"]).run();
    let _ = verify().ok();
    let segment = segment(&home);
    let text = fs::read_to_string(&segment).unwrap();
    fs::write(&segment, text.replacen("true", "trve", 1)).unwrap();
    assert_ne!(verify().code(), 0);
}

/// With work: the record has to grow older.
fn pass_a_second(project: &Project<'_>) {
    let begun = std::time::Instant::now();
    while begun.elapsed() < std::time::Duration::from_millis(1200) {
        let _ = project.redoma(["version"]).run().ok();
    }
}

#[test]
fn what_is_too_old_goes_and_leaves_a_signed_line() {
    let home = Home::new();
    let project = home.project("p");
    let _ = project.inside(["true"]).run().ok();
    let kept = project.redoma(["audit", "purge", "--older-than", "1h"]).run().ok();
    assert!(kept.out().starts_with("removed 0 sessions older than 1h"), "{kept:?}");
    pass_a_second(&project);
    let purged = project.redoma(["audit", "purge", "--older-than", "1s", "--json"]).run().ok();
    assert_eq!(purged.json()["sessions"].as_array().map(Vec::len), Some(1));
    let _ = project.redoma(["audit", "verify"]).run().ok();
    assert!(project.redoma(["log"]).run().err().contains("no session yet"));
    let unsaid = project.redoma(["audit", "purge"]).run().expect_code(1);
    assert!(unsaid.err().contains("hint: redoma audit purge --older-than"), "{unsaid:?}");
}

#[test]
fn a_run_removes_what_its_policy_does_not_keep() {
    let home = Home::new();
    let project = home.project("p");
    let _ = project.inside(["echo", "first"]).run().ok();
    home.policy("[audit]\nretention = \"1s\"\n");
    pass_a_second(&project);
    let _ = project.inside(["echo", "second"]).run().ok();
    let sessions = project.redoma(["sessions"]).run().ok();
    assert!(!sessions.out().contains("first") && sessions.out().contains("second"), "{sessions:?}");
}
