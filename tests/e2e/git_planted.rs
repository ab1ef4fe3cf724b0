//! What a session leaves in repositories must not run when git is used on the host afterwards.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use redoma_tests::{Held, Home, Project, Tier, descendants, wait_gone};

/// Where planted commands leave their mark, on the host and outside the project.
fn canary(home: &Home) -> PathBuf {
    home.path().join("canary")
}

/// Uses git on the host as people and their prompts do.
fn use_git(project: &Project<'_>) {
    project.git(&["status", "--short"]);
    project.git(&["commit", "--quiet", "--allow-empty", "--message", "on the host"]);
}

/// A nested repository whose configuration runs something, which a gitlink makes `git status` at the top enter.
fn nested(home: &Home) -> String {
    format!(
        "git init -q sub && cd sub && echo y > g && git add g && git commit -q -m s
        git config core.fsmonitor 'touch {0}; false' && git config user.email kept@example.org
        printf '#!/bin/sh\\ntouch {0}\\n' > .git/hooks/post-index-change && chmod +x .git/hooks/post-index-change
        cd .. && git add sub",
        canary(home).display()
    )
}

/// What the host does to its own repository while a session runs is not the session's doing, where that can be told.
#[test]
fn an_overlay_session_moves_nothing_of_the_hosts() {
    let home = Home::new();
    let project = home.project("p");
    let go = home.outside().join("go");
    let wait = format!("echo ready; until [ -e '{}' ]; do :; done", go.display());
    let waits = project.shell(&wait).option("--workspace", "overlay").option("--read", home.outside());
    let held = waits.until_ready();
    let pointer = project.file("sub/.git", "gitdir: /somewhere/else\n");
    let hook = project.file("new/.git/hooks/post-commit", "#!/bin/sh\n");
    project.file("new/.git/HEAD", "ref: refs/heads/main\n");
    project.file("new/.git/config", "[core]\n\tfsmonitor = watch\n");
    std::fs::create_dir_all(project.path().join("new/.git/objects")).unwrap();
    std::fs::write(&go, "").unwrap();
    assert_eq!(held.wait(), 0);
    assert!(pointer.exists() && hook.exists());
    assert!(project.read("new/.git/config").contains("fsmonitor"));
}

/// A session that has planted something and goes on.
fn planting(home: &Home, project: &Project<'_>, tier: Tier) -> Held {
    // The landlock tier takes no project with a repository at its top.
    if project.path().join(".git").exists() {
        project.commit("first");
    }
    let script = format!(
        "git init -q sub && cd sub && git config core.fsmonitor 'touch {}; false' >&2
        git config user.email kept@example.org && echo ready && exec sleep 1000",
        canary(home).display()
    );
    project.shell(&script).tier(tier).until_ready()
}

fn janitor_of(held: &Held) -> i32 {
    let named = |pid: &i32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "redoma-janitor")
    };
    descendants(held.pid()).into_iter().find(named).expect("there is a janitor")
}

fn assert_harmless(home: &Home, project: &Project<'_>) {
    project.git(&["-C", "sub", "status"]);
    assert!(!canary(home).exists());
    let config = project.read("sub/.git/config");
    assert!(config.contains("kept@example.org") && !config.contains("fsmonitor"), "{config}");
}

/// Long enough for a machine with much to do.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn of_a_killed_session_the_janitor_judges_what_it_made_and_records_it() {
    for tier in Tier::ALL {
        let home = Home::new();
        let project = home.project_for(tier);
        let held = planting(&home, &project, tier);
        let janitor = janitor_of(&held);
        held.kill();
        assert!(wait_gone(janitor, PATIENCE), "the janitor does not end");
        assert_harmless(&home, &project);
        let log = project.redoma(["log"]).run().ok();
        assert!(log.out().contains("sub/.git/config"), "{log:?}");
        let noted = home.redoma().join("state/unfinished");
        assert_eq!(std::fs::read_dir(noted).unwrap().count(), 0, "nothing is left to do");
    }
}

#[test]
fn without_a_janitor_the_next_session_or_gc_judges_first() {
    for next in [&["run", "--", "true"][..], &["doctor", "--gc"]] {
        let home = Home::new();
        let project = home.project("p");
        let held = planting(&home, &project, Tier::Full);
        let janitor = rustix::process::Pid::from_raw(janitor_of(&held)).unwrap();
        rustix::process::kill_process(janitor, rustix::process::Signal::KILL).unwrap();
        held.kill();
        assert!(project.read("sub/.git/config").contains("fsmonitor"), "the twin: nobody has judged yet");
        let ran = project.redoma(next.iter().copied()).run().ok();
        assert!(format!("{}{}", ran.out(), ran.err()).contains("sub/.git/config"), "{ran:?}");
        assert_harmless(&home, &project);
        let again = project.redoma(next.iter().copied()).run().ok();
        assert!(!format!("{}{}", again.out(), again.err()).contains("sub/.git/config"), "{again:?}");
    }
}

