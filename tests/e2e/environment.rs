//! The environment inside is made from a list, not from what the caller happens to have.

use redoma_tests::{Home, Tier};

#[test]
fn tokens_do_not_pass_and_ordinary_variables_do() {
    let home = Home::new();
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        let ran = project
            .inside(["env"])
            .tier(tier)
            .env("GITHUB_TOKEN", "ghp_real")
            .env("AWS_SECRET_ACCESS_KEY", "aws_real")
            .env("MY_OWN_SETTING", "unlisted_real")
            .env("LC_ALL", "C.UTF-8")
            .run()
            .ok();
        let out = ran.out();
        assert!(
            !out.contains("ghp_real") && !out.contains("aws_real") && !out.contains("unlisted_real"),
            "{out}"
        );
        assert!(out.contains("LC_ALL=C.UTF-8") && out.contains("TERM=") && out.contains("PATH="), "{out}");
    }
}

#[test]
fn a_named_variable_passes() {
    let home = Home::new();
    let project = home.project("p");
    let run = project.shell("echo $MY_OWN_SETTING $SET_HERE").env("MY_OWN_SETTING", "passed");
    let ran = run.option("--env", "MY_OWN_SETTING").option("--env", "SET_HERE=set").run().ok();
    assert_eq!(ran.out(), "passed set\n");
}

#[test]
fn a_token_passes_only_when_named_exactly() {
    let home = Home::new();
    let project = home.project("p");
    let run = || project.shell("echo ${GITHUB_TOKEN-absent}").env("GITHUB_TOKEN", "ghp_real");
    assert_eq!(run().option("--env", "GITHUB_TOKEN").run().ok().out(), "ghp_real\n");
    assert_eq!(run().run().ok().out(), "absent\n");
}

#[test]
fn loader_variables_do_not_pass() {
    let home = Home::new();
    let project = home.project("p");
    let marker = project.file("evil.sh", "echo evil\n");
    let run = project.inside(["bash", "-c", "echo ${LD_PRELOAD-absent} ${NODE_OPTIONS-absent}"]);
    let ran = run.env("BASH_ENV", marker).env("NODE_OPTIONS", "--require=evil").run().ok();
    assert_eq!(ran.out(), "absent absent\n");
}

#[test]
fn the_callers_environment_cannot_be_read_from_process_one() {
    let home = Home::new();
    let project = home.project("p");
    let script = "for p in /proc/[0-9]*; do tr '\\0' '\\n' < $p/environ 2>/dev/null; done | grep -c ghp_real";
    let ran = project.shell(script).env("GITHUB_TOKEN", "ghp_real").run();
    assert_eq!(ran.out(), "0\n", "{ran:?}");
}
