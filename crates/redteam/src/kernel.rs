//! Kernel interfaces that no command needs and many escapes began with.

use std::fs::{self, File, OpenOptions};
use std::io::{self, pipe};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use redoma_sys::probe::{self, BirthCall, Namespace, TerminalRequest};
use rustix::fs::CWD;
use rustix::mount::{
    FsOpenFlags, MountFlags, OpenTreeFlags, UnmountFlags, fsopen, mount, open_tree, unmount,
};
use rustix::process::chroot;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::attempt::{APPARMOR_NAMESPACES, Attempt, NO_IO_URING, Outcome, Section};
use crate::stage::Stage;

const fn kernel(name: &'static str, what: &'static str, run: fn(&Stage) -> Outcome) -> Attempt {
    Attempt::new(Section::Kernel, name, what, run)
}

/// A raw call with inert arguments: what counts is who answers.
macro_rules! call {
    ($name:literal, $what:literal) => {
        kernel(concat!("call-", $name), $what, |_| Outcome::of_inert(probe::inert_call($name)))
    };
}

/// A call that tries to be in a namespace of its own.
macro_rules! namespace {
    ($name:literal, $kind:ident) => {
        kernel(concat!("unshare-", $name), concat!("enter a new ", $name, " namespace"), |_| {
            Outcome::of(probe::unshare(&[Namespace::$kind]), "entered it")
        })
    };
}

