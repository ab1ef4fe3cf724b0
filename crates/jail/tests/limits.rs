//! Limits as the kernel holds them: bombs inside, and a keeper that is killed.
//!
//! Like `bell.rs` a plain program, since a process with threads is refused the fork.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use redoma_jail::limits::{Action, By, Claim, Enforced, Hit, Limit, Limits, Peak, Scraps, Wanted, gc};
use redoma_jail::{
    Blueprint, Canary, Ending, Event, Exec, Grant, Identity, Jail, JailError, Piece, Privileges, Rights,
    Root, Tier,
};
use redoma_sys::Usage;
use rustix::process::{Pid, Signal, WaitOptions};

type Test = (&'static str, fn());

/// Root is held to have cgroups: where even root gets none these fail, rather than pass without having run.
const ROOT_TESTS: &[Test] = &[
    ("a_memory_bomb_is_killed", a_memory_bomb_is_killed),
    ("a_fork_bomb_is_refused", a_fork_bomb_is_refused),
    ("a_fork_bomb_that_goes_on_is_ended", a_fork_bomb_that_goes_on_is_ended),
    ("a_processor_hog_is_throttled", a_processor_hog_is_throttled),
];
const TESTS: &[Test] = &[
    ("without_rights_rlimits_hold_what_they_can", without_rights_rlimits_hold_what_they_can),
    ("nothing_is_left_of_a_killed_keeper", nothing_is_left_of_a_killed_keeper),
    ("gc_finds_what_even_the_janitor_left", gc_finds_what_even_the_janitor_left),
];

/// Holds 160 MiB at once.
const MEMORY_BOMB: &str = "head -c 160M /dev/zero | tail > /dev/null";
/// More processes than `PIDS`, all alive at once.
const FORK_BOMB: &str = "for i in $(seq 60); do sleep 100 > /dev/null 2>&1 & p=\"$p $!\"; done; kill $p";
/// The command itself forks once, before there is a bomb that could make that fail.
const ENDLESS_FORK_BOMB: &str = "bomb() { bomb | bomb & }; echo off; bomb; exec sleep 1000";
/// A tenth of a second or so of one processor.
const HOG: &str = "i=0; while [ $i -lt 80000 ]; do i=$((i+1)); done";

const MEMORY: u64 = 64 << 20;
const PIDS: u32 = 24;

// === Tests ===

fn a_memory_bomb_is_killed() {
    assert_eq!(run(MEMORY_BOMB, &Wanted::default()).ending, Ending::Exited(0));
    let ran = run(MEMORY_BOMB, &Wanted { memory: Some(MEMORY), strict: true, ..Wanted::default() });
    assert_eq!(ran.ending, Ending::Exited(128 + Signal::KILL.as_raw()));
    assert!(ran.hit(Limit::Memory, Action::Killed), "{ran:?}");
    assert!(ran.peak.memory.is_none_or(|peak| peak > MEMORY / 2 && peak <= MEMORY), "{ran:?}");
}

fn a_fork_bomb_is_refused() {
    assert_eq!(run(FORK_BOMB, &Wanted::default()).ending, Ending::Exited(0));
    let ran = run(FORK_BOMB, &Wanted { pids: Some(PIDS), strict: true, ..Wanted::default() });
    assert_ne!(ran.ending, Ending::Exited(0));
    assert!(ran.output.contains("fork"), "{ran:?}");
    assert!(ran.hit(Limit::Pids, Action::Refused), "{ran:?}");
}

fn a_fork_bomb_that_goes_on_is_ended() {
    let wanted = Wanted { pids: Some(PIDS), memory: Some(MEMORY), ..Wanted::default() };
    let session = session();
    let limits = Limits::prepare(&wanted, Tier::Full, &session, None, None).unwrap();
    let (jail, mut output) = start(ENDLESS_FORK_BOMB, &limits);
    output.read_exact(&mut [0; 4]).unwrap();
    let members = || members_of(&format!("redoma-{session}"));
    assert!(!members().is_empty());
    limits.kill();
    assert_eq!(members(), "");
    jail.end();
    assert!(limits.remove().is_empty());
}

fn a_processor_hog_is_throttled() {
    let free = run(HOG, &Wanted::default());
    let ran = run(HOG, &Wanted { cpus: Some(0.05), strict: true, ..Wanted::default() });
    assert!(ran.hit(Limit::Cpus, Action::Throttled), "{ran:?}");
    assert!(free.hits.is_empty(), "{free:?}");
    // By processor time, since other work on the machine slows down both. A quota holds per period, on average.
    assert!(
        ran.processors < 0.1 && free.processors > ran.processors,
        "{ran:?}, but {} without",
        free.processors
    );
}

fn without_rights_rlimits_hold_what_they_can() {
    become_nobody();
    let wanted = Wanted { pids: Some(PIDS), cpus: Some(1.0), memory: Some(MEMORY), ..Wanted::default() };
    let strict =
        Limits::prepare(&Wanted { strict: true, ..wanted.clone() }, Tier::Full, &session(), None, None);
    assert!(matches!(strict, Err(JailError::Limit { what: "cpus", .. })), "{strict:?}");
    assert_eq!(run(FORK_BOMB, &Wanted::default()).ending, Ending::Exited(0));
    let ran = run(FORK_BOMB, &wanted);
    assert_ne!(ran.ending, Ending::Exited(0));
    assert!(ran.output.contains("fork"), "{ran:?}");
    let by: Vec<_> = ran.enforced.iter().map(|one| (one.limit, one.by, one.caveat.is_none())).collect();
    let expected = [
        (Limit::Cpus, By::Nothing, false),
        (Limit::Memory, By::Rlimit, false),
        (Limit::Pids, By::Rlimit, true),
    ];
    assert_eq!(by, expected);
    let ran = run(MEMORY_BOMB, &wanted);
    assert!(ran.output.contains("memory exhausted"), "{ran:?}");
}

fn nothing_is_left_of_a_killed_keeper() {
    let folder = tempfile::tempdir().unwrap();
    // Orphans come to this process, so it can wait for the janitor's end without guessing how long it takes.
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let keeper = Keeper::start(folder.path());
    let groups = keeper.groups();
    assert!(keeper.scrap.join("file").exists());
    assert_eq!(groups.is_empty(), !is_root());
    // A shell's Ctrl-C and whatever else a terminal sends must not reach the janitor.
    rustix::process::kill_process(keeper.janitor(), Signal::TERM).unwrap();
    rustix::process::kill_process(keeper.pid, Signal::KILL).unwrap();
    while rustix::process::wait(WaitOptions::empty()).is_ok() {}
    assert!(groups.iter().all(|group| !group.exists()), "{groups:?}");
    assert!(!keeper.scrap.exists());
}

fn gc_finds_what_even_the_janitor_left() {
    let folder = tempfile::tempdir().unwrap();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let keeper = Keeper::start(folder.path());
    let (groups, places) = (keeper.groups(), scraps(folder.path()));
    let of_session = |dry| {
        let found = gc(&places, dry).into_iter().filter(|one| one.path.ends_with(&keeper.name));
        found.map(|one| (one.path, one.removed)).collect::<Vec<_>>()
    };
    assert!(of_session(true).is_empty(), "it lives");
    rustix::process::kill_process(keeper.janitor(), Signal::KILL).unwrap();
    rustix::process::kill_process(keeper.pid, Signal::KILL).unwrap();
    while rustix::process::wait(WaitOptions::empty()).is_ok() {}
    let found = of_session(true);
    assert_eq!(found.len(), groups.len() + 1, "{found:?}");
    assert!(found.iter().all(|(path, removed)| path.exists() && !removed));
    assert!(of_session(false).iter().all(|(path, removed)| !path.exists() && *removed));
    assert!(of_session(false).is_empty());
}

// === A session ===

#[derive(Debug)]
struct Ran {
    output: String,
    ending: Ending,
    /// Processor time per time.
    processors: f64,
    enforced: Vec<Enforced>,
    hits: Vec<Hit>,
    peak: Peak,
}

impl Ran {
    fn hit(&self, limit: Limit, action: Action) -> bool {
        self.hits.iter().any(|hit| (hit.limit, hit.action) == (limit, action) && hit.times > 0)
    }
}

/// Runs `script` to its end and sees that nothing is left.
fn run(script: &str, wanted: &Wanted) -> Ran {
    let session = session();
    let limits = Limits::prepare(wanted, Tier::Full, &session, None, None).unwrap();
    let (before, begun) = (processor_time(redoma_sys::children_usage()), Instant::now());
    let (jail, mut reader) = start(script, &limits);
    let mut output = String::new();
    reader.read_to_string(&mut output).unwrap();
    let Some(Event::Ended { ending, .. }) = jail.event().unwrap() else { panic!("no end") };
    let used = processor_time(jail.end()) - before;
    let processors = used.as_secs_f64() / begun.elapsed().as_secs_f64();
    let (enforced, hits, peak) = (limits.enforced().to_vec(), limits.hits(), limits.peak());
    assert!(limits.remove().is_empty());
    assert!(groups_of(&format!("redoma-{session}")).is_empty());
    Ran { output, ending, processors, enforced, hits, peak }
}

fn processor_time(usage: Usage) -> Duration {
    usage.user + usage.system
}

/// A sandbox that runs `script`, and what it writes.
fn start(script: &str, limits: &Limits) -> (Jail, std::io::PipeReader) {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("canary"), "outside").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let link =
        |name: &str| Piece::Link { at: Path::new("/").join(name), target: Path::new("usr").join(name) };
    let mut layout = vec![Piece::Host { at: "/usr".into(), writable: false }];
    layout.extend(["bin", "lib", "lib64"].map(link));
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
        rlimits: limits.rlimits().to_vec(),
        canary: Canary {
            read: outside.path().join("canary"),
            write: outside.path().into(),
            connect: listener.local_addr().unwrap().port(),
        },
    };
    let (jail, _) = Jail::start(&blueprint).unwrap().ready().unwrap();
    limits.enter(jail.pid()).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    let exec = Exec {
        argv: ["sh", "-c", script].map(Into::into).to_vec(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        folder: "/".into(),
        terminal: None,
        ..Exec::default()
    };
    let null = std::fs::File::open("/dev/null").unwrap();
    jail.exec(exec, &[null.as_fd(), writer.as_fd(), writer.as_fd()]).unwrap();
    (jail, reader)
}

