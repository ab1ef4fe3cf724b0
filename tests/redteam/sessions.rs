//! Attacks that take more than one process inside: on the keeper, on the next session, on whoever works in the project
//! afterwards.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use redoma_tests::{Home, PATIENCE, Project, Tier, wait_gone};

/// Processes of this user that carry `mark` in their command line: a command that was given it, and init and the
/// keeper, which are called as the command was.
fn marked(mark: &str) -> Vec<i32> {
    let numbers = fs::read_dir("/proc").expect("proc").flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let carries = |number: &i32| {
        let line = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|argument| argument == mark.as_bytes())
    };
    numbers.filter(carries).collect()
}

/// Waits until no process carries `mark`; the ones that are left when patience ends.
fn left_over(mark: &str) -> Vec<i32> {
    let start = Instant::now();
    loop {
        let found = marked(mark);
        let Some(first) = found.first() else { return found };
        if start.elapsed() > PATIENCE / 8 || !wait_gone(*first, PATIENCE / 8) {
            return found;
        }
    }
}

/// A folder with nothing in it that the landlock tier can't protect.
fn plain(home: &Home) -> PathBuf {
    let folder = home.path().join("plain");
    fs::create_dir(&folder).expect("a folder");
    folder
}

#[test]
fn a_keeper_killed_at_any_moment_leaves_no_process() {
    let home = Home::new();
    let project = home.project("project");
    let plain = plain(&home);
    for tier in Tier::ALL {
        for moment in 0..16 {
            let mark = format!("mark-{}-{}-{moment}", tier.name(), std::process::id());
            let script = "trap '' HUP INT TERM; setsid sleep 300 & sleep 300";
            let mut running =
                project.inside(["sh", "-c", script, &mark]).tier(tier).current_dir(&plain).spawn();
            // A look at it takes some microseconds: each round lets the start come further.
            let looks = 1_usize << moment.min(12);
            (0..looks).for_each(|_| drop(fs::read(format!("/proc/{}/stat", running.pid()))));
            running.kill();
            drop(running.wait());
            let left = left_over(&mark);
            assert!(left.is_empty(), "{left:?} in the {tier:?} tier, killed after {looks} looks");
        }
    }
}

#[test]
fn a_daemon_does_not_outlive_the_command() {
    let home = Home::new();
    let project = home.project("project");
    let plain = plain(&home);
    for tier in Tier::ALL {
        let mark = format!("daemon-{}-{}", tier.name(), std::process::id());
        let script = format!("setsid --fork sh -c 'trap \"\" HUP INT TERM; sleep 300; :' {mark}");
        let _ran = project.shell(&script).tier(tier).current_dir(&plain).run().ok();
        let left = left_over(&mark);
        assert!(left.is_empty(), "{left:?} in the {tier:?} tier");
    }
}

#[test]
fn a_folder_as_standard_input_is_refused() {
    let home = Home::new();
    let project = home.project("project");
    let mut command = project.inside(["ls", "/proc/self/fd/0/"]).build();
    let output = command.stdin(File::open("/").expect("the root")).output().expect("it starts");
    assert_eq!(output.status.code(), Some(125), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty());
}

#[test]
fn a_fifo_in_a_denied_place_does_not_hold_up_the_start() {
    let home = Home::new();
    let project = home.project("project");
    assert!(Command::new("mkfifo").arg(project.path().join(".env")).status().expect("mkfifo").success());
    let _ran = project.inside(["true"]).run().ok();
}

#[test]
fn a_file_denied_once_is_denied_in_the_next_session() {
    let home = Home::new();
    let project = home.project("project");
    project.file("nest/deep/secret.key", "planted");
    let deny = |script: &str| project.shell(script).option("--deny", "nest/deep/secret.key").run();
    let _moved = deny("mv nest elsewhere; mv nest/deep elsewhere");
    let later = deny("cat */secret.key */*/secret.key */*/*/secret.key 2>/dev/null; true");
    assert!(!later.out().contains("planted"), "{later:?}");
    let twin = project.shell("cat nest/deep/secret.key").run().ok();
    assert_eq!(twin.out(), "planted", "without the rule it can be read");
}

/// Waits for a file that the command inside makes.
fn appears(path: &Path) {
    let start = Instant::now();
    while !path.exists() {
        assert!(start.elapsed() < PATIENCE, "{} does not appear", path.display());
        thread::yield_now();
    }
}

