//! Exit codes are part of the interface: the command's own, 124 to 127, and 128+N.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use redoma_tests::{Home, Tier};

#[test]
fn the_commands_own_code_comes_back() {
    let home = Home::new();
    let project = home.project("p");
    for code in [0, 1, 42, 123] {
        let _ = project.shell(&format!("exit {code}")).run().expect_code(code);
    }
}

#[test]
fn a_signal_is_128_and_its_number() {
    let home = Home::new();
    let _ = home.project("p").shell("kill -TERM $$").run().expect_code(128 + 15);
    let _ = home.project("q").shell("kill -KILL $$").run().expect_code(128 + 9);
}

#[test]
fn a_missing_program_is_127_and_named() {
    let home = Home::new();
    let ran = home.project("p").inside(["no-such-program"]).run().expect_code(127);
    assert!(ran.err().contains("hint: command -v no-such-program\n"), "{ran:?}");
    let ran = home.project("q").inside(["./no-such-script"]).run().expect_code(127);
    assert!(ran.err().contains("hint: ls -l ./no-such-script\n"), "{ran:?}");
}

#[test]
fn a_file_that_is_not_executable_is_126() {
    let home = Home::new();
    let project = home.project("p");
    let script = project.file("script", "#!/bin/sh\nexit 0\n");
    let ran = project.inside(["./script"]).run().expect_code(126);
    assert!(ran.err().contains("hint: chmod +x /") && ran.err().contains("/script\n"), "{ran:?}");
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    let _ = project.inside(["./script"]).run().ok();
}

#[test]
fn a_program_outside_every_grant_is_not_started() {
    let home = Home::new();
    let project = home.project("p");
    let tool = home.outside().join("tool");
    fs::copy("/bin/true", &tool).unwrap();
    let tool = tool.to_str().unwrap();
    let refused = project.inside([tool]).run();
    assert!([126, 127].contains(&refused.code()), "{refused:?}");
    assert!(refused.err().contains(&format!("hint: redoma why exec {tool}\n")), "{refused:?}");
    let granted = home.outside();
    let _ = project.inside([tool]).option("--read", granted).run().ok();
}

#[test]
fn the_time_limit_is_124_and_ends_the_whole_tree() {
    let home = Home::new();
    let project = home.project("p");
    let ran = project.shell("sleep 1000 & sleep 1000").option("--time", "1s").run().expect_code(124);
    assert!(ran.err().contains("time"), "{ran:?}");
}

#[test]
fn a_bad_policy_is_125_and_starts_nothing() {
    let home = Home::new();
    let project = home.project("p");
    home.policy("[filesystem]\nraed = [\"/etc\"]\n");
    let ran = project.inside(["touch", "started"]).run().expect_code(125);
    assert!(ran.err().contains("raed") && ran.err().contains("read"), "{ran:?}");
    assert!(!project.path().join("started").exists());
}

#[test]
fn both_tiers_run_a_command() {
    let home = Home::new();
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        let ran = project.shell("echo works").tier(tier).run().ok();
        assert_eq!(ran.out(), "works\n", "{tier:?}");
    }
}