/// After a power failure the next session may come days later. The kernel tells when the machine was started, and nothing
/// of the session can be newer; so a note from before it stands for a session that nobody made anything in.
#[test]
fn what_came_after_the_machine_was_started_again_is_the_users_own() {
    let home = Home::new();
    let project = home.project("p");
    let held = planting(&home, &project, Tier::Full);
    let janitor = rustix::process::Pid::from_raw(janitor_of(&held)).unwrap();
    rustix::process::kill_process(janitor, rustix::process::Signal::KILL).unwrap();
    held.kill();
    let noted = home.redoma().join("state/unfinished");
    let note = std::fs::read_dir(&noted).unwrap().next().unwrap().unwrap().path();
    let mut content: serde_json::Value = serde_json::from_slice(&std::fs::read(&note).unwrap()).unwrap();
    content["noted"] = 1.into();
    std::fs::write(&note, serde_json::to_vec(&content).unwrap()).unwrap();
    let _ = project.redoma(["doctor", "--gc"]).run().ok();
    assert!(project.read("sub/.git/config").contains("fsmonitor"));
    assert!(!note.exists(), "it was looked at");
}

#[test]
fn an_undo_of_a_killed_session_tells_what_the_user_did_later() {
    let home = Home::new();
    let project = home.project("p");
    project.file("mine", "before\n");
    let held = planting(&home, &project, Tier::Full);
    let janitor = janitor_of(&held);
    held.kill();
    assert!(wait_gone(janitor, PATIENCE), "the janitor does not end");
    // Files are stamped with the time of the last tick, which may lie before the end: a whole one must pass.
    let stamped = || {
        let stat = std::fs::metadata(project.file("mine", "later\n")).unwrap();
        (stat.ctime(), stat.ctime_nsec())
    };
    let first = stamped();
    while stamped() == first {}
    let planned = project.redoma(["undo", "--dry-run", "--json"]).run().ok().json();
    let steps = planned["steps"].as_array().unwrap();
    let later = |path: &str| {
        let step = steps.iter().find(|step| step["path"] == path).expect("a step for it");
        step["changed_later"] == true
    };
    assert!(later("mine") && !later("sub"), "{planned}");
}

#[test]
fn a_session_that_runs_is_not_ended_by_another() {
    let home = Home::new();
    let project = home.project("p");
    let held = planting(&home, &project, Tier::Full);
    let _ = project.shell("true").run().ok();
    let _ = project.redoma(["doctor", "--gc"]).run().ok();
    let noted = std::fs::read_dir(home.redoma().join("state/unfinished")).unwrap().count();
    assert_eq!(noted, 1, "the running session's note");
    held.kill();
}

#[test]
fn a_nested_repository_made_inside_runs_nothing() {
    let home = Home::new();
    let project = home.project("p");
    project.commit("first");
    let ran = project.shell(&nested(&home)).run().ok();
    use_git(&project);
    project.git(&["-C", "sub", "status"]);
    assert!(!canary(&home).exists(), "{ran:?}");
    assert!(ran.err().contains("sub/.git/config") && ran.err().contains("post-index-change"), "{ran:?}");
    let config = project.read("sub/.git/config");
    assert!(config.contains("kept@example.org") && !config.contains("fsmonitor"), "{config}");
    assert_eq!(project.git(&["-C", "sub", "log", "--format=%s"]).trim(), "s");
}

#[test]
fn the_twin_without_a_sandbox_runs_it() {
    let home = Home::new();
    let project = home.project("p");
    project.commit("first");
    let redoma = project.redoma([]).build();
    let shell = std::process::Command::new("sh")
        .args(["-c", &nested(&home)])
        .current_dir(project.path())
        .envs(redoma.get_envs().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))))
        .output();
    assert!(shell.unwrap().status.success());
    project.git(&["status", "--short"]);
    assert!(canary(&home).exists());
}

#[test]
fn folders_too_deep_to_be_walked_hide_no_repository() {
    let home = Home::new();
    let project = home.project("p");
    project.commit("first");
    let deep = "python3 -c \"
import os
for _ in range(20):
    os.mkdir('d' * 250); os.chdir('d' * 250)\"";
    let ran = project.shell(&format!("{} && {deep}", nested(&home))).run().ok();
    project.git(&["-C", "sub", "status"]);
    assert!(!canary(&home).exists(), "{ran:?}");
}