const ATTEMPTS: &[Attempt] = &[
    call!("bpf", "load or inspect eBPF"),
    call!("perf_event_open", "count and sample the kernel's events"),
    call!("userfaultfd", "hold the kernel up in a page fault"),
    call!("io_uring_setup", "make a ring whose operations no filter sees").unless(NO_IO_URING),
    call!("io_uring_enter", "submit to a ring").unless(NO_IO_URING),
    call!("io_uring_register", "register with a ring").unless(NO_IO_URING),
    call!("keyctl", "read the kernel's keys"),
    call!("add_key", "add a key to the kernel"),
    call!("request_key", "have the kernel ask a helper of the host for a key"),
    call!("kexec_load", "load another kernel").root().optional(),
    call!("init_module", "load a module from memory").root().optional(),
    call!("finit_module", "load a module from a file").root().optional(),
    call!("delete_module", "unload a module").root().optional(),
    call!("reboot", "restart the machine").root(),
    call!("swapon", "swap to a file").root().optional(),
    call!("swapoff", "stop swapping").root().optional(),
    call!("acct", "have the kernel append to a file at every exit").root().optional(),
    call!("quotactl", "change disk quotas").optional(),
    call!("syslog", "read the kernel's log").root(),
    call!("settimeofday", "set the clock").root(),
    call!("sethostname", "rename the machine").root(),
    call!("setdomainname", "rename the machine's domain").root(),
    call!("mount", "mount, by the old call"),
    call!("umount2", "unmount"),
    call!("pivot_root", "exchange the root").root(),
    call!("fsmount", "mount, by the new calls").root(),
    call!("fspick", "pick a mounted file system to change it").root(),
    call!("fsconfig", "configure a file system to be mounted"),
    call!("move_mount", "move a mount").root(),
    call!("mount_setattr", "make a read-only mount writable").root(),
    call!("memfd_secret", "hide memory from everyone, the sensor included").optional(),
    call!("setns", "enter another process's namespaces"),
    #[cfg(target_arch = "x86_64")]
    call!("ioperm", "use the machine's ports").optional(),
    namespace!("user", User),
    namespace!("mount", Mount).root(),
    namespace!("pid", Pid).root(),
    namespace!("net", Net).root(),
    namespace!("ipc", Ipc).root(),
    namespace!("uts", Uts).root(),
    namespace!("cgroup", Cgroup).root(),
    namespace!("time", Time).root().optional(),
    kernel("clone-user", "fork into a new user namespace by clone", |_| {
        Outcome::of(probe::birth(BirthCall::Clone, Namespace::User), "the process was born")
    }),
    kernel("clone3-user", "fork into a new user namespace by clone3, whose flags no filter can read", |_| {
        Outcome::of(probe::birth(BirthCall::Clone3, Namespace::User), "the process was born")
    }),
    kernel(
        "unshare-then-mount",
        "become root of a user namespace and mount a file system over the project",
        |stage| Outcome::of(unshare_and_mount(stage), "mounted it"),
    )
    .unless(APPARMOR_NAMESPACES),
    kernel("setns-init", "enter the namespaces of process 1", |stage| setns(stage.init)).root().harmful(),
    kernel("setns-host", "enter the namespaces of a process of the host", |stage| setns(stage.victim)).root(),
    kernel("mount-tmpfs", "mount a file system over the project's files", |stage| {
        let target = stage.project.join("src");
        let mounted = mount("none", &target, "tmpfs", MountFlags::empty(), None);
        let _ = unmount(&target, UnmountFlags::DETACH);
        Outcome::of(mounted, "mounted it")
    })
    .root(),
    kernel("fsopen", "open a file system to be mounted", |_| {
        Outcome::of(fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC), "opened it")
    })
    .root(),
    kernel("open-tree-clone", "take a copy of a mount without what covers files in it", |stage| {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        Outcome::of(open_tree(CWD, &stage.library, flags), "took it")
    })
    .root(),
    kernel("unmount-covers", "take the cover off a denied file", |stage| {
        let removed = unmount(stage.nested_secret(), UnmountFlags::DETACH);
        match removed {
            // Outside, nothing covers it, and the kernel says so only to whoever may unmount.
            Err(rustix::io::Errno::INVAL) => Outcome::succeeded("the kernel looked for a cover"),
            other => Outcome::of(other, "took it off"),
        }
    })
    .root()
    .full_only(),
    kernel("chroot", "make the project the root", |stage| Outcome::of(chroot(&stage.project), "did it"))
        .root(),
    kernel("personality-no-randomize", "turn address randomisation off", |_| persona(0x0004_0000)),
    kernel("personality-read-implies-exec", "make all memory executable", |_| persona(0x0040_0000)),
    #[cfg(target_arch = "x86_64")]
    kernel("x32", "call by x32 numbers, past a filter that knows the others", |_| {
        Outcome::of(probe::getpid_x32(), "the kernel answered")
    })
    .optional(),
    #[cfg(target_arch = "x86_64")]
    kernel("int80", "call by the 32-bit entry, whose numbers mean other calls", |_| {
        Outcome::of(probe::getpid_int80(), "the kernel answered")
    })
    .optional()
    .may_fault(),
    kernel("tiocsti", "type on the user's keyboard", |_| terminal(TerminalRequest::PushInput)),
    kernel(
        "tiocsti-high-bits",
        "the same with a bit set that a filter compares and the kernel drops",
        |_| terminal(TerminalRequest::PushInputHighBits),
    ),
    kernel("tioclinux", "paste the console's selection", |_| terminal(TerminalRequest::PasteSelection)),
    kernel("tioccons", "take the console's output", |_| terminal(TerminalRequest::TakeConsole)),
    kernel("tiocsti-own-terminal", "push input into a terminal of one's own, for real", |_| {
        Outcome::of(push_into_own(), "the byte was taken")
    })
    .optional(),
    kernel("proc-sys-write", "change the kernel's settings", |_| {
        open_for_writing(&[
            "/proc/sys/kernel/core_pattern",
            "/proc/sys/kernel/hostname",
            "/proc/sys/vm/overcommit_memory",
        ])
    })
    .root(),
    kernel("proc-sysrq", "press the system request key", |_| open_for_writing(&["/proc/sysrq-trigger"]))
        .root()
        .optional(),
    kernel("proc-kcore", "read the kernel's memory", |_| open_of_proc("/proc/kcore")).root().optional(),
    kernel("proc-kmsg", "read the kernel's log", |_| open_of_proc("/proc/kmsg")).root().optional(),
    kernel("proc-kallsyms", "read the kernel's addresses", kernel_addresses).root().optional(),
    kernel("proc-irq", "move interrupts between CPUs", |_| {
        open_for_writing(&["/proc/irq/default_smp_affinity"])
    })
    .root()
    .optional(),
    kernel("sys-write", "change devices and the kernel in /sys", |_| {
        open_for_writing(&[
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "/sys/module/printk/parameters/time",
            "/sys/kernel/uevent_helper",
        ])
    })
    .root()
    .optional(),
    kernel("cgroup-limits", "raise one's own limits in the cgroup tree", |_| cgroup_files())
        .root()
        .optional(),
    kernel("oom-score", "make oneself the last to be killed for memory", |_| {
        Outcome::of(fs::write("/proc/self/oom_score_adj", "-1000"), "it was set")
    })
    .root()
    .optional(),
    kernel("shared-memory", "find shared memory of the host", |stage| {
        let found = stage.shared_memory.ok_or(redoma_sys::Errno::NOENT).and_then(probe::SharedMemory::find);
        Outcome::of(found, "found it")
    }),
];

