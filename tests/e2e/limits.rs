//! Limits: what reaches one ends, and only that sandbox.

use redoma_tests::{Home, Tier, requires};

#[test]
fn the_time_limit_reaches_processes_that_left_the_session() {
    let home = Home::new();
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        let script = "setsid sh -c 'sleep 1000; touch outlived' & sleep 1000";
        let _ = project.shell(script).tier(tier).option("--time", "1s").run().expect_code(124);
        assert!(!project.path().join("outlived").exists());
    }
}

#[test]
fn a_nonsense_limit_is_refused() {
    let home = Home::new();
    let project = home.project("p");
    for (option, value) in [("--memory", "lots"), ("--time", "-1s"), ("--pids", "0"), ("--cpus", "none")] {
        let ran = project.inside(["touch", "started"]).arg(format!("{option}={value}")).run();
        assert!([2, 125].contains(&ran.code()), "{option} {ran:?}");
        assert!(!project.path().join("started").exists());
    }
    let sane = ["--memory=1GiB", "--time=1m", "--pids=100"];
    let run = sane.iter().fold(project.inside(["touch", "started"]), redoma_tests::Redoma::arg);
    let _ = run.run().ok();
}

#[test]
fn a_fork_bomb_stays_within_its_processes() {
    let home = Home::new();
    let project = home.project("p");
    let script = "i=0; while [ $i -lt 200 ]; do sleep 1000 & i=$((i+1)); done 2>/dev/null; true";
    let limited = project.attempt(script).option("--pids", "30").run().started();
    assert!(limited.err().contains("fork") || limited.code() != 0, "{limited:?}");
    let _ = project.shell(script).option("--pids", "400").option("--time", "60s").run().ok();
}

#[test]
fn a_memory_limit_stops_what_needs_more() {
    requires!("python3");
    let home = Home::new();
    let project = home.project("p");
    let script = "/usr/bin/python3 -c 'b = bytearray(400 << 20); print(len(b))'";
    let ran = project.attempt(script).option("--memory", "100MiB").run().started();
    assert_ne!(ran.code(), 0, "{ran:?}");
    assert_eq!(project.shell(script).option("--memory", "1GiB").run().ok().out(), "419430400\n");
}