fn session() -> String {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut bytes = [0; 10];
    std::fs::File::open("/dev/urandom").unwrap().read_exact(&mut bytes).unwrap();
    bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect()
}

fn scraps(folder: &Path) -> Scraps {
    Scraps { folders: vec![folder.into()], remove: |path| std::fs::remove_dir_all(path) }
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

fn become_nobody() {
    const NOBODY: u32 = 65534;
    if is_root() {
        let (uid, gid) = (rustix::process::Uid::from_raw(NOBODY), rustix::process::Gid::from_raw(NOBODY));
        rustix::thread::set_thread_groups(&[]).unwrap();
        rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
        rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
        // A change of user makes /proc/self root's, and with it the id map that the clone has to write.
        rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable).unwrap();
    }
}

// === A keeper to be killed ===

struct Keeper {
    pid: Pid,
    /// The name of its cgroups and of its temporary folder.
    name: String,
    scrap: PathBuf,
}

impl Keeper {
    /// This program again, in the role of [`keep`]; returns once the bomb inside has gone off.
    #[expect(clippy::zombie_processes, reason = "the test waits for all its children at once")]
    fn start(folder: &Path) -> Self {
        let name = format!("redoma-{}", session());
        let scrap = folder.join(&name);
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut child = command.arg(KEEP).arg(&scrap).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "off\n");
        Self { pid: Pid::from_child(&child), name, scrap }
    }

    fn groups(&self) -> Vec<PathBuf> {
        groups_of(&self.name)
    }

    /// The one child of the keeper by that name.
    fn janitor(&self) -> Pid {
        let pid = self.pid.as_raw_nonzero();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let children = children.split_whitespace();
        let mut named = children.filter(|child| {
            std::fs::read_to_string(format!("/proc/{child}/comm"))
                .is_ok_and(|name| name == "redoma-janitor\n")
        });
        Pid::from_raw(named.next().unwrap().parse().unwrap()).unwrap()
    }
}

