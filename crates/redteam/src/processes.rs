//! Reaching processes outside, the keeper's own included, and outliving the session.

use std::fs;
use std::io::{self, Write, pipe};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use redoma_sys::probe::{self, Reach};
use rustix::fs::{Mode, OFlags};
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Resource, Rlimit, Signal, kill_process, pidfd_getfd, pidfd_open,
    pidfd_send_signal, setrlimit,
};

use crate::attempt::{Attempt, Outcome, Section, YAMA};
use crate::plant::Planted;
use crate::stage::{Stage, read_bounded};

const fn process(name: &'static str, what: &'static str, run: fn(&Stage) -> Outcome) -> Attempt {
    Attempt::new(Section::Processes, name, what, run)
}

/// A process of the host of this user, by its number.
const fn towards_host(name: &'static str, what: &'static str, run: fn(&Stage) -> Outcome) -> Attempt {
    process(name, what, run)
}

const ATTEMPTS: &[Attempt] = &[
    towards_host("host-stop", "stop a process of the host", |stage| {
        Outcome::of(kill_process(pid(stage.victim), Signal::STOP), "the signal was taken")
    })
    .judged(|planted| (planted.victim_becomes('T')).then(|| "the process is stopped".to_owned())),
    towards_host("host-kill-by-pidfd", "end a process of the host through a pidfd", |stage| {
        let sent = pidfd_open(pid(stage.victim), PidfdFlags::empty())
            .and_then(|fd| pidfd_send_signal(fd, Signal::KILL));
        Outcome::of(sent, "the signal was taken")
    })
    .judged(victim_is_dead),
    towards_host(
        "host-signal-by-owner",
        "have the kernel send a signal, as the owner of a descriptor",
        |stage| Outcome::of(signal_as_owner(stage.victim), "the owner was set"),
    )
    .judged(victim_is_dead),
    towards_host("host-tgkill", "signal a thread of the host", |stage| reach(stage, Reach::Tgkill)),
    towards_host("host-sigqueue", "queue a signal to a process of the host", |stage| {
        reach(stage, Reach::SignalQueue)
    }),
    towards_host("host-ptrace", "trace a process of the host", |stage| reach(stage, Reach::PtraceSeize))
        .unless(YAMA),
    towards_host("host-read-memory", "read a process of the host by process_vm_readv", |stage| {
        Outcome::of_inert(probe::read_process_memory(stage.victim, 1, &mut [0; 8])).unless_gone()
    })
    .unless(YAMA),
    towards_host("host-write-memory", "write to a process of the host by process_vm_writev", |stage| {
        Outcome::of_inert(probe::write_process_memory(stage.victim, 1, &[0; 8])).unless_gone()
    })
    .unless(YAMA),
    towards_host("host-proc-mem", "open its memory in /proc", |stage| {
        let path = format!("/proc/{}/mem", stage.victim);
        Outcome::of(fs::File::open(path), "opened its memory")
    })
    .unless(YAMA),
    towards_host("host-proc-environ", "read its environment in /proc", |stage| {
        stage.try_read(format!("/proc/{}/environ", stage.victim))
    }),
    towards_host(
        "any-proc-environ",
        "look for secrets in the environment of every process in sight",
        |stage| {
            let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
            let numbered = processes.filter(|path| path.join("environ").exists() && !path.ends_with("self"));
            Outcome::any(numbered.map(|path| stage.try_read(path.join("environ"))))
        },
    ),
    process("own-environ", "look for the caller's secrets in one's own environment", |stage| {
        stage.try_read("/proc/self/environ")
    }),
    towards_host("host-cmdline", "see that the process exists", |stage| {
        Outcome::of(fs::metadata(format!("/proc/{}/cmdline", stage.victim)), "it is in /proc")
    })
    .full_only(),
    towards_host(
        "host-steal-descriptor",
        "take an open file of a process of the host by pidfd_getfd",
        |stage| steal(stage.victim),
    )
    .unless(YAMA),
    towards_host("host-kcmp", "compare its kernel objects with one's own", |stage| reach(stage, Reach::Kcmp))
        .optional(),
    towards_host("host-limits-set", "set its resource limits, one of which kills", |stage| {
        Outcome::of(probe::limit_open_files(stage.victim, FILES), "the call was carried out")
    })
    .judged(victim_is_limited),
    towards_host("host-limits", "read or set its resource limits", |stage| reach(stage, Reach::Prlimit)),
    towards_host("host-affinity", "bind it to a CPU", |stage| reach(stage, Reach::Affinity)),
    towards_host("host-priority", "set its priority", |stage| reach(stage, Reach::Priority)),
    towards_host("host-move-pages", "move its memory between nodes", |stage| reach(stage, Reach::MovePages))
        .optional(),
    process("init-environ", "read the environment of process 1, which may be the caller's", |stage| {
        match read_bounded(Path::new(&format!("/proc/{}/environ", stage.init))) {
            Ok(bytes) if bytes.is_empty() => Outcome::stopped("an empty environment"),
            other => Outcome::of(other, "read the environment of process 1"),
        }
    }),
    process("init-memory", "open the memory of process 1", |stage| {
        Outcome::of(fs::File::open(format!("/proc/{}/mem", stage.init)), "opened the memory of process 1")
    })
    .unless(YAMA),
    process("init-ptrace", "trace process 1", |stage| {
        Outcome::of_inert(probe::reach(Reach::PtraceSeize, stage.init))
    })
    .unless(YAMA),
    process(
        "init-steal-descriptor",
        "take the descriptors of process 1, its way to the keeper among them",
        |stage| steal(stage.init),
    )
    .unless(YAMA),
    process("init-descriptors", "follow the descriptors of process 1 in /proc", |stage| {
        // Their numbers alone are nobody's secret; what they lead to is.
        let links = (0..DESCRIPTORS).map(|fd| fs::read_link(format!("/proc/{}/fd/{fd}", stage.init)));
        Outcome::any(links.map(|link| Outcome::of(link, "saw what process 1 has open")))
    }),
    process("core-dump", "allow oneself to leave a core file of more than a byte", |_| {
        let limit = Rlimit { current: Some(1 << 20), maximum: Some(1 << 20) };
        Outcome::of(setrlimit(Resource::Core, limit), "the limit was raised")
    }),
    process("outlive-session", "leave a process behind by setsid and a double fork", |stage| {
        Outcome::of(daemon(&stage.marker), "it was started")
    })
    .judged(survivor)
    .harmful(),
    process("terminal-write", "write to the user's terminal", |stage| {
        let opened = rustix::fs::open(&stage.terminal, OFlags::WRONLY | OFlags::NOCTTY, Mode::empty());
        let written =
            opened.map_err(Into::into).and_then(|fd| fs::File::from(fd).write_all(stage.marker.as_bytes()));
        Outcome::of(written, "the bytes were taken")
    })
    .judged(terminal_was_reached),
];

