//! What is laid out on the host before an attempt, and looked at again afterwards.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use thiserror::Error;

use redoma_sys::probe;

use crate::attempt::{Attempt, Judge, Outcome, Tier};
use crate::porter::{self, Porter};
use crate::stage::{SECRET, Stage};

/// A tree, a process, sockets and a terminal on the host: things to steal, break or reach.
///
/// Dropped, it ends its process and closes its sockets; the tree is the caller's to remove.
#[derive(Debug)]
pub struct Planted {
    stage: Stage,
    tier: Tier,
    before: BTreeMap<PathBuf, Print>,
    victim: Child,
    terminal: OwnedFd,
    _library: fs::File,
    _porter: Porter,
    _segment: Option<probe::SharedMemory>,
}

/// What could not be laid out.
#[derive(Debug, Error)]
#[error("cannot plant {what} at {}", path.display())]
pub struct PlantError {
    what: &'static str,
    path: PathBuf,
    source: io::Error,
}

/// What tells whether a file was touched: any change of content, mode, owner, name or attributes moves
/// its change time, which nobody can set.
#[derive(Debug, PartialEq, Eq)]
struct Print {
    inode: u64,
    changed: (i64, i64),
    mode: u32,
    size: u64,
}

/// How long a signal may take to arrive on a busy machine.
const ARRIVAL: Duration = Duration::from_millis(500);

/// Protected in the planted policy and absent: none may be there after a session.
const ABSENT: &[&str] = &[".envrc", ".mcp.json", ".claude/settings.json"];

/// What the planted policy protects, relative to the project.
const PROTECTED: &[&str] =
    &[".git/hooks/", ".git/config", ".vscode/", ".envrc", ".mcp.json", ".claude/settings.json"];

// === impl Planted ===

impl Planted {
    /// Lays everything out below `root`, an empty folder on one file system.
    ///
    /// The landlock tier has no mounts, so there the project holds nothing denied or protected from the
    /// start: such a policy is refused by name.
    ///
    /// # Errors
    /// When something can't be made.
    pub fn new(root: &Path, tier: Tier) -> Result<Self, PlantError> {
        let root = root.canonicalize().map_err(at("the root", root))?;
        let marker = unique_marker();
        let tree = Tree { root: &root, marker: &marker };
        tree.plant(tier)?;
        let victim = spawn_victim(&marker).map_err(at("a process", Path::new("sleep")))?;
        let (terminal, terminal_path) = open_terminal().map_err(at("a terminal", Path::new("/dev/ptmx")))?;
        let library = open_inheritable(&root.join("library")).map_err(at("a descriptor", &root))?;
        // Below a writable folder the landlock tier could not hide it, and would say so instead of starting.
        let granted = if tier == Tier::Full { "project" } else { "library" };
        let sockets = [root.join("outside/agent.sock"), root.join(granted).join("service.sock")];
        let porter =
            Porter::open(&marker, &marker, &[&sockets[0], &sockets[1]]).map_err(at("sockets", &root))?;
        let segment = probe::SharedMemory::new(victim.id() as i32).ok();
        let [outside_socket, granted_socket] = sockets;
        let stage = Stage {
            project: root.join("project"),
            library: root.join("library"),
            outside: root.join("outside"),
            home: root.join("home"),
            victim: victim.id() as i32,
            init: 1,
            tcp: porter.tcp,
            udp: porter.udp,
            host_address: host_address().unwrap_or(porter.udp),
            abstract_socket: marker.clone(),
            abstract_datagram: porter::datagram_name(&marker),
            outside_socket,
            granted_socket,
            terminal: terminal_path,
            inherited: Some(library.as_raw_fd()),
            secret_handle: probe::file_handle(&root.join("library").join(SECRET)).ok().map(Into::into),
            shared_memory: segment.as_ref().map(probe::SharedMemory::key),
            marker,
        };
        let mut planted = Self {
            stage,
            tier,
            before: BTreeMap::new(),
            victim,
            terminal,
            _library: library,
            _porter: porter,
            _segment: segment,
        };
        planted.before = planted.prints();
        Ok(planted)
    }