pub(crate) fn attempts() -> Vec<Attempt> {
    ATTEMPTS.to_vec()
}

fn unshare_and_mount(stage: &Stage) -> io::Result<()> {
    probe::unshare(&[Namespace::User, Namespace::Mount])?;
    Ok(mount("none", stage.project.join("src"), "tmpfs", MountFlags::empty(), None)?)
}

fn setns(process: i32) -> Outcome {
    let kinds = ["mnt", "net", "ipc", "uts", "pid"];
    Outcome::any(kinds.map(|kind| {
        let opened = File::open(format!("/proc/{process}/ns/{kind}"));
        let entered = opened.and_then(|file| {
            rustix::thread::move_into_link_name_space(file.as_fd(), None).map_err(Into::into)
        });
        Outcome::of(entered, &format!("entered its {kind} namespace"))
    }))
}

/// Puts the old value back: the process goes on to report.
fn persona(flag: u32) -> Outcome {
    let outcome = Outcome::of(probe::personality(flag), "it was set");
    let _ = probe::personality(0);
    outcome
}

/// On a pipe, so that no terminal is touched even where nothing refuses.
fn terminal(request: TerminalRequest) -> Outcome {
    match pipe() {
        Ok((reader, _writer)) => Outcome::of_inert(probe::terminal_request(reader.as_fd(), request)),
        Err(error) => Outcome::refused(error),
    }
}

fn push_into_own() -> io::Result<()> {
    // A terminal must be the caller's controlling one, and a group leader can't start a session.
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
    grantpt(&terminal)?;
    unlockpt(&terminal)?;
    rustix::process::setsid()?;
    let path = PathBuf::from(ptsname(&terminal, Vec::new())?.to_string_lossy().into_owned());
    let own = OpenOptions::new().read(true).write(true).open(path)?;
    rustix::process::ioctl_tiocsctty(&own)?;
    // Closed, it would hang up on its session, which is this process: it has an outcome to report yet.
    std::mem::forget(terminal);
    Ok(probe::push_input(own.as_fd(), b'x')?)
}

/// Opened and closed again, nothing written.
fn open_for_writing(paths: &[&str]) -> Outcome {
    Outcome::any(paths.iter().map(|path| {
        Outcome::of(OpenOptions::new().write(true).open(path), &format!("opened {path} for writing"))
    }))
}

/// Opened, not read: reading the log takes messages out of it. A cover is a file of another file system.
fn open_of_proc(path: &str) -> Outcome {
    const PROC: u64 = 0x9fa0;
    let kind = File::open(path).and_then(|file| Ok(rustix::fs::fstatfs(file)?.f_type));
    match kind {
        Ok(kind) if kind as u64 != PROC => Outcome::stopped("a cover"),
        other => Outcome::of(other, "opened it"),
    }
}

/// To whoever may not see them, every address is zero.
fn kernel_addresses(_: &Stage) -> Outcome {
    let symbols = match crate::stage::read_bounded(Path::new("/proc/kallsyms")) {
        Ok(symbols) => symbols,
        Err(error) => return Outcome::refused(error),
    };
    let shown = symbols.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"ffff"));
    if shown { Outcome::succeeded("read them") } else { Outcome::stopped("addresses shown as zero") }
}

fn cgroup_files() -> Outcome {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let groups = own.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        Some((parts.next()?.to_owned(), parts.next()?.trim_start_matches('/').to_owned()))
    });
    Outcome::any(groups.flat_map(|(controller, path)| {
        ["cgroup.procs", "memory.max", "pids.max", "memory.limit_in_bytes"].map(|file| {
            let path = Path::new("/sys/fs/cgroup").join(&controller).join(&path).join(file);
            Outcome::of(OpenOptions::new().write(true).open(&path), &format!("opened {}", path.display()))
        })
    }))
}
