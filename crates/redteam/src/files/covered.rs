//! A denied file by every road there is.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use redoma_sys::probe::{self, FileHandle, Namespace};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::mount::mount_bind;

use crate::attempt::{APPARMOR_NAMESPACES, Attempt, Outcome, Section};
use crate::stage::{SECRET, Stage, drain, read_bounded};

const fn road(name: &'static str, what: &'static str, run: fn(&Stage) -> Outcome) -> Attempt {
    Attempt::new(Section::Files, name, what, run)
}

pub(super) const ATTEMPTS: &[Attempt] = &[
    road("denied-read", "open a denied file", |stage| stage.try_read(stage.secret())),
    road("denied-read-relative", "open it relative to its folder", |stage| {
        enter(&stage.library).map_or_else(Outcome::refused, |()| stage.try_read(SECRET))
    }),
    road("denied-read-dotdot", "open it by way of `..`", |stage| {
        stage.try_read(stage.project.join("src/../../library/../library").join(SECRET))
    }),
    road("denied-read-nested", "open a denied file below the writable project", |stage| {
        stage.try_read(stage.nested_secret())
    })
    .full_only(),
    road("denied-symlink", "open it by a link in the project", |stage| {
        by_link(stage, &[(&stage.secret(), "link")], "link")
    }),
    road("denied-symlink-chain", "open it by a link to a link to a link", |stage| {
        let links: [(&Path, &str); 3] =
            [(&stage.secret(), "link-1"), (Path::new("link-1"), "link-2"), (Path::new("link-2"), "link-3")];
        by_link(stage, &links, "link-3")
    }),
    road("denied-symlink-parent", "open it below a link to its folder", |stage| {
        by_link(stage, &[(&stage.library, "shelf")], &format!("shelf/{SECRET}"))
    }),
    road(
        "denied-symlink-swapped",
        "open a link that is swapped between a readable and the denied file",
        swapped,
    ),
    road("denied-hard-link-before", "open another name it already had", |stage| {
        stage.try_read(stage.alias())
    })
    .full_only(),
    road("denied-hard-link", "give it another name in the project and open that", |stage| {
        moved(stage, |secret, name| fs::hard_link(secret, name))
    }),
    road("denied-rename", "move it into the project and open it there", |stage| {
        moved(stage, |secret, name| fs::rename(secret, name))
    })
    .harmful(),
    road("denied-rename-parent", "rename a folder above it and open it below the new name", |stage| {
        let (before, after) = (stage.project.join("nest"), stage.project.join("elsewhere"));
        let renamed = fs::rename(&before, &after);
        renamed.map_or_else(Outcome::refused, |()| stage.try_read(after.join("deep").join(SECRET)))
    })
    .full_only(),
    road("denied-exchange", "exchange its folder with another and open it there", exchanged).full_only(),
    road("denied-proc-self-root", "open it below /proc/self/root", |stage| {
        stage.try_read(below("/proc/self/root", &stage.secret()))
    }),
    road("denied-proc-self-cwd", "open it below /proc/self/cwd", |stage| {
        enter(&stage.library)
            .map_or_else(Outcome::refused, |()| stage.try_read(Path::new("/proc/self/cwd").join(SECRET)))
    }),
    road("denied-proc-self-fd", "open it below a descriptor of its folder in /proc/self/fd", |stage| {
        let Ok(folder) = File::open(&stage.library) else { return Outcome::stopped("no folder") };
        let fd = folder.as_raw_fd();
        stage.try_read(format!("/proc/self/fd/{fd}/{SECRET}"))
    }),
    road("denied-proc-1-root", "open it below the root of process 1", |stage| {
        stage.try_read(below(format!("/proc/{}/root", stage.init), &stage.secret()))
    }),
    road("denied-proc-root", "open it below the root or folder of any process", |stage| {
        by_processes(|process| {
            Outcome::any(
                ["root", "cwd"].map(|link| stage.try_read(below(process.join(link), &stage.secret()))),
            )
        })
    }),
    road("denied-proc-fd", "open what any process has open", |stage| {
        by_processes(|process| {
            let open = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
            Outcome::any(open.map(|fd| stage.try_read(fd.path().join(SECRET))))
        })
    }),
    road("denied-openat2", "open it by openat2, from a descriptor of its folder", |stage| {
        let folder = openat(CWD, &stage.library, OFlags::PATH | OFlags::DIRECTORY, Mode::empty());
        folder.map_or_else(Outcome::refused, |folder| {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            judge_open(stage, openat2(&folder, SECRET, flags, Mode::empty(), ResolveFlags::BENEATH))
        })
    }),
    road("denied-path-reopen", "open it as a mere path, then that again for reading", |stage| {
        let path = openat(CWD, stage.secret(), OFlags::PATH, Mode::empty());
        path.map_or_else(Outcome::refused, |fd| reopen(stage, fd.as_fd()))
    }),
    road("denied-file-handle", "open it by a handle known from before", |stage| {
        let Some(handle) = &stage.secret_handle else { return Outcome::stopped("no handles here") };
        let handle = FileHandle { kind: handle.kind, bytes: handle.bytes.clone() };
        let Ok(mount) = File::open(&stage.project) else { return Outcome::stopped("no folder") };
        judge_open(stage, probe::open_by_handle(mount.as_fd(), &handle))
    })
    .root()
    .optional(),
    road("denied-inherited-fd", "open it below a descriptor the caller left open", |stage| {
        Outcome::any((0..64).map(|fd| below_descriptor(stage, fd)))
    }),
    road("denied-bind-parent", "bind its folder elsewhere in a mount namespace of one's own", |stage| {
        bound(stage).map_or_else(Outcome::refused, |path| stage.try_read(path))
    })
    .unless(APPARMOR_NAMESPACES),
    road("denied-run", "run a denied program", |stage| run(stage, Command::new(stage.tool()))),
    road("denied-run-copy", "copy a denied program and run the copy", |stage| {
        let copy = stage.project.join("innocent");
        let copied = fs::copy(stage.tool(), &copy);
        copied.map_or_else(Outcome::refused, |_| run(stage, Command::new(copy)))
    }),
    road("denied-run-loader", "have the dynamic linker start a denied program", |stage| {
        let Some(loader) = LOADERS.iter().find(|loader| Path::new(loader).exists()) else {
            return Outcome::stopped("no dynamic linker");
        };
        let mut command = Command::new(loader);
        command.arg(stage.tool());
        run(stage, command)
    }),
    road("ungranted-read", "open a file that nothing grants", |stage| {
        stage.try_read(stage.outside.join("secret.txt"))
    }),
    road("ungranted-list", "list a folder that nothing grants", |stage| {
        let names = fs::read_dir(&stage.outside).map(|entries| entries.flatten().count());
        match names {
            Ok(0) => Outcome::stopped("an empty folder"),
            other => Outcome::of(other, "saw the names in it"),
        }
    }),
    road("ungranted-stat", "learn whether a file exists that nothing grants", |stage| {
        Outcome::of(stage.outside.join("secret.txt").metadata(), "saw that it exists")
    })
    .full_only(),
    road("home-ssh-key", "open the user's SSH key", |stage| {
        stage.try_read(stage.home.join(".ssh/id_ed25519"))
    }),
    road("etc-shadow", "open the machine's password hashes", |_| {
        match read_bounded(Path::new("/etc/shadow")) {
            Ok(bytes) if bytes.is_empty() => Outcome::stopped("an empty cover"),
            Ok(bytes) if !bytes.starts_with(b"root:") => Outcome::stopped("a cover"),
            other => Outcome::of(other, "read the password hashes"),
        }
    })
    .root(),
];