const KEEP: &str = "keep";

/// Has a fork bomb inside and waits to be killed.
fn keep(scrap: &Path) {
    let session = scrap.file_name().unwrap().to_str().unwrap().strip_prefix("redoma-").unwrap();
    let wanted = Wanted { pids: Some(PIDS), memory: Some(MEMORY), ..Wanted::default() };
    let limits = Limits::prepare(&wanted, Tier::Full, session, Some(scraps(scrap)), None).unwrap();
    let claim = Claim::make(scrap).unwrap();
    std::fs::write(claim.path().join("file"), "").unwrap();
    let (jail, mut output) = start(ENDLESS_FORK_BOMB, &limits);
    let mut off = [0; 4];
    output.read_exact(&mut off).unwrap();
    std::io::stdout().write_all(&off).unwrap();
    let _ = jail.event();
}

/// Every cgroup of this name, in every hierarchy.
fn groups_of(name: &str) -> Vec<PathBuf> {
    let found = Command::new("find").args(["/sys/fs/cgroup", "-type", "d", "-name", name]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().lines().map(PathBuf::from).collect()
}

/// The processes in those, by number.
fn members_of(name: &str) -> String {
    let find = [
        "/sys/fs/cgroup",
        "-path",
        &format!("*/{name}/*"),
        "-name",
        "cgroup.procs",
        "-exec",
        "cat",
        "{}",
        "+",
    ];
    String::from_utf8(Command::new("find").args(find).output().unwrap().stdout).unwrap()
}

// === The harness ===

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let tests = || TESTS.iter().chain(ROOT_TESTS.iter().filter(|_| is_root()));
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [KEEP, scrap] => keep(Path::new(scrap)),
        asked if asked.contains(&"--list") => {
            let listed = tests().filter(|_| !asked.contains(&"--ignored"));
            listed.for_each(|(name, _)| println!("{name}: test"));
        }
        asked => {
            let named = |name: &str| asked.iter().all(|one| one.starts_with('-') || name.contains(one));
            tests().filter(|(name, _)| named(name)).for_each(|(_, test)| test());
        }
    }
}
