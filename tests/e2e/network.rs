//! `--net none`: nothing of the host's network is reachable.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use redoma_tests::{Home, Tier, requires};

fn connect(port: u16) -> String {
    format!(
        "import socket; print('started', flush=True); socket.create_connection(('127.0.0.1', {port}), 5); print('connected')"
    )
}

#[test]
fn a_server_of_the_host_cannot_be_reached() {
    requires!("python3");
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let script = connect(listener.local_addr().unwrap().port());
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        let ran = project.inside(["/usr/bin/python3", "-c", &script]).tier(tier).run().started();
        assert!(!ran.out().contains("connected"), "{tier:?} {ran:?}");
    }
    let outside = std::process::Command::new("/usr/bin/python3").args(["-c", &script]).output().unwrap();
    assert_eq!(outside.stdout, b"started\nconnected\n", "the twin");
}

#[test]
fn a_unix_socket_of_the_host_cannot_be_reached() {
    requires!("python3");
    let home = Home::new();
    let socket = home.outside().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let script = format!(
        "import socket; print('started', flush=True); s = socket.socket(socket.AF_UNIX); s.connect('{}'); print('connected')",
        socket.display()
    );
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        let ran = project.inside(["/usr/bin/python3", "-c", &script]).tier(tier).run().started();
        assert!(!ran.out().contains("connected"), "{tier:?} {ran:?}");
    }
    let outside = std::process::Command::new("/usr/bin/python3").args(["-c", &script]).output().unwrap();
    assert_eq!(outside.stdout, b"started\nconnected\n", "the twin");
}

#[test]
fn loopback_inside_is_its_own() {
    requires!("python3");
    let home = Home::new();
    let script = "import socket
s = socket.create_server(('127.0.0.1', 0))
c = socket.create_connection(s.getsockname())
print('own loopback')";
    let ran = home.project("p").inside(["/usr/bin/python3", "-c", script]).run().ok();
    assert_eq!(ran.out(), "own loopback\n");
}

#[test]
fn the_default_network_without_a_rule_is_none() {
    let home = Home::new();
    let ran = home.project("p").redoma(["run"]).command(["echo", "works"]).run().ok();
    assert_eq!(ran.out(), "works\n");
}
