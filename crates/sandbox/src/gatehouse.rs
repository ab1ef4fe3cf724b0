//! The keeper of a network whose namespace another driver's engine holds.
//!
//! A driver starts it as a program of its own ([`keep`]), since gateways are forked and drivers have threads. It makes what has to
//! be seen inside, listens on a socket for the helper in the namespace, takes the namespace's ends from it, and has a gateway
//! serve them. It ends with the helper, and the gateway with it: what no gateway has, leads nowhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use redoma_audit::event::{Answer, Outcome, Phase, Usage};
use redoma_audit::{SessionId, Store};
use redoma_jail::receive_network;
use redoma_policy::{ResolvedPolicy, Tier};
use redoma_sys::{Errno, Namespaces, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::ask::Answered;
use crate::disposable;
use crate::driver::{DriverError, DriverName, Spec};
use crate::error::RunError;
use crate::gateway::{Prepared, Served, Serving};
use crate::homes::Homes;
use crate::record::RunRecord;
use crate::run::NetworkSummary;
use crate::view::{self, Findings};
use crate::walk::{self, FileKind};

/// What a keeper is for, on its standard input, as JSON.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    /// The sandbox.
    pub spec: Spec,
    /// Whose it is to make.
    pub driver: DriverName,
    /// A folder of the sandbox's alone: see [`certificates`] and [`gate`].
    pub folder: PathBuf,
}

/// What a keeper says on its standard output, a line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// What is seen inside is there, and the helper is waited for. Variables for every command.
    Ready(Vec<(String, String)>),
    /// The gateway serves.
    Up,
    /// Nothing serves.
    Failed {
        /// Why.
        message: String,
        /// What to do.
        hint: String,
    },
}

/// How long a helper may take to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is enforced for a sandbox: the administrator's ceiling, and what was asked for.
///
/// # Errors
/// [`DriverError::Settings`] where that makes no sense.
pub fn policy(homes: &Homes, spec: &Spec) -> Result<ResolvedPolicy, DriverError> {
    disposable::policy(homes, spec)
}

/// What the policy's rules about files mean on this machine now, for an engine that mounts folders of it.
#[derive(Debug, Default)]
pub struct Held {
    /// To be hidden: the path, and whether it is a folder. Sockets and FIFOs are among them, behind which something of this
    /// machine may listen.
    pub denied: Vec<(PathBuf, bool)>,
    /// To be kept as they are.
    pub protected: Vec<PathBuf>,
}

/// Looks through what the policy grants.
///
/// # Errors
/// [`DriverError::Start`] where not all of it can be seen.
pub fn held(homes: &Homes, policy: &ResolvedPolicy) -> Result<Held, DriverError> {
    let found = view::search(policy, homes, walk::Limits::default());
    let found = found.map_err(|error| DriverError::Start(error.into()))?;
    let Findings { denied, protected, specials, .. } = Findings::collect(policy, &found);
    let denied = denied.into_iter().map(|one| (one.path, one.kind == FileKind::Dir));
    let specials = specials.into_iter().map(|path| (path, false));
    // Several rules may hold one path, and an engine mounts on a place once. Denied beats protected.
    let denied: BTreeMap<PathBuf, bool> = denied.chain(specials).collect();
    let protected: BTreeSet<PathBuf> = protected.into_iter().map(|one| one.path).collect();
    let protected = protected.into_iter().filter(|path| !denied.contains_key(path)).collect();
    Ok(Held { denied: denied.into_iter().collect(), protected })
}

/// Where a keeper puts what is to be seen as `/run/redoma` inside, and `resolv.conf`, which is for `/etc`.
#[must_use]
pub fn certificates(folder: &Path) -> PathBuf {
    folder.join("inside")
}

/// The folder that is for the helper alone, with the socket `socket` in it.
#[must_use]
pub fn gate(folder: &Path) -> PathBuf {
    folder.join("gate")
}

/// The life of a keeper: its exit code. The process must have no other threads.
pub fn keep(homes: &Homes) -> i32 {
    let Ok(order) = serde_json::from_reader::<_, Order>(io::stdin().lock()) else { return 2 };
    match Gatehouse::open(homes, &order) {
        Ok(gatehouse) => i32::from(gatehouse.serve().is_err()),
        Err(error) => {
            say(&Said::Failed { message: error.to_string(), hint: error.hint() });
            1
        }
    }
}

/// A driver that is gone needs no answer.
#[expect(clippy::print_stdout, reason = "it is the answer")]
fn say(said: &Said) {
    let line = serde_json::to_string(said).unwrap_or_default();
    println!("{line}");
    let _ = io::stdout().flush();
}

/// A gateway at work.
struct Gatehouse {
    helper: UnixStream,
    serving: Serving,
    signals: SignalFd,
    record: RunRecord,
    summary: NetworkSummary,
}

