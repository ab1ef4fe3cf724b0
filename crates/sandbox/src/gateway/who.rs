//! Whose a connection is: from its ends to a socket, from the socket to a process. See `sock_diag(7)` and `proc(5)`.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use redoma_audit::event::Process;
use redoma_audit::{Argv, Text};
use redoma_gateway::{Client, Who};
use redoma_jail::Sockets;

/// The processes of one sandbox.
pub(crate) struct Processes {
    /// Init's process id.
    init: u32,
    /// The sandbox's sockets, where it has a network namespace.
    sockets: Option<Mutex<Sockets>>,
    /// Who had a connection last, and under which number: the same process often has the next one close by.
    last: Mutex<Option<(u32, u32)>>,
}

/// More processes than any chain of parents has.
const DEEPEST: usize = 64;

impl Processes {
    pub(crate) fn new(init: u32, sockets: Option<Sockets>) -> Self {
        Self { init, sockets: sockets.map(Mutex::new), last: Mutex::new(None) }
    }

    fn owner(&self, local: SocketAddr, remote: SocketAddr) -> Option<u32> {
        let inode = lock(self.sockets.as_ref()?).inode(local, remote).ok()?;
        let link = PathBuf::from(format!("socket:[{inode}]"));
        let last = *lock(&self.last);
        let found = last.and_then(|last| close_by(last, &link)).or_else(|| {
            let mut all = below(self.init);
            // The youngest first: whoever connects was often just started.
            all.sort_unstable_by(|a, b| b.cmp(a));
            all.into_iter().find_map(|pid| Some((pid, holds(pid, &link)?)))
        });
        *lock(&self.last) = found;
        found.map(|(pid, _)| pid)
    }

    fn describe(&self, pid: u32) -> Option<Process> {
        let status = Status::of(pid)?;
        let mut parents = Vec::new();
        let mut next = status.parent;
        while next != self.init && parents.len() < DEEPEST {
            let Some(parent) = Status::of(next) else { break };
            parents.push(Text::new(program(next).as_os_str()));
            next = parent.parent;
        }
        Some(Process {
            pid,
            inside: status.inside,
            path: Text::new(program(pid).as_os_str()),
            argv: Argv::new(arguments(pid)),
            parents,
        })
    }
}

impl Who for Processes {
    fn of(&self, client: Client) -> Option<Process> {
        let pid = match client {
            Client::Socket { local, remote } => self.owner(local, remote)?,
            Client::Thread(thread) => Status::of(thread)?.process,
        };
        self.describe(pid)
    }
}

/// What `/proc/PID/status` says.
struct Status {
    process: u32,
    parent: u32,
    inside: Option<u32>,
}

impl Status {
    fn of(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name));
        Some(Self {
            process: field("Tgid:")?.trim().parse().ok()?,
            parent: field("PPid:")?.trim().parse().ok()?,
            // The number in each namespace, the innermost last.
            inside: field("NSpid:")
                .and_then(|all| all.split_whitespace().skip(1).last())
                .and_then(|pid| pid.parse().ok()),
        })
    }
}

fn program(pid: u32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default()
}

fn arguments(pid: u32) -> Vec<OsString> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let line = line.strip_suffix(b"\0").unwrap_or(&line);
    line.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect()
}

/// The descriptor by which a process has a socket. To read the folder of one that has thousands takes a millisecond.
fn holds(pid: u32, link: &Path) -> Option<u32> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    let found =
        open.flatten().find(|entry| fs::read_link(entry.path()).is_ok_and(|target| target == link))?;
    found.file_name().to_str()?.parse().ok()
}

/// Whether the next descriptors, or those just before, are the socket: the lowest free number is given out.
fn close_by((pid, last): (u32, u32), link: &Path) -> Option<(u32, u32)> {
    const AROUND: u32 = 16;
    let mut numbers = (last..last + AROUND).chain((last.saturating_sub(AROUND)..last).rev());
    let is_it =
        |number: &u32| fs::read_link(format!("/proc/{pid}/fd/{number}")).is_ok_and(|target| target == link);
    numbers.find(is_it).map(|number| (pid, number))
}

/// All processes below this one.
fn below(init: u32) -> Vec<u32> {
    let mut parents: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if let Some(parent) = parent_of(pid) {
            parents.entry(parent).or_default().push(pid);
        }
    }
    let (mut found, mut at) = (parents.remove(&init).unwrap_or_default(), 0);
    while let Some(pid) = found.get(at).copied() {
        found.extend(parents.remove(&pid).unwrap_or_default());
        at += 1;
    }
    found
}

/// The fourth field of `/proc/PID/stat`, counted behind the name, which may hold anything.
fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