#[test]
fn a_git_file_leads_to_no_repository_in_disguise() {
    let home = Home::new();
    let project = home.project("p");
    project.commit("first");
    let script = format!(
        "git init -q a && cd a && git commit -q --allow-empty -m a && cd .. && mv a/.git hidden
        git --git-dir hidden config core.fsmonitor 'touch {}; false'
        mkdir sub && echo 'gitdir: ../hidden' > sub/.git && git add sub
        git -C sub rev-parse && mkdir -p out && echo 'gitdir: ../../elsewhere/.git' > out/.git",
        canary(&home).display()
    );
    let ran = project.shell(&script).run().ok();
    let _status = project.git(&["-C", "sub", "rev-parse", "--git-dir"]);
    project.git(&["status", "--short"]);
    assert!(!canary(&home).exists(), "{ran:?}");
    assert!(!project.path().join("out/.git").exists(), "it led out of the project: {ran:?}");
}

#[test]
fn a_pointer_makes_nobody_take_the_users_own_files() {
    let home = Home::new();
    let project = home.project("p");
    let own = project.file(".claude/hooks/own.sh", "true\n");
    project.file("src/hooks/use.ts", "export {}\n");
    project.commit("first");
    let script = "mkdir sub sub2 && echo 'gitdir: ../src' > sub/.git && echo 'gitdir: ../.claude' > sub2/.git
        cd .claude && mkdir objects refs && cp ../.git/HEAD .";
    let ran = project.shell(script).run().ok();
    assert!(own.exists() && project.path().join("src/hooks/use.ts").exists(), "{ran:?}");
}

#[test]
fn a_repository_that_was_nested_already_keeps_config_and_hooks() {
    let home = Home::new();
    let project = home.project("p");
    let nested = home.project("p/sub");
    nested.file("a.txt", "one\n");
    nested.commit("first");
    let before = project.read("sub/.git/config");
    let script = "cd sub && echo two >> a.txt && git commit -q -a -m inside
        git config core.fsmonitor 'touch x' && exit 1
        echo hook > .git/hooks/post-checkout && exit 2
        mv .git away && exit 3
        cd .. && mv sub moved && exit 4; true";
    let ran = project.shell(script).run().ok();
    assert_eq!(project.read("sub/.git/config"), before, "{ran:?}");
    assert!(!project.path().join("sub/.git/hooks/post-checkout").exists());
    assert_eq!(project.git(&["-C", "sub", "log", "-1", "--format=%s"]).trim(), "inside");
}

#[test]
fn what_the_configuration_names_in_the_project_is_protected() {
    let home = Home::new();
    let project = home.project("p");
    project.file(".githooks/README", "");
    project.file(".gitconfig.shared", "[alias]\n x = status\n");
    project.git(&["config", "core.hooksPath", ".githooks"]);
    project.git(&["config", "include.path", "../.gitconfig.shared"]);
    project.commit("first");
    let script = format!(
        "printf '#!/bin/sh\\ntouch {0}\\n' > .githooks/pre-commit; chmod +x .githooks/pre-commit
        printf '[core]\\n fsmonitor = \"touch {0}; false\"\\n' > .gitconfig.shared; mv .githooks away; true",
        canary(&home).display()
    );
    let ran = project.attempt(&script).run().started();
    use_git(&project);
    assert!(!canary(&home).exists(), "{ran:?}");
    let why = project.redoma(["why", "write", ".githooks"]).run();
    assert!(why.out().contains(".git/config"), "{why:?}");
}

#[test]
fn git_init_in_an_empty_project_works() {
    let home = Home::new();
    let project = home.folder("p");
    let script = format!(
        "git init -q && echo a > a && git add a && git commit -q -m inside && git config core.fsmonitor 'touch {}; false'",
        canary(&home).display()
    );
    let ran = project.shell(&script).run().ok();
    assert_eq!(project.git(&["log", "-1", "--format=%s"]).trim(), "inside", "{ran:?}");
    use_git(&project);
    assert!(!canary(&home).exists(), "{ran:?}");
    assert!(project.read(".git/config").contains("bare"));
}

#[test]
fn no_repository_that_runs_something_is_applied() {
    let home = Home::new();
    let project = home.project("p");
    project.commit("first");
    let script = format!(
        "git init -q sub && git -C sub config core.fsmonitor 'touch {0}; false'
        git init -q a && mv a/.git hidden && git --git-dir hidden config core.fsmonitor 'touch {0}; false'
        mkdir g && echo 'gitdir: ../hidden' > g/.git && echo kept > kept",
        canary(&home).display()
    );
    let _ = project.shell(&script).option("--workspace", "overlay").run().ok();
    let applied = project.redoma(["changes", "apply", "--yes"]).run();
    assert_eq!(project.read("kept"), "kept\n", "{applied:?}");
    for absent in ["sub/.git/config", "g/.git"] {
        assert!(!project.path().join(absent).exists(), "{absent}: {applied:?}");
    }
    project.git(&["-C", "sub", "status"]);
    project.git(&["-C", "g", "status"]);
    assert!(!canary(&home).exists());
}
