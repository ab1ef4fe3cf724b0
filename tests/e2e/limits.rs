//! Limits: what reaches one ends, and only that sandbox.

use redoma_tests::{Home, Tier};

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
