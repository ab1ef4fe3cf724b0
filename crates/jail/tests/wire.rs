//! The network of the full tier: whatever a command connects to, it is the gateway's socket that takes the connection, and
//! it knows where to. The gateway here tells whoever connects what it was asked for.
//!
//! A plain program, as `bell.rs`. Called with `inside` it is what runs in the sandbox.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

#[path = "wire/gateway.rs"]
mod gateway;
#[path = "wire/inside.rs"]
mod inside;

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use redoma_jail::{
    Blueprint, Canary, Ending, Event, Exec, Grant, Identity, Jail, JailError, Piece, Privileges, Rights,
    Root, Step, Tier, Wire, Wires,
};
use redoma_sys::Errno;

use gateway::Gateway;

const PROXY: u16 = 3128;
/// Low, so that nothing else of these tests has it.
const REACH: u16 = 543;

/// A sandbox with a network, and what it leaves outside.
struct Ground {
    outside: tempfile::TempDir,
    canary: TcpListener,
    blueprint: Blueprint,
}

impl Ground {
    fn new() -> Self {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("canary"), "outside").unwrap();
        let canary = TcpListener::bind("127.0.0.1:0").unwrap();
        let blueprint = Blueprint {
            tier: Tier::Full,
            identity: Identity::of_caller(false),
            privileges: Privileges::None,
            hostname: None,
            root: Root::Private,
            layout: layout(),
            access: vec![Grant { path: "/".into(), rights: Rights::Write }],
            nested_userns: false,
            private_bytes: 1 << 20,
            wire: Some(wire(PROXY)),
            rlimits: Vec::new(),
            canary: Canary {
                read: outside.path().join("canary"),
                write: outside.path().to_owned(),
                connect: canary.local_addr().unwrap().port(),
            },
        };
        Self { outside, canary, blueprint }
    }

    fn raise(&self) -> (Jail, Wires) {
        let (mut jail, _) = Jail::start(&self.blueprint).unwrap().ready().unwrap();
        let wires = jail.take_wires().unwrap();
        assert!(jail.take_wires().is_none());
        (jail, wires)
    }

    /// What `what` prints inside, and what came to the gateway meanwhile.
    fn run(&self, what: &str) -> (String, Vec<String>) {
        self.run_below(&[], what)
    }

    /// The same, started by another program.
    fn run_below(&self, starter: &[&str], what: &str) -> (String, Vec<String>) {
        let (jail, wires) = self.raise();
        let gateway = Gateway::serve(&wires);
        let mut output = String::new();
        start(&jail, starter, what).read_to_string(&mut output).unwrap();
        expect_end(&jail, &output);
        jail.end();
        (output, gateway.seen())
    }
}

fn wire(proxy: u16) -> Wire {
    let port = |port| NonZeroU16::new(port).unwrap();
    Wire::Namespace { proxy_port: port(proxy), reach: vec![port(REACH)] }
}

/// The system's programs and this one.
fn layout() -> Vec<Piece> {
    let host = |at: &str| Piece::Host { at: std::fs::canonicalize(at).unwrap(), writable: false };
    let mut layout = vec![host("/usr"), host("/etc")];
    for name in ["bin", "lib", "lib64", "sbin"] {
        layout
            .push(Piece::Link { at: PathBuf::from("/").join(name), target: PathBuf::from("usr").join(name) });
    }
    layout.push(Piece::Private { at: "/tmp".into(), mode: 0o1777 });
    layout.push(host(std::env::current_exe().unwrap().to_str().unwrap()));
    layout
}