    /// What an attempt is told.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// What an attempt is told that runs with nothing around it: the planted process stands in for an init
    /// of the same user.
    pub fn stage_outside(&self) -> Stage {
        Stage { init: self.stage.victim, ..self.stage.clone() }
    }

    /// The policy the attempts are held to, as a policy file.
    pub fn policy(&self) -> String {
        let stage = &self.stage;
        let quoted = |paths: &[PathBuf]| {
            paths
                .iter()
                .map(|path| format!("{:?}", path.display().to_string()))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let mut denied = vec![stage.secret(), stage.tool(), stage.home.join(".ssh")];
        if self.tier == Tier::Full {
            denied.push(stage.nested_secret());
        }
        let protected: Vec<_> = PROTECTED.iter().map(|path| stage.project.join(path)).collect();
        format!(
            "[filesystem]\nread = [{}]\nwrite = [{}]\ndeny = [{}]\nprotect = [{}]\n\n[network]\ndefault = \"none\"\n",
            quoted(std::slice::from_ref(&stage.library)),
            quoted(std::slice::from_ref(&stage.project)),
            quoted(&denied),
            quoted(&protected),
        )
    }

    /// The last word on an attempt, after its session: what it reported, unless the host tells otherwise.
    pub fn verdict(&self, attempt: &Attempt, inside: Outcome) -> Outcome {
        if let Some(damage) = self.damage() {
            return Outcome::succeeded(damage);
        }
        match attempt.judge {
            Judge::Inside => inside,
            Judge::Outside(look) => match (look(self), inside) {
                (Some(evidence), _) => Outcome::succeeded(evidence),
                (None, Outcome::Succeeded { .. }) => {
                    Outcome::stopped("staying inside: the host has no trace")
                }
                (None, stopped) => stopped,
            },
        }
    }

    /// What differs on the host from what was planted, outside the writable part.
    pub fn damage(&self) -> Option<String> {
        let after = self.prints();
        let changed = self.before.iter().find(|(path, print)| after.get(*path) != Some(print));
        let added = after.keys().find(|path| !self.before.contains_key(*path));
        changed
            .map(|(path, _)| format!("{} was changed on the host", path.display()))
            .or_else(|| added.map(|path| format!("{} was made on the host", path.display())))
    }

    /// Whether the planted process comes to the state `wanted`, as `proc_pid_stat(5)` names it: `T` stopped, `Z`
    /// dead. A signal that was sent arrives when its target next runs, so this looks for a moment.
    pub(crate) fn victim_becomes(&self, wanted: char) -> bool {
        let start = Instant::now();
        loop {
            if self.victim_state() == wanted {
                return true;
            }
            if start.elapsed() > ARRIVAL {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn victim_state(&self) -> char {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.stage.victim)).unwrap_or_default();
        stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('Z')
    }

    /// What was written to the planted terminal.
    pub(crate) fn terminal_output(&self) -> Vec<u8> {
        let mut output = [0; 4096];
        let count = rustix::io::read(&self.terminal, &mut output).unwrap_or(0);
        output[..count].to_vec()
    }

    fn prints(&self) -> BTreeMap<PathBuf, Print> {
        let stage = &self.stage;
        let mut prints = BTreeMap::new();
        for kept in [&stage.library, &stage.outside, &stage.home] {
            print_tree(kept, &mut prints);
        }
        for protected in PROTECTED.iter().chain(ABSENT) {
            print_tree(&stage.project.join(protected), &mut prints);
        }
        print_tree(&stage.nested_secret(), &mut prints);
        prints
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        // It may be dead already: that is what some attempts are after.
        drop(self.victim.kill());
        drop(self.victim.wait());
    }
}

// === impl PlantError ===

impl PlantError {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        "give an empty folder on a local file system that takes Unix sockets"
    }
}

struct Tree<'a> {
    root: &'a Path,
    marker: &'a str,
}

