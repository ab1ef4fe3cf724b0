//! `redoma run`: exit codes, streams, and what is said at the end.

mod support;

use std::io::Write;
use std::process::Stdio;

use support::User;

#[test]
fn the_commands_exit_code_is_ours() {
    let user = User::new();
    assert_eq!(user.exit_code(&["true"]), Some(0));
    assert_eq!(user.exit_code(&["sh", "-c", "exit 42"]), Some(42));
    assert_eq!(user.exit_code(&["sh", "-c", "kill -TERM $$"]), Some(128 + 15));
    assert_eq!(user.exit_code(&["no-such-command"]), Some(127));
    user.write("project/data", "not a program");
    assert_eq!(user.exit_code(&["./data"]), Some(126));
}

#[test]
fn the_time_limit_ends_it_with_124() {
    let user = User::new();
    let status =
        user.command(&["run", "--net", "none", "--time", "200ms", "--", "sleep", "60"]).output().unwrap();
    assert_eq!(status.status.code(), Some(124));
    assert!(String::from_utf8_lossy(&status.stderr).contains("the time limit ended it"));
}

#[test]
fn a_bad_policy_starts_nothing_and_exits_with_125() {
    let user = User::new();
    let started = || user.project().join("started").exists();
    let touch = ["--", "touch", "started"];
    let run = |flags: &[&str]| {
        let args: Vec<&str> = ["run"].iter().chain(flags).chain(&touch).copied().collect();
        user.say(&args)
    };
    let shown = run(&["--net", "none", "--profile", "defualt"]);
    assert!(shown.starts_with("exit 125") && shown.contains("did you mean `default`?"), "{shown}");
    user.write("project/redoma.toml", "[network]\ndefault = \"alow\"\n");
    let shown = run(&["--net", "none"]);
    assert!(shown.starts_with("exit 125") && !started(), "{shown}");
    std::fs::remove_file(user.project().join("redoma.toml")).unwrap();
    assert!(run(&["--net", "none"]).starts_with("exit 0") && started(), "the twin: it starts when it may");
}

#[test]
fn streams_pass_byte_for_byte() {
    let user = User::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let mut command = user.command(&["run", "-q", "--net", "none", "--", "cat"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut stdin, sent) = (child.stdin.take().unwrap(), bytes.clone());
    let writer = std::thread::spawn(move || stdin.write_all(&sent));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success());
    assert!(output.stdout == bytes, "the bytes differ");
}

#[test]
fn what_was_denied_is_summed_up_unless_quiet() {
    let user = User::new();
    user.write("project/.env", "TOKEN=verysecret\n");
    let cat = ["--net", "none", "--", "cat", ".env"];
    let args: Vec<&str> = ["run"].iter().chain(&cat).copied().collect();
    let shown = user.say(&args);
    assert!(!shown.contains("verysecret"), "{shown}");
    assert!(
        shown.contains("denied: [ROOT]/project/.env") && shown.contains("redoma allow 'rule:**/.env*'"),
        "{shown}"
    );
    let quiet: Vec<&str> = ["run", "-q"].iter().chain(&cat).copied().collect();
    assert!(!user.say(&quiet).contains("denied"));
}

#[test]
fn nothing_is_said_when_nothing_was_denied() {
    let user = User::new();
    assert_eq!(user.say(&["run", "--net", "none", "--", "echo", "hi"]), "exit 0\n--- stdout\nhi\n");
}

#[test]
fn the_report_is_json_and_no_link_is_followed_to_write_it() {
    let user = User::new();
    let run = ["run", "-q", "--net", "none", "--report", "report.json", "--", "sh", "-c"];
    let with = |script: &'static str| run.iter().copied().chain([script]).collect::<Vec<_>>();
    assert!(user.say(&with("exit 7")).starts_with("exit 7"));
    let report = std::fs::read(user.project().join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    assert_eq!((&report["exit_code"], &report["tier"]), (&7.into(), &"full".into()));

    let victim = user.write("home/victim", "precious");
    let script = "rm report.json; ln -s ../home/victim report.json";
    user.say(&with(script));
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    let shown = user.say(&with("true"));
    assert!(shown.starts_with("exit 125"), "{shown}");
    assert_eq!(std::fs::read_to_string(victim).unwrap(), "precious");
}

#[test]
fn the_record_has_the_run() {
    let user = User::new();
    user.say(&["run", "--net", "none", "--", "sh", "-c", "exit 3"]);
    let sessions = user.command(&["sessions", "--json"]).output().unwrap();
    let sessions: serde_json::Value = serde_json::from_slice(&sessions.stdout).unwrap();
    assert_eq!(sessions[0]["end"]["outcome"]["code"], 3);
    let log = user.say(&["log"]);
    for word in ["session-start sh -c exit 3", "canary passed", "session-end"] {
        assert!(log.contains(word), "{log}");
    }
    for line in String::from_utf8(user.command(&["log", "--json"]).output().unwrap().stdout).unwrap().lines()
    {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn a_home_folder_is_no_project() {
    let user = User::new();
    let home = user.root.join("home");
    let output = user.command(&["run", "--net", "none", "--", "true"]).current_dir(home).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("too wide"));
}

#[test]
fn the_record_is_sound_until_somebody_touches_it() {
    let user = User::new();
    user.say(&["run", "--net", "none", "--", "true"]);
    let sound = user.say(&["sessions", "--verify"]);
    assert!(sound.starts_with("exit 0") && sound.contains("1 sessions"), "{sound}");
    let logs = std::fs::read_dir(user.root.join("redoma/state/audit")).unwrap().flatten();
    let log = logs.map(|entry| entry.path()).find(|path| path.file_stem().unwrap().len() == 10).unwrap();
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, text.replacen("true", "tree", 1)).unwrap();
    let touched = user.say(&["sessions", "--verify"]);
    assert!(touched.starts_with("exit 1") && touched.contains("wrong: "), "{touched}");
}

#[test]
fn a_run_leaves_nothing_over() {
    let user = User::new();
    user.say(&["run", "--net", "none", "--", "true"]);
    user.say(&["run", "--tier", "landlock", "--net", "none", "--", "true"]);
    let output = user.command(&["doctor", "--gc", "--json"]).output().unwrap();
    let left: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let ours =
        |one: &&serde_json::Value| one["path"].as_str().unwrap().starts_with(user.root.to_str().unwrap());
    assert_eq!(left.as_array().unwrap().iter().filter(ours).count(), 0, "{left}");
}