/// Has this program do `what` inside.
fn start(jail: &Jail, starter: &[&str], what: &str) -> std::io::PipeReader {
    let own = std::env::current_exe().unwrap();
    let own = [own.to_str().unwrap(), "inside", what];
    let exec = Exec {
        argv: starter.iter().chain(&own).map(OsString::from).collect(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        folder: "/".into(),
        terminal: None,
        ..Exec::default()
    };
    let (reader, writer) = std::io::pipe().unwrap();
    let null = std::fs::File::open("/dev/null").unwrap();
    jail.exec(exec, &[null.as_fd(), writer.as_fd(), writer.as_fd()]).unwrap();
    reader
}

fn expect_end(jail: &Jail, output: &str) {
    let Some(Event::Ended { ending, .. }) = jail.event().unwrap() else { panic!("no end") };
    assert_eq!(ending, Ending::Exited(0), "{output}");
}

// === tests ===

fn every_connection_comes_with_its_destination() {
    let (output, seen) = Ground::new().run("connect");
    let asked: Vec<_> = inside::DESTINATIONS.iter().map(|to| format!("tcp {to}")).collect();
    let got: Vec<_> = seen.iter().map(String::as_str).collect();
    assert_eq!(got, asked.iter().map(String::as_str).collect::<Vec<_>>(), "{output}");
}

fn loopback_is_the_sandboxes_own() {
    let (_, seen) = Ground::new().run("loopback");
    assert!(seen.is_empty(), "{seen:?}");
}

fn whoever_connects_to_the_capturing_port_itself_shows() {
    let ground = Ground::new();
    let (jail, wires) = ground.raise();
    let own = gateway::address(&wires.capture[0]);
    assert!(own.port() < 1024, "commands could want it");
    let gateway = Gateway::serve(&wires);
    let mut output = String::new();
    start(&jail, &[], &format!("talk {own}")).read_to_string(&mut output).unwrap();
    expect_end(&jail, &output);
    jail.end();
    assert_eq!(gateway.seen(), [format!("tcp {own}")]);
}

fn names_are_asked_for_at_any_address() {
    let (_, seen) = Ground::new().run("names");
    assert_eq!(seen, vec!["udp"; 2 * inside::NAME_SERVERS.len()]);
}

fn other_datagrams_are_refused_at_once() {
    let (_, seen) = Ground::new().run("datagrams");
    assert!(seen.is_empty(), "{seen:?}");
}

fn the_proxy_and_reached_ports_are_on_loopback() {
    let (_, seen) = Ground::new().run("ports");
    assert_eq!(seen, ["proxy", "proxy", "reach 543", "reach 543"]);
}

fn no_option_leads_past_the_gateway() {
    let (output, seen) = Ground::new().run("options");
    print!("{output}");
    let ways =
        ["192.0.2.1:8001", "192.0.2.2:2", "192.0.2.3:3", "[2001:db8::1]:4", "192.0.2.5:5", "[fe80::1]:6"];
    assert_eq!(seen, ways.map(|to| format!("tcp {to}")));
}

fn connections_that_differ_by_destination_only_are_two() {
    let (_, mut seen) = Ground::new().run("same-source");
    seen.sort();
    assert_eq!(seen, ["tcp 192.0.2.1:1", "tcp 192.0.2.1:2", "tcp [2001:db8::1]:3", "tcp [2001:db8::2]:3"]);
}

fn a_sandbox_inside_changes_no_rule() {
    let mut ground = Ground::new();
    ground.blueprint.nested_userns = true;
    let (_, seen) = ground.run_below(&["unshare", "--user", "--keep-caps"], "nested");
    assert_eq!(seen, ["tcp 192.0.2.1:1"]);
}

fn a_network_namespace_inside_has_no_way_out() {
    let mut ground = Ground::new();
    ground.blueprint.nested_userns = true;
    let (_, seen) = ground.run_below(&["unshare", "--user", "--keep-caps", "--net"], "alone");
    assert!(seen.is_empty(), "{seen:?}");
}

fn without_a_gateway_connections_are_refused() {
    let (jail, wires) = Ground::new().raise();
    drop(wires);
    let mut output = String::new();
    start(&jail, &[], "gone").read_to_string(&mut output).unwrap();
    expect_end(&jail, &output);
}

fn the_canary_finds_nobody_on_any_port() {
    let mut ground = Ground::new();
    ground.blueprint.wire = Some(wire(ground.canary.local_addr().unwrap().port()));
    let (jail, _wires) = ground.raise();
    jail.end();
    assert!(!ground.outside.path().join("written-by-the-canary").exists());
}

fn two_ports_that_are_one_are_named() {
    let mut ground = Ground::new();
    ground.blueprint.wire = Some(wire(REACH));
    let error = Jail::start(&ground.blueprint).unwrap().ready().unwrap_err();
    let JailError::Step(failure) = &error else { panic!("{error}") };
    assert_eq!((failure.step, failure.errno()), (Step::Listen, Errno::ADDRINUSE));
    assert_eq!(
        error.to_string(),
        "cannot open the gateway's socket inside \"127.0.0.1:543\": Address already in use (os error 98)"
    );
    assert!(error.hint().contains("choose another"), "{}", error.hint());
}

fn what_listens_inside_is_dialled() {
    let ground = Ground::new();
    let (jail, wires) = ground.raise();
    let mut output = BufReader::new(start(&jail, &[], "serve")).lines();
    assert_eq!(output.next().unwrap().unwrap(), "listening");
    let dial = |port| wires.entrance.dial(NonZeroU16::new(port).unwrap());
    for port in [inside::V4_ONLY, inside::V6_ONLY] {
        assert_eq!(greeting(dial(port).unwrap()), format!("from {port}\n"));
    }
    let error = dial(1).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot connect into the sandbox to \"127.0.0.1:1\": Connection refused (os error 111)"
    );
    // A server that takes nothing makes the caller wait, not init.
    let begun = Instant::now();
    let held: Vec<_> = (0..8).map(|_| dial(inside::BUSY).unwrap()).collect();
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    drop(held);
    assert_eq!(output.next().unwrap().unwrap(), "done");
    jail.end();
}