impl Gatehouse {
    fn open(homes: &Homes, order: &Order) -> Result<Self, DriverError> {
        let policy = policy(homes, &order.spec)?;
        let session = SessionId::random().map_err(|error| DriverError::Start(error.into()))?;
        let given: Vec<_> = std::env::vars_os().collect();
        let prepared = Prepared::new(&policy, Tier::Full, session.as_str(), &given, &[]);
        let prepared = prepared.map_err(DriverError::Start)?;
        let inside = certificates(&order.folder);
        prepared.write_outside(&inside).map_err(|source| failed("write", &inside, source))?;
        let listener = listen(&gate(&order.folder))?;
        leave_the_driver().map_err(|errno| DriverError::Start(RunError::Wait(errno)))?;
        let text = |(name, value): (String, std::ffi::OsString)| (name, value.to_string_lossy().into_owned());
        say(&Said::Ready(prepared.variables(None).into_iter().map(text).collect()));
        let helper = await_helper(&listener, &gate(&order.folder))?;
        let received = receive_network(helper, &prepared.wire());
        let (wires, helper) = received.map_err(|error| DriverError::Start(error.into()))?;
        Self::begin(homes, order, &policy, session, prepared, wires, helper).map_err(DriverError::Start)
    }

    fn begin(
        homes: &Homes,
        order: &Order,
        policy: &ResolvedPolicy,
        session: SessionId,
        prepared: Prepared,
        wires: redoma_jail::Wires,
        helper: UnixStream,
    ) -> Result<Self, RunError> {
        let store = Store::open(homes.state(), &homes.keys())?;
        let mut record = RunRecord::begin_sandbox(&store, session, &order.spec, policy, order.driver)?;
        let serving = prepared.start_outside(session, wires, policy)?;
        let signals = SignalFd::new(&[Signal::TERM, Signal::INT, Signal::HUP]).map_err(RunError::Wait)?;
        record.phase(Phase::Built)?;
        say(&Said::Up);
        let null =
            fs::OpenOptions::new().read(true).write(true).open("/dev/null").map_err(RunError::Gateway)?;
        rustix::stdio::dup2_stdout(&null).map_err(RunError::Wait)?;
        rustix::stdio::dup2_stderr(&null).map_err(RunError::Wait)?;
        Ok(Self { helper, serving, signals, record, summary: NetworkSummary::default() })
    }

    fn serve(mut self) -> Result<(), RunError> {
        loop {
            let mut wait = [
                PollFd::new(&self.serving, PollFlags::IN),
                PollFd::new(&self.helper, PollFlags::IN),
                PollFd::new(&self.signals, PollFlags::IN),
            ];
            match rustix::event::poll(&mut wait, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(RunError::Wait(errno)),
            }
            let [told, gone, signal] = wait.map(|fd| !fd.revents().is_empty());
            if told && !self.hear()? {
                self.record.gateway_gone()?;
                return self.record.end(Outcome::Exited { code: 1 }, Usage::default());
            }
            // The helper says nothing more: what can be read is its end.
            if gone || signal {
                return self.finish();
            }
        }
    }

    /// Whether the gateway is still there.
    fn hear(&mut self) -> Result<bool, RunError> {
        for served in self.serving.receive()? {
            match served {
                Served::Event(event) => {
                    self.summary.add(&event);
                    self.record.append(&event)?;
                }
                // There is no terminal here to ask at, and who cannot be asked is a no.
                Served::Question(question) => {
                    self.serving.answer(question.number, Answer::Deny);
                    self.record.answered(&Answered { question: *question, answer: Answer::Deny })?;
                }
                Served::Gone => return Ok(false),
            }
        }
        Ok(true)
    }

    fn finish(self) -> Result<(), RunError> {
        let Self { serving, mut record, mut summary, .. } = self;
        let finished = serving.finish(&mut |event| {
            summary.add(event);
            record.append(event)
        });
        record.end(Outcome::Exited { code: 0 }, Usage::default())?;
        finished
    }
}

/// Only who has the folder shown inside reaches the socket: everything above it is the user's alone.
fn listen(gate: &Path) -> Result<UnixListener, DriverError> {
    let socket = gate.join("socket");
    let make = || -> io::Result<UnixListener> {
        fs::create_dir_all(gate)?;
        fs::set_permissions(gate, fs::Permissions::from_mode(0o755))?;
        match fs::remove_file(&socket) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&socket)?;
        // User 0 of a helper that has no right to pass over permissions.
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o666))?;
        Ok(listener)
    };
    make().map_err(|source| failed("listen on", &socket, source))
}

/// One comes, and no other.
fn await_helper(listener: &UnixListener, gate: &Path) -> Result<UnixStream, DriverError> {
    let patience = Timespec::try_from(PATIENCE).unwrap_or_default();
    let come = rustix::event::poll(&mut [PollFd::new(&listener.as_fd(), PollFlags::IN)], Some(&patience));
    let gone = || io::Error::from(io::ErrorKind::TimedOut);
    let accepted = match come {
        Ok(0) => Err(gone()),
        Ok(_) => listener.accept().map(|(helper, _)| helper),
        Err(errno) => Err(errno.into()),
    };
    let socket = gate.join("socket");
    let _ = fs::remove_file(&socket);
    accepted.map_err(|source| failed("hear from the helper at", &socket, source))
}

/// Goes on when the driver's process is gone, in a session of its own.
fn leave_the_driver() -> Result<(), Errno> {
    match redoma_sys::clone_process(Namespaces::NONE)? {
        redoma_sys::Cloned::Parent { .. } => redoma_sys::exit_now(0),
        redoma_sys::Cloned::Child => {}
    }
    rustix::process::setsid()?;
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)
}

fn failed(what: &'static str, path: &Path, source: io::Error) -> DriverError {
    DriverError::Store { what, path: path.to_owned(), source }
}