const LOADERS: &[&str] = &["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];

/// How often the swapped link is opened: enough that a check of the name before the open would lose.
const SWAPS: usize = 20_000;

fn enter(folder: &Path) -> io::Result<()> {
    std::env::set_current_dir(folder)
}

fn below(root: impl AsRef<Path>, path: &Path) -> PathBuf {
    root.as_ref().join(path.strip_prefix("/").unwrap_or(path))
}

fn by_link(stage: &Stage, links: &[(&Path, &str)], open: &str) -> Outcome {
    for (target, name) in links {
        if let Err(error) = symlink(target, stage.project.join(name)) {
            return Outcome::refused(error);
        }
    }
    stage.try_read(stage.project.join(open))
}

fn swapped(stage: &Stage) -> Outcome {
    let [link, spare] = ["swapped", "swapped-next"].map(|name| stage.project.join(name));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for target in [stage.book(), stage.secret()] {
                    drop(symlink(target, &spare).and_then(|()| fs::rename(&spare, &link)));
                }
            }
        });
        let outcome = Outcome::any((0..SWAPS).map(|_| stage.try_read(&link)));
        done.store(true, Ordering::Relaxed);
        outcome
    })
}

fn moved(stage: &Stage, act: fn(&Path, &Path) -> io::Result<()>) -> Outcome {
    let name = stage.project.join("mine");
    act(&stage.secret(), &name).map_or_else(Outcome::refused, |()| stage.try_read(name))
}

fn exchanged(stage: &Stage) -> Outcome {
    let (nest, other) = (stage.project.join("nest"), stage.project.join("src"));
    let exchange = rustix::fs::renameat_with(CWD, &nest, CWD, &other, rustix::fs::RenameFlags::EXCHANGE);
    exchange.map_or_else(Outcome::refused, |()| stage.try_read(other.join("deep").join(SECRET)))
}

fn by_processes(look: impl Fn(&Path) -> Outcome) -> Outcome {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let own = PathBuf::from(format!("/proc/{}", std::process::id()));
    let others = processes.filter(|path| *path != own && path.join("status").exists());
    Outcome::any(others.map(|process| look(&process)))
}

fn judge_open<E: Into<io::Error>>(stage: &Stage, opened: Result<OwnedFd, E>) -> Outcome {
    stage.judge_read(opened.map_err(Into::into).and_then(|fd| drain(File::from(fd))))
}

fn reopen(stage: &Stage, fd: BorrowedFd<'_>) -> Outcome {
    stage.try_read(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// By its number alone: whose descriptor it is isn't known here.
fn below_descriptor(stage: &Stage, fd: i32) -> Outcome {
    let folder = format!("/proc/self/fd/{fd}");
    Outcome::any([
        stage.try_read(format!("{folder}/{SECRET}")),
        stage.try_read(format!("{folder}/../library/{SECRET}")),
    ])
}

fn bound(stage: &Stage) -> io::Result<PathBuf> {
    let target = stage.project.join("bound");
    fs::create_dir(&target)?;
    probe::unshare(&[Namespace::User, Namespace::Mount])?;
    // Not recursive, so that a cover mounted in the folder would stay behind.
    mount_bind(&stage.library, &target)?;
    Ok(target.join(SECRET))
}

fn run(stage: &Stage, mut command: Command) -> Outcome {
    let output = command.arg(&stage.marker).stdin(Stdio::null()).stderr(Stdio::null()).output();
    match output {
        Ok(output) if stage.holds_marker(&output.stdout) => Outcome::succeeded("the program ran"),
        Ok(output) => Outcome::stopped(format!("a cover ({})", output.status)),
        Err(error) => Outcome::refused(error),
    }
}
