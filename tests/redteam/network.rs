//! What somebody inside tries against the gateway: each attempt carries a mark, and the servers say whether it arrived.

use redoma_tests::{Home, Tier, World, requires};

/// One program with every attempt: `network.py`.
const ATTEMPTS: &str = include_str!("network.py");

/// `api.example` is open, for some requests; so is a name that changes its address, and one that is this machine.
const POLICY: &str = r#"
[[network.rule]]
host = "api.example"
ports = [80, 443]
action = "inspect"
methods = ["GET", "POST"]
paths = ["/ok/**"]

[[network.rule]]
host = "rebind.example"
ports = [80]
action = "inspect"

[[network.rule]]
host = "loopback.example"
ports = [80]
action = "inspect"
"#;

/// Attempts that are no attempts outside: the gateway's own proxy, and what no server here takes for what it is.
const NO_TWIN: &[&str] = &[
    // There is no proxy outside.
    "this machine's loopback by a tunnel",
    "this machine by name by a tunnel",
    "another host by a tunnel",
    "another host in a tunnel",
    "a tunnel in a tunnel",
    "another host in a proxy's second request",
    "this machine by SOCKS",
    "another host by SOCKS",
    // A server that reads them so would be needed; the mark stands where this one does not look.
    "another path in a header",
    "a header over two lines",
    "a request after an empty line",
    "another protocol after the check",
    // No server speaks it here, or the kernel does not.
    "something else than HTTP",
    "SCTP",
    "MPTCP",
    "a question to a resolver",
    "a question of another kind",
    "a question by TCP",
    "a raw socket",
];

fn names() -> Vec<String> {
    let listed = std::process::Command::new("python3").args(["-c", ATTEMPTS, "list"]).output();
    let listed = listed.expect("python3 runs").stdout;
    String::from_utf8_lossy(&listed).lines().map(str::to_owned).collect()
}

fn hold(tier: Tier) {
    requires!("python3", "curl", "ip");
    let world = World::new();
    let home = Home::new();
    home.policy(POLICY);
    let project = home.project_for(tier);
    project.file("network.py", ATTEMPTS);
    let names = names();
    assert!(names.len() > 50);
    let tries: String = names
        .iter()
        .enumerate()
        .map(|(n, name)| format!("python3 network.py \"{name}\" mark{n}x & "))
        .collect();
    let script = format!("{tries} wait; curl -s http://api.example/ok/twin");
    let ran = world.run(&project, tier, &["--net", "deny"], ["sh", "-c", &script]).run().ok();
    assert_eq!(ran.out().matches("tried").count(), names.len(), "{ran:?}");
    let seen = world.arrived() + &world.asked().join("\n");
    assert!(seen.contains("/ok/twin"), "what is allowed arrives: {ran:?}");
    let through = |n: usize| seen.contains(&format!("mark{n}x"));
    let breaches: Vec<_> = names.iter().enumerate().filter(|(n, _)| through(*n)).collect();
    // The public address of a name that changes it may be reached; the others not.
    let near = |line: &&str| line.contains(" 10.1.2.3 ") || line.contains(" 127.0.0.1 ");
    let rebound = |n: usize| seen.lines().filter(near).any(|line| line.contains(&format!("mark{n}x")));
    let breaches: Vec<_> = breaches
        .into_iter()
        .filter(|(n, name)| *name != "a name that changes its address" || rebound(*n))
        .collect();
    assert!(breaches.is_empty(), "{tier:?}: {breaches:?}\n{seen}");
}

#[test]
fn the_gateway_holds_in_the_full_tier() {
    hold(Tier::Full);
}

#[test]
fn the_gateway_holds_in_the_landlock_tier() {
    hold(Tier::Landlock);
}

/// Outside, in the same world, each does what it is for.
#[test]
fn the_attempts_arrive_where_nobody_stops_them() {
    requires!("python3", "curl", "ip");
    let world = World::new();
    let home = Home::new();
    let program = home.folder("outside").file("network.py", ATTEMPTS);
    let names = names();
    let tries: String = names
        .iter()
        .enumerate()
        .map(|(n, name)| format!("python3 {} \"{name}\" mark{n}x & ", program.display()))
        .collect();
    let ran = world.outside(&format!("{tries} wait")).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let seen = world.arrived() + &world.asked().join("\n");
    let missing: Vec<_> = names
        .iter()
        .enumerate()
        .filter(|(n, name)| !NO_TWIN.contains(&name.as_str()) && !seen.contains(&format!("mark{n}x")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}\n{seen}");
}