fn greeting(socket: OwnedFd) -> String {
    let flags = rustix::fs::fcntl_getfl(&socket).unwrap();
    assert!(flags.contains(rustix::fs::OFlags::NONBLOCK));
    rustix::io::ioctl_fionbio(&socket, false).unwrap();
    let mut greeting = String::new();
    let mut stream = TcpStream::from(socket);
    stream.write_all(b"x").unwrap();
    stream.read_to_string(&mut greeting).unwrap();
    greeting
}

fn without_a_network_there_are_no_wires() {
    let mut ground = Ground::new();
    ground.blueprint.wire = None;
    let (mut jail, _) = Jail::start(&ground.blueprint).unwrap().ready().unwrap();
    assert!(jail.take_wires().is_none());
    let mut output = String::new();
    start(&jail, &[], "none").read_to_string(&mut output).unwrap();
    expect_end(&jail, &output);
}

fn whose_a_connection_is_can_be_asked() {
    let (jail, mut wires) = Ground::new().raise();
    let mut output = BufReader::new(start(&jail, &[], "inode")).lines();
    for listener in &wires.capture {
        let inode = output.next().unwrap().unwrap().parse().unwrap();
        let (_stream, peer, destination) = gateway::accept_with_destination(listener);
        assert_eq!(wires.sockets.inode(peer, destination), Ok(inode));
    }
    let nobody = "192.0.2.99:9".parse().unwrap();
    assert_eq!(wires.sockets.inode(nobody, nobody), Err(Errno::NOENT));
    jail.end();
}

fn connections_are_made_quickly() {
    let ground = Ground::new();
    let (output, seen) = ground.run("many");
    print!("{output}");
    assert_eq!(seen.len(), 2 * inside::MANY);
}

const TESTS: &[(&str, fn())] = &[
    ("every_connection_comes_with_its_destination", every_connection_comes_with_its_destination),
    ("loopback_is_the_sandboxes_own", loopback_is_the_sandboxes_own),
    (
        "whoever_connects_to_the_capturing_port_itself_shows",
        whoever_connects_to_the_capturing_port_itself_shows,
    ),
    ("names_are_asked_for_at_any_address", names_are_asked_for_at_any_address),
    ("other_datagrams_are_refused_at_once", other_datagrams_are_refused_at_once),
    ("the_proxy_and_reached_ports_are_on_loopback", the_proxy_and_reached_ports_are_on_loopback),
    ("no_option_leads_past_the_gateway", no_option_leads_past_the_gateway),
    (
        "connections_that_differ_by_destination_only_are_two",
        connections_that_differ_by_destination_only_are_two,
    ),
    ("a_sandbox_inside_changes_no_rule", a_sandbox_inside_changes_no_rule),
    ("a_network_namespace_inside_has_no_way_out", a_network_namespace_inside_has_no_way_out),
    ("without_a_gateway_connections_are_refused", without_a_gateway_connections_are_refused),
    ("the_canary_finds_nobody_on_any_port", the_canary_finds_nobody_on_any_port),
    ("two_ports_that_are_one_are_named", two_ports_that_are_one_are_named),
    ("what_listens_inside_is_dialled", what_listens_inside_is_dialled),
    ("without_a_network_there_are_no_wires", without_a_network_there_are_no_wires),
    ("whose_a_connection_is_can_be_asked", whose_a_connection_is_can_be_asked),
    ("connections_are_made_quickly", connections_are_made_quickly),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    match arguments.as_slice() {
        [word, what] if word == "inside" => return inside::run(what),
        _ if has("--list") && has("--ignored") => return,
        _ => {}
    }
    let named = arguments.iter().filter(|argument| !argument.starts_with('-')).collect::<Vec<_>>();
    for (name, test) in TESTS {
        match has("--list") {
            true => println!("{name}: test"),
            // Each in a process of its own, for the gateway's threads of one are in the way of the next.
            false if named.is_empty() => run_alone(name),
            false if named.iter().any(|wanted| wanted.as_str() == *name) => {
                println!("{name}");
                test();
            }
            false => {}
        }
    }
}

fn run_alone(name: &str) {
    let status = std::process::Command::new(std::env::current_exe().unwrap()).arg(name).status().unwrap();
    assert!(status.success(), "{name}: {status}");
}
