//! Attributes of files in the landlock tier: what is granted for writing can be changed in every way that there is,
//! and nothing else in any.
//!
//! A plain program, as `bell.rs`. Called with `inside` it is what runs in the sandbox.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use std::ffi::{CString, OsString};
use std::fs::{self, File, Permissions};
use std::io::Read;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};

use redoma_jail::{
    Blueprint, Canary, Ending, Event, Exec, Grant, Identity, Jail, JailError, Privileges, Rights, Root, Tier,
};
use redoma_sys::{Errno, probe};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, XattrFlags};

/// What lies on the host: a folder granted for writing, one for reading, one not at all.
struct Ground {
    root: tempfile::TempDir,
}

/// Everything that could have changed about a file; its last status change tells even what was set to what it was.
#[derive(Debug, PartialEq, Eq)]
struct State(u32, u32, u32, [i64; 6]);

impl Ground {
    fn new() -> Self {
        let ground = Self { root: tempfile::tempdir().unwrap() };
        for folder in ["write", "read", "none", "write/folder"] {
            fs::create_dir(ground.path(folder)).unwrap();
        }
        for file in ["write/file", "write/folder/file", "read/file", "none/file"] {
            fs::write(ground.path(file), "content").unwrap();
        }
        symlink(ground.path("none/file"), ground.path("write/out")).unwrap();
        symlink("file", ground.path("write/in")).unwrap();
        symlink(ground.path("write/file"), ground.path("none/in")).unwrap();
        ground
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    fn state(&self, name: &str) -> State {
        let now = fs::symlink_metadata(self.path(name)).unwrap();
        let times =
            [now.atime(), now.atime_nsec(), now.mtime(), now.mtime_nsec(), now.ctime(), now.ctime_nsec()];
        State(now.mode(), now.uid(), now.gid(), times)
    }

    fn blueprint(&self, listener: &TcpListener) -> Blueprint {
        let grant = |path: PathBuf, rights| Grant { path, rights };
        let system = ["/usr", "/etc", "/bin", "/lib", "/lib64", "/proc"].map(PathBuf::from);
        let own = std::env::current_exe().unwrap();
        let read = system.into_iter().chain([own, self.path("read")]).filter(|path| path.exists());
        let write = [PathBuf::from("/dev/null"), self.path("write")];
        Blueprint {
            tier: Tier::Landlock,
            identity: Identity::of_caller(false),
            privileges: Privileges::None,
            hostname: None,
            root: Root::Private,
            layout: Vec::new(),
            access: read
                .map(|path| grant(path, Rights::Read))
                .chain(write.map(|path| grant(path, Rights::Write)))
                .collect(),
            nested_userns: false,
            private_bytes: 1 << 20,
            wire: None,
            rlimits: Vec::new(),
            canary: Canary {
                read: self.path("none/file"),
                write: self.path("none"),
                connect: listener.local_addr().unwrap().port(),
            },
        }
    }

    /// Runs commands one beside the other in one sandbox until all have ended; their output.
    fn run(&self, commands: &[&[&str]]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (jail, _) = Jail::start(&self.blueprint(&listener)).unwrap().ready().unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        let null = File::open("/dev/null").unwrap();
        for argv in commands {
            let exec = Exec {
                argv: argv.iter().map(OsString::from).collect(),
                environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
                folder: self.path("write"),
                terminal: None,
                ..Exec::default()
            };
            jail.exec(exec, &[null.as_fd(), writer.as_fd(), writer.as_fd()]).unwrap();
        }
        drop(writer);
        let mut output = String::new();
        reader.read_to_string(&mut output).unwrap();
        let Some(Event::Ended { ending, .. }) = jail.event().unwrap() else { panic!("no end") };
        assert_eq!(ending, Ending::Exited(0), "{output}");
        jail.end();
        output
    }

    /// Has this program do `what` inside.
    fn inside(&self, what: &str) -> String {
        let own = std::env::current_exe().unwrap();
        self.run(&[&[own.to_str().unwrap(), "inside", what, self.path("").to_str().unwrap()]])
    }
}

// === the ways to change a file ===

/// Carries out one change of a path, following links.
type Way = fn(&Path) -> Result<(), Errno>;

const WAYS: &[(&str, Way)] = &[
    ("chmod", |path| rustix::fs::chmod(path, Mode::from_raw_mode(0o640))),
    ("libc chmod", |path| errno(fs::set_permissions(path, Permissions::from_mode(0o640)))),
    ("fchmodat2", |path| {
        probe::chmod_with_flags(CWD, &c(path), Mode::from_raw_mode(0o640), AtFlags::empty())
    }),
    ("fchmodat2 of nothing below", |path| {
        let file = named(path)?;
        probe::chmod_with_flags(file.as_fd(), c"", Mode::from_raw_mode(0o640), AtFlags::EMPTY_PATH)
    }),
    ("fchmod", |path| rustix::fs::fchmod(readable(path)?, Mode::from_raw_mode(0o640))),
    ("chmod by way of /proc/self", |path| {
        let file = named(path)?;
        rustix::fs::chmod(format!("/proc/self/fd/{}", file.as_raw_fd()), Mode::from_raw_mode(0o640))
    }),
    ("chmod by way of /proc/pid", |path| {
        let file = named(path)?;
        let name = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        rustix::fs::chmod(name, Mode::from_raw_mode(0o640))
    }),
    ("chmod below a folder in /proc", |path| {
        let folder = named(path.parent().unwrap())?;
        let name = format!("/proc/self/fd/{}/{}", folder.as_raw_fd(), path.file_name().unwrap().display());
        rustix::fs::chmod(name, Mode::from_raw_mode(0o640))
    }),
    ("fchmodat from a folder", |path| {
        let folder = named(path.parent().unwrap())?;
        rustix::fs::chmodat(folder, path.file_name().unwrap(), Mode::from_raw_mode(0o640), AtFlags::empty())
    }),
    ("chown", |path| {
        let (user, group) = own();
        errno(chown(path, Some(user), Some(group)))
    }),
    ("fchownat", |path| {
        let (user, group) = own();
        let (user, group) = (rustix::fs::Uid::from_raw(user), rustix::fs::Gid::from_raw(group));
        rustix::fs::chownat(CWD, path, Some(user), Some(group), AtFlags::empty())
    }),
    ("fchown", |path| rustix::fs::fchown(readable(path)?, Some(rustix::process::getuid()), None)),
    ("utimensat", |path| rustix::fs::utimensat(CWD, path, &times(7), AtFlags::empty())),
    ("futimens", |path| rustix::fs::futimens(readable(path)?, &times(7))),
    ("setxattr", |path| rustix::fs::setxattr(path, "user.mine", b"value", XattrFlags::empty())),
    ("fsetxattr", |path| rustix::fs::fsetxattr(readable(path)?, "user.mine", b"more", XattrFlags::REPLACE)),
    ("removexattr", |path| rustix::fs::removexattr(path, "user.mine")),
    #[cfg(target_arch = "x86_64")]
    ("utime", |path| probe::set_old_times(probe::OldTimes::Utime, &c(path), 7)),
    #[cfg(target_arch = "x86_64")]
    ("utimes", |path| probe::set_old_times(probe::OldTimes::Utimes, &c(path), 7)),
    #[cfg(target_arch = "x86_64")]
    ("futimesat", |path| probe::set_old_times(probe::OldTimes::Futimesat, &c(path), 7)),
];

fn c(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap()
}

fn errno(result: std::io::Result<()>) -> Result<(), Errno> {
    result.map_err(|error| Errno::from_io_error(&error).unwrap())
}

fn own() -> (u32, u32) {
    (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw())
}

fn times(seconds: i64) -> Timestamps {
    let time = Timespec { tv_sec: seconds, tv_nsec: 5 };
    Timestamps { last_access: time, last_modification: time }
}

/// Landlock does not ask who only names a file.
fn named(path: &Path) -> Result<std::os::fd::OwnedFd, Errno> {
    rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

fn readable(path: &Path) -> Result<std::os::fd::OwnedFd, Errno> {
    rustix::fs::openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
}

/// One line per way: its name and the answer.
fn every_way(path: &Path) {
    for (name, way) in WAYS {
        println!("{name}: {}", told(way(path)));
    }
}

fn told(answer: Result<(), Errno>) -> String {
    match answer {
        Ok(()) => "done".into(),
        Err(Errno::ACCESS) => "refused".into(),
        Err(other) => other.to_string(),
    }
}

/// What the command in the sandbox does.
fn inside(what: &str, root: &Path) {
    let file = root.join(what);
    match what {
        "swap" => swap(root),
        "links" => {
            let set =
                |name| rustix::fs::utimensat(CWD, root.join(name), &times(9), AtFlags::SYMLINK_NOFOLLOW);
            println!("{}", told(errno(lchown(root.join("write/out"), Some(own().0), None))));
            println!("{}\n{}", told(set("write/out")), told(set("none/in")));
        }
        "odd" => odd(root),
        _ => every_way(&file),
    }
}

/// Exchanges a folder with a link to one that is not granted while the other process sets modes below that name.
fn swap(root: &Path) {
    const TIMES: u32 = 20_000;
    let (name, aside) = (root.join("write/folder"), root.join("write/aside"));
    symlink(root.join("none"), &aside).unwrap();
    let exchanging = std::thread::spawn(move || {
        for _ in 0..TIMES {
            rustix::fs::renameat_with(CWD, &name, CWD, &aside, rustix::fs::RenameFlags::EXCHANGE).unwrap();
        }
    });
    let (mut changed, mut refused) = (0, 0);
    while !exchanging.is_finished() {
        match rustix::fs::chmod(root.join("write/folder/file"), Mode::from_raw_mode(0o666)) {
            Ok(()) => changed += 1,
            Err(Errno::ACCESS) => refused += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    exchanging.join().unwrap();
    assert!(changed > 0 && refused > 0, "{changed} {refused}: no race at all");
    println!("raced");
}

/// Arguments that mean nothing, or not what they seem to.
fn odd(root: &Path) {
    let file = root.join("write/file");
    let chmod = |path: &Path, mode| rustix::fs::chmod(path, Mode::from_raw_mode(mode));
    assert_eq!(chmod(&file, 0o4755), Err(Errno::PERM));
    assert_eq!(chmod(&file, 0o2755), Err(Errno::PERM));
    assert_eq!(chmod(&file, 0o100_644), Ok(()));
    assert_eq!(chmod(&root.join("write/absent"), 0o644), Err(Errno::NOENT));
    assert_eq!(chmod(&root.join("write/file/"), 0o644), Err(Errno::NOTDIR));
    assert_eq!(chmod(Path::new(""), 0o644), Err(Errno::NOENT));
    assert_eq!(chmod(Path::new(&"x/".repeat(2100)), 0o644), Err(Errno::NAMETOOLONG));
    assert_eq!(chmod(Path::new("/proc/self/fd/77"), 0o644), Err(Errno::BADF));
    assert_eq!(chmod(Path::new("/dev/null"), 0o666), Err(Errno::PERM));
    assert_eq!(chmod(Path::new("file"), 0o644), Ok(()));
    assert_eq!(chmod(Path::new("../none/file"), 0o644), Err(Errno::ACCESS));
    let flags = AtFlags::from_bits_retain(0x8000_0000);
    let mode = Mode::from_raw_mode(0o644);
    assert_eq!(probe::chmod_with_flags(CWD, c"file", mode, flags), Err(Errno::INVAL));
    let long = format!("user.{}", "x".repeat(300));
    assert_eq!(rustix::fs::setxattr(&file, long, b"", XattrFlags::empty()), Err(Errno::RANGE));
    let large = vec![0; 70_000];
    assert_eq!(rustix::fs::setxattr(&file, "user.x", &large, XattrFlags::empty()), Err(Errno::TOOBIG));
    assert!(rustix::fs::setxattr(&file, "security.capability", CAPABILITY, XattrFlags::empty()).is_err());
    let (pipe, _writer) = std::io::pipe().unwrap();
    assert_eq!(rustix::fs::fchmod(&pipe, mode), Err(Errno::ACCESS));
    // A file without a name left is where its last name was.
    let gone = File::create_new(root.join("write/gone")).unwrap();
    fs::remove_file(root.join("write/gone")).unwrap();
    assert_eq!(rustix::fs::fchmod(&gone, mode), Ok(()));
    let (user, _) = own();
    assert_eq!(errno(chown(&file, Some(user + 1), None)), Err(Errno::PERM));
    println!("odd");
}

/// `cap_setuid+ep`, as a file on disk has it. See `capabilities(7)`.
const CAPABILITY: &[u8] = b"\x01\0\0\x02\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

// === tests ===

fn what_is_granted_can_be_changed_in_every_way() {
    let ground = Ground::new();
    for name in ["write/file", "write/in", "none/in"] {
        let output = ground.inside(name);
        assert_eq!(output.lines().count(), WAYS.len(), "{output}");
        for line in output.lines() {
            assert!(line.ends_with(": done"), "{name}: {line}");
        }
        let now = fs::metadata(ground.path("write/file")).unwrap();
        assert_eq!((now.mode() & 0o7777, now.mtime()), (0o640, 7));
        fs::set_permissions(ground.path("write/file"), Permissions::from_mode(0o600)).unwrap();
    }
}

fn nothing_else_can_be_changed_in_any_way() {
    for (name, file) in [("read/file", "read/file"), ("none/file", "none/file"), ("write/out", "none/file")] {
        let ground = Ground::new();
        let before = ground.state(file);
        let output = ground.inside(name);
        assert_eq!(output.lines().count(), WAYS.len(), "{output}");
        for line in output.lines() {
            assert!(line.ends_with(": refused"), "{name}: {line}");
        }
        assert_eq!(ground.state(file), before, "{name}: {output}");
    }
}

fn a_link_itself_can_be_changed_where_it_lies() {
    let ground = Ground::new();
    let before = (ground.state("none/file"), ground.state("none/in"));
    let output = ground.inside("links");
    assert_eq!(output, "done\ndone\nrefused\n");
    assert_eq!((ground.state("none/file"), ground.state("none/in")), before);
    assert_eq!(fs::symlink_metadata(ground.path("write/out")).unwrap().mtime(), 9);
}

fn a_race_of_links_gains_nothing() {
    let ground = Ground::new();
    let before = ground.state("none/file");
    assert_eq!(ground.inside("swap"), "raced\n");
    assert_eq!(ground.state("none/file"), before);
}

fn odd_arguments_are_answered_as_the_kernel_answers() {
    let ground = Ground::new();
    assert_eq!(ground.inside("odd"), "odd\n");
}

fn several_commands_are_served_and_a_killed_one_holds_nobody_up() {
    let ground = Ground::new();
    fs::write(ground.path("write/a"), "").unwrap();
    fs::write(ground.path("write/b"), "").unwrap();
    let busy = |name: &str| {
        format!("i=0; while [ $i -lt 200 ]; do chmod 600 {name}; chmod 640 {name}; i=$((i+1)); done")
    };
    let killed = "(while :; do chmod 600 file; chmod 644 file; done) & kill -9 $!; wait; echo survived";
    let output = ground.run(&[&["sh", "-c", &busy("a")], &["sh", "-c", &busy("b")], &["sh", "-c", killed]]);
    assert_eq!(output, "survived\n");
    for name in ["write/a", "write/b"] {
        assert_eq!(fs::metadata(ground.path(name)).unwrap().mode() & 0o7777, 0o640);
    }
}

fn sandboxes_inside_are_refused_by_name() {
    let ground = Ground::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let blueprint = Blueprint { nested_userns: true, ..ground.blueprint(&listener) };
    let refused = Jail::start(&blueprint);
    assert!(
        matches!(&refused, Err(JailError::Tier { what, .. }) if what.contains("nested_userns")),
        "{refused:?}"
    );
}

const TESTS: &[(&str, fn())] = &[
    ("what_is_granted_can_be_changed_in_every_way", what_is_granted_can_be_changed_in_every_way),
    ("nothing_else_can_be_changed_in_any_way", nothing_else_can_be_changed_in_any_way),
    ("a_link_itself_can_be_changed_where_it_lies", a_link_itself_can_be_changed_where_it_lies),
    ("a_race_of_links_gains_nothing", a_race_of_links_gains_nothing),
    ("odd_arguments_are_answered_as_the_kernel_answers", odd_arguments_are_answered_as_the_kernel_answers),
    (
        "several_commands_are_served_and_a_killed_one_holds_nobody_up",
        several_commands_are_served_and_a_killed_one_holds_nobody_up,
    ),
    ("sandboxes_inside_are_refused_by_name", sandboxes_inside_are_refused_by_name),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |word: &str| arguments.iter().any(|argument| argument == word);
    match arguments.as_slice() {
        [word, what, root] if word == "inside" => return inside(what, Path::new(root)),
        _ if has("--list") && has("--ignored") => return,
        _ => {}
    }
    let named = arguments.iter().filter(|argument| !argument.starts_with('-')).collect::<Vec<_>>();
    for (name, test) in TESTS {
        match has("--list") {
            true => println!("{name}: test"),
            false if named.is_empty() || named.iter().any(|wanted| wanted.as_str() == *name) => {
                println!("{name}");
                test();
            }
            false => {}
        }
    }
}
