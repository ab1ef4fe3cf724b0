//! What of this crate works in a place that somebody else has isolated: commands and the network of a container.
//!
//! A container's engine has made the namespaces, the root file system and the set of capabilities by then. What is left is
//! the filter of system calls, which engines cannot express as exactly, one command with its streams and its terminal, and
//! in a helper's container the network.

use std::collections::BTreeSet;
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use redoma_policy::Tier;
use redoma_sys::Errno;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use serde::{Deserialize, Serialize};

use crate::blueprint::Wire;
use crate::channel::{Channel, Ending, Enforced, ExecRequest, Report, Terminal};
use crate::error::{Failure, InStep, JailError, Step};
use crate::network::{self, Arriving, Wires};
use crate::seccomp::{self, Setting};
use crate::{reap, spawn};

/// A command to start in a container.
#[derive(Clone, Debug)]
pub struct GuestCommand {
    /// Name and arguments.
    pub argv: Vec<Vec<u8>>,
    /// All its variables, `NAME=value` each.
    pub envp: Vec<Vec<u8>>,
    /// Where it runs.
    pub folder: PathBuf,
    /// A terminal to make, and which of its streams are it.
    pub terminal: Option<Terminal>,
}

/// A command that runs in a container, as the process that started it sees it.
#[derive(Debug)]
pub struct Guest {
    child: Pid,
    command: Pid,
    terminal: Option<OwnedFd>,
}

/// What a child did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaped {
    /// A signal stopped the command.
    Stopped,
    /// The command ended.
    Ended(Ending),
    /// Something else ended that the command had started.
    Orphan,
}

/// Gives up what no command of a sandbox has: new privileges, and the system calls that the rules leave out. As in the
/// full tier of a sandbox of our own, on this process and all that it will start.
///
/// # Errors
/// When the kernel has no filters, or does not let one be put on.
pub fn confine_guest(network: bool) -> Result<(), Failure> {
    rustix::thread::set_no_new_privs(true).step(Step::NoNewPrivileges)?;
    redoma_sys::install_filter(&seccomp::filter(Setting::of_guest(network))).step(Step::Seccomp)
}

/// The names of the system calls that commands in a container may make at all: what an engine's profile lets through. By
/// argument the filter of [`confine_guest`] decides.
#[must_use]
pub fn guest_calls() -> BTreeSet<&'static str> {
    seccomp::names_of(Tier::Full)
}

impl Guest {
    /// Starts it, and has all that it starts come to this process when it is orphaned. `given` are the streams that
    /// are not its terminal.
    ///
    /// # Errors
    /// What kept it from running.
    pub fn start(command: GuestCommand, given: Vec<OwnedFd>) -> Result<Self, Failure> {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).step(Step::Fork)?;
        let GuestCommand { argv, envp, folder, terminal } = command;
        let request = ExecRequest { command: 0, held: false, user: None, argv, envp, folder, terminal };
        let spawned = spawn::spawn(&request, given, None)?;
        Ok(Self { child: spawned.child, command: spawned.command, terminal: spawned.terminal })
    }

    /// Its process id, in this pid namespace.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.command.as_raw_nonzero().get().unsigned_abs()
    }

    /// The outer end of its terminal, once.
    pub fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.terminal.take()
    }

    /// Sends a signal to its process group.
    ///
    /// # Errors
    /// What `kill(2)` says; `EINVAL` for what is no signal.
    pub fn signal(&self, signal: i32) -> Result<(), Errno> {
        let signal = Signal::from_named_raw(signal).ok_or(Errno::INVAL)?;
        rustix::process::kill_process_group(self.command, signal)
    }

    /// What a child did since, without waiting; none once nothing more has happened.
    pub fn reap(&self) -> Option<Reaped> {
        let (pid, status) = rustix::process::wait(WaitOptions::NOHANG | WaitOptions::UNTRACED).ok()??;
        if pid != self.child {
            return Some(Reaped::Orphan);
        }
        Some(if status.stopped() { Reaped::Stopped } else { Reaped::Ended(ending(status)) })
    }

    /// Ends it and everything that it started, however it tried to get away.
    pub fn end_all(&self) {
        reap::end_descendants();
    }
}

fn ending(status: WaitStatus) -> Ending {
    match status.terminating_signal() {
        Some(signal) => Ending::Signaled(signal),
        None => Ending::Exited(status.exit_status().unwrap_or(127)),
    }
}

// === the network ===

/// What a network is to have: the proxy's port, and those of this machine's loopback that are reached from inside.
#[derive(Debug, Serialize, Deserialize)]
struct Wanted(NonZeroU16, Vec<NonZeroU16>);

/// Raises the network of the namespace that this process is in, as whoever is behind `gateway` says, gives them its ends, and
/// then opens connections to what listens inside for them, until they are gone.
///
/// # Errors
/// The step that failed, which was told to the other end as well; never because the other end is gone.
pub fn serve_network(gateway: UnixStream) -> Result<(), Failure> {
    let channel = Channel::from(OwnedFd::from(gateway));
    let Ok(Some((Wanted(proxy_port, reach), _))) = channel.receive::<Wanted>() else { return Ok(()) };
    let wire = Wire::Namespace { proxy_port, reach };
    let raised = network::raise(Some(&wire)).and_then(|network| {
        let network = network.ok_or(Failure::new(Step::Route, Errno::INVAL))?;
        network.open()?;
        Ok(network)
    });
    let network = match raised {
        Ok(network) => network,
        Err(failure) => {
            let _ = channel.send(&Report::Failed(failure.clone()), &[]);
            return Err(failure);
        }
    };
    let Ok(door) = network.give(&channel) else { return Ok(()) };
    if channel.send(&Report::Ready(Enforced::default()), &[]).is_err() {
        return Ok(());
    }
    loop {
        let mut wait = [PollFd::new(&door, PollFlags::IN), PollFd::new(&channel, PollFlags::IN)];
        match rustix::event::poll(&mut wait, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(Failure::new(Step::Dial, errno)),
        }
        let [asked, gone] = wait.map(|fd| !fd.revents().is_empty());
        // The other end says nothing more: what can be read is its end.
        if gone || (asked && door.answer().is_err()) {
            return Ok(());
        }
    }
}

/// The ends of a network that [`serve_network`] raised at the other end of `helper`.
///
/// # Errors
/// The step that failed there, or that nothing came that makes sense.
pub fn receive_network(helper: UnixStream, wire: &Wire) -> Result<(Wires, UnixStream), JailError> {
    let channel = Channel::from(OwnedFd::from(helper));
    let Wire::Namespace { proxy_port, reach } = wire else { return Err(JailError::Channel(Errno::INVAL)) };
    channel.send(&Wanted(*proxy_port, reach.clone()), &[]).map_err(JailError::Channel)?;
    let mut arriving = Arriving::default();
    loop {
        match channel.receive::<Report>().map_err(JailError::Channel)? {
            Some((Report::Wired(kinds), ends)) => arriving.add(kinds, ends).map_err(JailError::Channel)?,
            Some((Report::Ready(_), _)) => break,
            Some((Report::Failed(failure), _)) => return Err(failure.into()),
            Some(_) | None => return Err(JailError::Gone),
        }
    }
    let wires = arriving.sort().map_err(JailError::Channel)?.ok_or(JailError::Gone)?;
    Ok((wires, OwnedFd::from(channel).into()))
}