/// The kernel takes a mount away when the file below it is replaced from outside, as editors and git do on saving.
#[test]
fn what_the_host_replaces_is_covered_and_protected_again() {
    let home = Home::new();
    let project = home.project("project");
    project.file(".env", "KEY=before\n");
    project.file("note", "before\n");
    let script = "touch ready; until [ -e go ]; do sleep 0.01; done; \
        i=0; while grep -q planted .env && [ $i -lt 300 ]; do sleep 0.01; i=$((i+1)); done; \
        cat .env note; echo '[core]' >> .git/config; mv .git/config gone";
    let running = project.shell(script).spawn();
    appears(&project.path().join("ready"));
    for (name, content) in [(".env", "KEY=planted\n"), ("note", "saved\n")] {
        let draft = project.file("draft", content);
        fs::rename(draft, project.path().join(name)).expect("saved as editors do");
    }
    project.git(&["config", "user.name", "Somebody"]);
    let config = project.read(".git/config");
    project.file("go", "");
    let ran = running.wait();
    assert!(ran.out().contains("saved"), "what isn't denied shows: {ran:?}");
    assert!(!ran.out().contains("planted"), "{ran:?}");
    assert_eq!(project.read(".git/config"), config, "{ran:?}");
}

#[test]
fn what_lies_in_a_folder_that_the_host_replaces_is_covered_again() {
    let home = Home::new();
    let project = home.project("project");
    project.file("keys/secret.key", "before\n");
    project.file("keys/note", "before\n");
    let script = "touch ready; until [ -e go ]; do sleep 0.01; done; \
        i=0; while grep -q planted keys/secret.key && [ $i -lt 300 ]; do sleep 0.01; i=$((i+1)); done; \
        cat keys/secret.key keys/note";
    let running = project.shell(script).option("--deny", "keys/secret.key").spawn();
    appears(&project.path().join("ready"));
    project.file("fresh/secret.key", "planted\n");
    project.file("fresh/note", "saved\n");
    for (from, to) in [("keys", "old"), ("fresh", "keys")] {
        fs::rename(project.path().join(from), project.path().join(to)).expect("a folder is put in place");
    }
    project.file("go", "");
    let ran = running.wait();
    assert!(ran.out().contains("saved"), "what isn't denied shows: {ran:?}");
    assert!(!ran.out().contains("planted"), "{ran:?}");
}

#[test]
fn a_policy_written_inside_widens_nothing() {
    let home = Home::new();
    let project = home.project("project");
    let secret = home.outside().join("secret.txt");
    fs::write(&secret, "planted").expect("a secret");
    let policy = format!("[filesystem]\nread = [{:?}]\n", home.outside().display().to_string());
    let _written = project.inside(["tee", "redoma.toml"]).stdin(policy).run();
    let read = project.inside(["cat", secret.to_str().expect("UTF-8")]);
    let refused = read.clone().run();
    assert!(refused.code() != 0 && !refused.out().contains("planted"), "{refused:?}");
    if project.path().join("redoma.toml").exists() {
        let _trusted = project.redoma(["policy", "trust"]).run().ok();
        assert_eq!(read.run().ok().out(), "planted", "once trusted, it holds");
    }
}

/// A repository as an attacker would leave it: whatever git or a shell can be made to run leaves a trace.
fn poisoned<'home>(home: &'home Home, trace: &Path) -> Project<'home> {
    let project = home.project("project");
    project.file("a.txt", "one\n");
    project.commit("first");
    let script =
        project.file("run-me", format!("#!/bin/sh\necho \"$0 $*\" >> {}\nexit 1\n", trace.display()));
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("executable");
    let run = script.to_str().expect("UTF-8");
    for key in
        ["core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "diff.external", "core.gitProxy"]
    {
        project.git(&["config", key, run]);
    }
    project.git(&["config", "filter.trap.clean", run]);
    project.git(&["config", "filter.trap.smudge", run]);
    project.git(&["config", "core.hooksPath", project.path().to_str().expect("UTF-8")]);
    project.file(".gitattributes", "* filter=trap diff=trap\n");
    project.file("a.txt", "two\n");
    for program in ["git", "sh", "cp", "rm", "mount", "newuidmap", "nft", "ip", "diff", "tar"] {
        fs::create_dir_all(project.path().join("bin")).expect("a folder");
        fs::copy(&script, project.path().join("bin").join(program)).expect("a program");
    }
    project
}

#[test]
fn nothing_of_the_project_is_run_outside() {
    let home = Home::new();
    let trace = home.outside().join("trace");
    let project = poisoned(&home, &trace);
    let path = format!("{}:/usr/bin:/bin", project.path().join("bin").display());
    let _first = project.inside(["/usr/bin/touch", "made"]).env("PATH", &path).run().ok();
    for arguments in [
        &["sessions"][..],
        &["log"],
        &["doctor"],
        &["policy", "show", "--resolved"],
        &["why", "read", ".env"],
        &["undo"],
        &["changes"],
    ] {
        let ran = project.redoma(arguments.iter().copied()).env("PATH", &path).run();
        let trace = fs::read_to_string(&trace).unwrap_or_default();
        assert!(trace.is_empty(), "{arguments:?} ran {trace}\n{ran:?}");
    }
    let mut twin = Command::new("git");
    twin.args(["status"]).current_dir(project.path()).env("HOME", home.path());
    let _ = twin.stdout(Stdio::null()).stderr(Stdio::null()).status().expect("git");
    assert!(trace.exists(), "git itself falls for it");
}
