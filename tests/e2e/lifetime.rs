//! Nothing outlives its session: no process, no mount, no file.

use std::fs;
use std::process::Command;
use std::time::Duration;

use redoma_tests::{Home, Tier, descendants, wait_gone};

/// The kernel needs a moment to end a tree; this is far more.
const A_MOMENT: Duration = Duration::from_secs(20);

#[test]
fn killing_redoma_ends_every_process_of_the_sandbox() {
    for tier in Tier::ALL {
        let home = Home::new();
        let script = "(setsid sleep 1000 &); sleep 1000 & echo ready; wait";
        let held = home.project_for(tier).shell(script).tier(tier).until_ready();
        let inside = descendants(held.pid());
        assert!(inside.len() >= 4, "init, the shell and two sleepers: {inside:?}");
        held.kill();
        for pid in inside {
            assert!(wait_gone(pid, A_MOMENT), "{tier:?}: {pid} outlived redoma");
        }
    }
}

#[test]
fn a_process_left_behind_ends_with_the_command() {
    for tier in Tier::ALL {
        let home = Home::new();
        // The left-behind process says `ready` itself; the shell goes on when it is told to.
        let script = "mkfifo go; setsid sh -c 'echo ready; exec sleep 1000 >/dev/null' & read line < go";
        let project = home.project_for(tier);
        let held = project.shell(script).tier(tier).until_ready();
        let inside = descendants(held.pid());
        project.file("go", "now\n");
        for pid in inside {
            assert!(wait_gone(pid, A_MOMENT), "{tier:?}: {pid} outlived its session");
        }
        assert!(wait_gone(held.pid(), A_MOMENT), "{tier:?}: redoma waits for what was left behind");
    }
}

#[test]
fn no_mount_is_left_after_a_kill() {
    let home = Home::new();
    home.project("p").shell("echo ready; exec sleep 1000").until_ready().kill();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let folder = home.path().parent().unwrap().display().to_string();
    assert!(!mounts.contains(&folder), "{mounts}");
}

#[test]
fn a_session_that_ended_leaves_no_private_files() {
    for tier in Tier::ALL {
        let home = Home::new();
        // Put together inside, so that the record, which holds the command line, does not count as a find.
        let script = "f=$(mktemp); printf '%s%s' unmistakable -content > $f; cp $f ~ 2>/dev/null; true";
        let _ = home.project_for(tier).shell(script).tier(tier).run().ok();
        let all = home.path().parent().unwrap().to_owned();
        let found = Command::new("grep").args(["-rl", "unmistakable-content"]).arg(all).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&found.stdout), "", "{tier:?}");
    }
}

#[test]
fn runs_at_the_same_time_do_not_disturb_each_other() {
    let home = Home::new();
    let project = home.project("p");
    let runs: Vec<_> = (0..4).map(|n| project.shell(&format!("echo {n}")).spawn()).collect();
    for (n, run) in runs.into_iter().enumerate() {
        assert_eq!(run.wait().ok().out(), format!("{n}\n"));
    }
}

#[test]
fn doctor_gc_clears_up_after_a_kill_and_then_has_nothing_to_do() {
    let home = Home::new();
    let project = home.folder("p");
    for tier in Tier::ALL {
        project.shell("echo x > $TMPDIR/file; echo ready; exec sleep 1000").tier(tier).until_ready().kill();
    }
    let gc = || project.redoma(["doctor", "--gc"]).run().ok();
    let _ = gc();
    let again = gc();
    let left = |folder: &str| fs::read_dir(home.redoma().join(folder)).map_or(0, Iterator::count);
    assert_eq!(left("run"), 0, "{again:?}");
}
