//! A sandbox as init builds it, without the policy and the manager above.
//!
//! The standard harness runs tests on threads, and a process with threads is refused the fork. So this is a plain
//! program that speaks as much of the harness's protocol as a runner needs.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use std::ffi::OsString;
use std::io::Read;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use redoma_jail::{
    Blueprint, Canary, Cover, Ending, Event, Exec, Grant, Identity, Jail, Piece, Privileges, Rights, Root,
    Tier,
};

/// Runs `script` under `sh` in a sandbox of these pieces; its output and how it ended.
fn run(outside: &Path, pieces: Vec<Piece>, script: &str) -> (String, Ending) {
    std::fs::create_dir(outside.join("closed")).unwrap();
    std::fs::write(outside.join("closed/canary"), "outside").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = |at: &str| Piece::Host { at: std::fs::canonicalize(at).unwrap(), writable: false };
    let mut layout = vec![host("/usr"), host("/etc")];
    for name in ["bin", "lib", "lib64", "sbin"] {
        layout
            .push(Piece::Link { at: PathBuf::from("/").join(name), target: PathBuf::from("usr").join(name) });
    }
    layout.push(Piece::Private { at: "/tmp".into(), mode: 0o1777 });
    layout.extend(pieces);
    let blueprint = Blueprint {
        tier: Tier::Full,
        identity: Identity::of_caller(false),
        privileges: Privileges::None,
        hostname: None,
        root: Root::Private,
        layout,
        access: vec![Grant { path: "/".into(), rights: Rights::Write }],
        nested_userns: false,
        private_bytes: 1 << 20,
        wire: None,
        rlimits: Vec::new(),
        canary: Canary {
            read: outside.join("closed/canary"),
            write: outside.join("closed"),
            connect: listener.local_addr().unwrap().port(),
        },
    };
    let (jail, _) = Jail::start(&blueprint).unwrap().ready().unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let exec = Exec {
        argv: ["sh", "-c", script].map(OsString::from).to_vec(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        folder: "/".into(),
        terminal: None,
        ..Exec::default()
    };
    let null = std::fs::File::open("/dev/null").unwrap();
    jail.exec(exec, &[null.as_fd(), writer.as_fd(), writer.as_fd()]).unwrap();
    drop(writer);
    let mut output = String::new();
    reader.read_to_string(&mut output).unwrap();
    let Some(Event::Ended { ending, .. }) = jail.event().unwrap() else { panic!("no end") };
    jail.end();
    (output, ending)
}

fn a_command_sees_what_is_placed_and_nothing_else() {
    let outside = tempfile::tempdir().unwrap();
    let project = outside.path().join("project");
    std::fs::create_dir_all(project.join("sub")).unwrap();
    std::fs::write(project.join("secret"), "real").unwrap();
    let project = project.canonicalize().unwrap();
    let pieces = vec![
        Piece::Host { at: project.clone(), writable: true },
        Piece::Cover { at: project.join("secret"), with: Cover::File(b"decoy".to_vec(), 0o600) },
        Piece::Pin { at: project.join("sub"), read_only: true },
        Piece::Cover { at: "/etc/resolv.conf".into(), with: Cover::Folder(vec![]) },
    ];
    let pieces = pieces.into_iter().filter(|piece| piece.at() != Path::new("/etc/resolv.conf")).collect();
    let script = format!(
        "cd {0}; echo $$; cat secret; echo; echo new > made; echo no > sub/x; mv sub y; ls {1}; id -u; cat /proc/1/environ; tty; ls /",
        project.display(),
        outside.path().display()
    );
    let (output, ending) = run(outside.path(), pieces, &script);
    println!("{output}");
    assert_eq!(ending, Ending::Exited(0));
    assert!(output.contains("decoy") && !output.contains("real"), "{output}");
    assert!(output.contains("Read-only file system"), "{output}");
    assert!(output.contains("busy"), "{output}");
    assert!(!output.contains("canary"), "{output}");
    assert_eq!(std::fs::read_to_string(project.join("made")).unwrap(), "new\n");
}

fn main() {
    const NAME: &str = "a_command_sees_what_is_placed_and_nothing_else";
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.iter().any(|argument| argument == "--list") {
        true if arguments.iter().any(|argument| argument == "--ignored") => {}
        true => println!("{NAME}: test"),
        false => a_command_sees_what_is_placed_and_nothing_else(),
    }
}