// === impl Tree ===

impl Tree<'_> {
    fn plant(&self, tier: Tier) -> Result<(), PlantError> {
        let secret = format!("{}\n", self.marker);
        self.file("library/book.txt", "anyone may read this\n")?;
        self.file("library/secret.key", &secret)?;
        self.program("library/tool")?;
        self.file("outside/secret.txt", &secret)?;
        self.file("home/.ssh/id_ed25519", &secret)?;
        self.file("home/.bashrc", "# the user's own\n")?;
        self.file("project/src/main.txt", "work\n")?;
        if tier == Tier::Full {
            self.file("project/nest/deep/secret.key", &secret)?;
            self.repository()?;
            self.alias("library/secret.key", "library/alias.txt")?;
        }
        Ok(())
    }

    fn repository(&self) -> Result<(), PlantError> {
        self.file("project/.git/HEAD", "ref: refs/heads/main\n")?;
        self.file("project/.git/config", "[core]\n\trepositoryformatversion = 0\n")?;
        self.file("project/.git/hooks/pre-commit.sample", "#!/bin/sh\n")?;
        self.file("project/.git/refs/heads/.keep", "")?;
        self.file("project/.git/objects/.keep", "")?;
        self.file("project/.vscode/settings.json", "{}\n")
    }

    fn file(&self, path: &str, content: &str) -> Result<(), PlantError> {
        let path = self.root.join(path);
        let folder = path.parent().unwrap_or(self.root);
        fs::create_dir_all(folder).map_err(at("a folder", folder))?;
        fs::write(&path, content).map_err(at("a file", &path))
    }

    fn alias(&self, path: &str, name: &str) -> Result<(), PlantError> {
        let name = self.root.join(name);
        fs::hard_link(self.root.join(path), &name).map_err(at("a hard link", &name))
    }

    /// A copy of `echo`: an ELF program, so that the dynamic linker can be asked to start it.
    fn program(&self, path: &str) -> Result<(), PlantError> {
        let path = self.root.join(path);
        fs::copy("/bin/echo", &path).map_err(at("a program", &path))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).map_err(at("a program", &path))
    }
}

fn at(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PlantError {
    let path = path.to_path_buf();
    move |source| PlantError { what, path, source }
}

/// Unlike anything a file could hold by chance, and unlike that of any other planted tree.
fn unique_marker() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mut random = [0; 12];
    if let Ok(mut source) = fs::File::open("/dev/urandom") {
        drop(source.read_exact(&mut random));
    }
    let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("planted-{}-{}-{random}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

fn spawn_victim(marker: &str) -> io::Result<Child> {
    Command::new("sleep")
        .arg("600")
        .env("PLANTED_TOKEN", marker)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

fn open_terminal() -> io::Result<(OwnedFd, PathBuf)> {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    grantpt(&terminal)?;
    unlockpt(&terminal)?;
    rustix::io::ioctl_fionbio(&terminal, true)?;
    let name = ptsname(&terminal, Vec::new())?;
    Ok((terminal, PathBuf::from(name.to_string_lossy().into_owned())))
}

/// A descriptor that every program started from here on inherits, as a careless caller leaves one.
fn open_inheritable(path: &Path) -> io::Result<fs::File> {
    let file = fs::File::open(path)?;
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty())?;
    Ok(file)
}

/// The address this machine would be seen under: connecting a datagram socket sends nothing.
fn host_address() -> io::Result<SocketAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect("198.51.100.1:9")?;
    socket.local_addr()
}

/// Below `path`, or `path` alone; what can't be read counts as not there.
fn print_tree(path: &Path, prints: &mut BTreeMap<PathBuf, Print>) {
    let Ok(metadata) = path.symlink_metadata() else { return };
    if metadata.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            print_tree(&entry.path(), prints);
        }
    }
    let print = Print {
        inode: metadata.ino(),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
        mode: metadata.mode(),
        size: metadata.size(),
    };
    prints.insert(path.to_path_buf(), print);
}