pub(crate) fn attempts() -> Vec<Attempt> {
    ATTEMPTS.to_vec()
}

/// How many descriptors of a process are tried.
const DESCRIPTORS: i32 = 32;

/// A limit that nobody has by chance, and plenty for a process that sleeps.
const FILES: u64 = 77;

/// How long, in seconds, a process that was left behind stays to be found.
const STAY: &str = "60";

fn pid(number: i32) -> Pid {
    Pid::from_raw(number).unwrap_or(Pid::INIT)
}

fn reach(stage: &Stage, call: Reach) -> Outcome {
    Outcome::of_inert(probe::reach(call, stage.victim)).unless_gone()
}

fn steal(from: i32) -> Outcome {
    let pidfd = match pidfd_open(pid(from), PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(error) => return Outcome::refused(error),
    };
    let stolen = (0..DESCRIPTORS).map(|fd| pidfd_getfd(&pidfd, fd, PidfdGetfdFlags::empty()));
    Outcome::any(stolen.map(|fd| Outcome::of(fd, "took one of its descriptors")))
}

/// `F_SETOWN` names who gets SIGIO when a pipe becomes readable; the kernel checks whose it may be.
fn signal_as_owner(victim: i32) -> io::Result<()> {
    let (reader, mut writer) = pipe()?;
    probe::set_signal_owner(reader.as_fd(), victim)?;
    writer.write_all(b"now")
}

fn victim_is_limited(planted: &Planted) -> Option<String> {
    let limits = fs::read_to_string(format!("/proc/{}/limits", planted.stage().victim)).ok()?;
    let line = limits.lines().find(|line| line.starts_with("Max open files"))?;
    line.split_whitespace().any(|word| word == FILES.to_string()).then(|| line.to_owned())
}

fn victim_is_dead(planted: &Planted) -> Option<String> {
    (planted.victim_becomes('Z')).then(|| "the process is dead".to_owned())
}

/// Starts a shell that ignores every polite signal and carries `marker` in its command line.
fn daemon(marker: &str) -> io::Result<()> {
    let script = format!("trap '' HUP INT TERM; sleep {STAY} & wait");
    let status = Command::new("setsid")
        .args(["--fork", "sh", "-c", &script, &name(marker)])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(status.to_string())) }
}

fn name(marker: &str) -> String {
    format!("survivor-{marker}")
}

/// Finds the process that was left behind, and ends it.
fn survivor(planted: &Planted) -> Option<String> {
    let name = name(&planted.stage().marker);
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let number =
        processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).find(|number: &i32| {
            let command = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
            command.split(|byte| *byte == 0).any(|argument| argument == name.as_bytes())
        })?;
    let _ = kill_process(pid(number), Signal::KILL);
    Some(format!("process {number} outlived the session"))
}

fn terminal_was_reached(planted: &Planted) -> Option<String> {
    planted
        .stage()
        .holds_marker(&planted.terminal_output())
        .then(|| "the user's terminal showed it".to_owned())
}
