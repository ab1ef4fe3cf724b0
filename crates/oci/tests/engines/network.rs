//! The allowlist of a container, and that there is no way past it.

use std::time::{Duration, Instant};

use redoma_sandbox::driver::contract::any_spec;
use redoma_sandbox::driver::{Driver, Spec};
use redoma_tests::World;

use super::bed::{Bed, Kind};
use super::inside::say;

/// A sandbox that may reach one host.
fn with_network(bed: &Bed) -> Spec {
    let mut spec = any_spec(bed);
    spec.rules.allow = vec!["api.example:80".into()];
    spec
}

#[test]
fn a_container_reaches_what_is_allowed_and_nothing_else_in_docker() {
    reaches_what_is_allowed(Kind::Docker);
}

#[test]
fn a_container_reaches_what_is_allowed_and_nothing_else_in_podman() {
    reaches_what_is_allowed(Kind::Podman);
}

fn reaches_what_is_allowed(kind: Kind) {
    let Some(bed) = Bed::raise(kind) else { return };
    let world = World::new();
    let driver = bed.connect_in(&world);
    let spec = with_network(&bed);
    driver.create(&spec).unwrap();
    let say = |script: &str| say(&driver, &spec.id, script);

    // What is allowed works, by its name, which is asked of the gateway.
    let fetched = say("wget -q -O - http://api.example/ 2>&1");
    assert!(!fetched.contains("wget:"), "{fetched}");
    let arrived = world.arrived();
    assert!(arrived.contains("GET / HTTP"), "{arrived}");
    // The same to another host is refused, and its name is asked of nobody.
    let refused = say("wget -q -O - http://other.example/ 2>&1; echo $?");
    assert!(!refused.ends_with("0\n"), "{refused}");
    assert_eq!(world.arrived(), arrived);
    assert!(!world.asked().iter().any(|name| name.contains("other")), "{:?}", world.asked());
    // By address there is no way either: neither of the world's, nor of this machine.
    let direct = say("nc -w 2 93.184.1.1 25 </dev/null 2>&1; nc -w 2 10.1.2.3 80 </dev/null 2>&1");
    assert!(!direct.contains("220"), "{direct}");
    assert_eq!(world.arrived(), arrived);

    assert_eq!(say("ls /sys/class/net").trim(), "lo");
    let changed = say("ip route del local default dev lo table local 2>&1; ip link set lo down 2>&1");
    assert!(changed.contains("not permitted"), "{changed}");
    assert!(say("cat /etc/resolv.conf").contains("127.0.0.1"));
    assert!(say("cat $SSL_CERT_FILE").contains("BEGIN CERTIFICATE"));
    assert_eq!(say("ls /gate 2>/dev/null"), "", "the gate is the helper's alone");

    // Without its helper the network is dead, and not open: the same connection, before and after.
    let names = say("nslookup api.example 2>&1");
    let address =
        names.split_whitespace().find(|word| word.starts_with("198.1")).unwrap_or_else(|| panic!("{names}"));
    let connect = format!("nc -w 5 {address} 80 </dev/null >/dev/null 2>&1; echo $?");
    assert_eq!(say(&connect), "0\n");
    let helpers = bed.client(&["ps", "-q", "--filter", "label=redoma.kind=helper"]);
    bed.client(&["kill", helpers.trim()]);
    let began = Instant::now();
    while say(&connect) == "0\n" {
        assert!(began.elapsed() < Duration::from_secs(20), "it goes on without its helper");
    }

    // The next life has it again.
    driver.stop(&spec.id).unwrap();
    let again = say("wget -q -O - http://api.example/ 2>&1");
    assert!(!again.contains("wget:"), "{again}");
    driver.destroy(&spec.id).unwrap();
    assert_eq!(bed.client(&["ps", "-aq"]).trim(), "", "a container is left");
    let left = bed.folder.path().join("redoma/state/oci").join(spec.id.as_str());
    assert!(!left.exists(), "a folder is left: {:?}", std::fs::read_dir(&left).unwrap().collect::<Vec<_>>());
}
