use std::cell::RefCell;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use redoma_sys::{Cloned, Errno, Namespaces, Usage};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

use crate::blueprint::{Blueprint, Piece};
use crate::channel::{Channel, Ending, Enforced, ExecRequest, Ids, Report, Request, Terminal};
use crate::child::in_child;
use crate::error::{Failure, InStep, JailError, Step};
use crate::network::{Arriving, Wires};
use crate::{init, root};
use redoma_policy::Tier;

/// A sandbox's processes, as the keeper sees them. Dropping it ends them all.
#[derive(Debug)]
pub struct Jail {
    pid: Pid,
    pidfd: OwnedFd,
    channel: Channel,
    tier: Tier,
    /// The user and the mount namespace, and the root folder (full tier).
    namespaces: Vec<OwnedFd>,
    wires: Option<Wires>,
    /// What was told while something else was waited for.
    told: RefCell<VecDeque<Event>>,
    ended: bool,
}

/// A jail whose init is at work; the caller can do its own preparations meanwhile.
#[derive(Debug)]
#[must_use = "a jail is not confined before `ready` says so"]
pub struct Raising(Jail);

/// A command for [`Jail::exec`].
#[derive(Clone, Debug, Default)]
pub struct Exec {
    /// What it is called in [`Event`]s; unique among those that run.
    pub number: u32,
    /// Whether [`Jail::end_command`] has to find all that it starts.
    pub held: bool,
    /// Who it is, where it is not who the sandbox's commands are.
    pub user: Option<Ids>,
    /// Name and arguments.
    pub argv: Vec<OsString>,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Working folder, as seen inside.
    pub folder: PathBuf,
    /// A terminal to make for it.
    pub terminal: Option<Terminal>,
}

/// A command that runs.
#[derive(Debug)]
pub struct Running {
    /// Its process id inside.
    pub pid: i32,
    /// The outer end of its terminal, if it has one.
    pub terminal: Option<OwnedFd>,
}

/// What happens inside.
#[derive(Debug)]
pub enum Event {
    /// A command runs.
    Started {
        /// Which.
        number: u32,
        /// How.
        running: Running,
    },
    /// A command did not start.
    NotStarted {
        /// Which.
        number: u32,
        /// Why.
        failure: Failure,
    },
    /// A command was stopped by a signal.
    Stopped {
        /// Which.
        number: u32,
    },
    /// A command ended.
    Ended {
        /// Which.
        number: u32,
        /// How.
        ending: Ending,
    },
    /// No process is left but init.
    Alone,
}

impl Jail {
    /// Forks init, which builds what the blueprint says.
    ///
    /// # Errors
    /// [`JailError::Clone`] with the kernel's reason, also when this process has other threads; [`JailError::Tier`] for
    /// what the tier cannot do.
    pub fn start(blueprint: &Blueprint) -> Result<Raising, JailError> {
        require_tier(blueprint)?;
        let (ours, theirs) = Channel::pair().map_err(JailError::Channel)?;
        let namespaces = match blueprint.tier {
            Tier::Full => Namespaces::ALL,
            Tier::Landlock => Namespaces::NONE,
        };
        match redoma_sys::clone_process(namespaces).map_err(JailError::Clone)? {
            Cloned::Child => {
                drop(ours);
                init::run(blueprint, theirs)
            }
            Cloned::Parent { pid, pidfd } => {
                let jail = Self {
                    pid,
                    pidfd,
                    channel: ours,
                    tier: blueprint.tier,
                    namespaces: Vec::new(),
                    wires: None,
                    told: RefCell::default(),
                    ended: false,
                };
                if blueprint.tier == Tier::Full && blueprint.identity.has_ranges() {
                    blueprint.identity.map_from_outside(pid).step(Step::MapUser)?;
                    jail.channel.send(&Request::Mapped, &[]).map_err(JailError::Channel)?;
                }
                Ok(Raising(jail))
            }
        }
    }

    /// Starts a command on the given streams: those of standard input, output and error that are not the terminal, in
    /// this order. What others do meanwhile is told by [`Self::event`] without waiting.
    ///
    /// # Errors
    /// [`JailError::Step`] with what kept it from starting.
    pub fn exec(&self, exec: Exec, streams: &[BorrowedFd<'_>]) -> Result<Running, JailError> {
        let wanted = exec.number;
        self.start_command(exec, streams)?;
        loop {
            let (report, along) = self.hear()?.ok_or(JailError::Gone)?;
            match event_of(report, along)? {
                Event::Started { number, running } if number == wanted => return Ok(running),
                Event::NotStarted { number, failure } if number == wanted => return Err(failure.into()),
                other => self.told.borrow_mut().push_back(other),
            }
        }
    }

    /// Asks for a command on the given streams, as [`Self::exec`]; an [`Event`] tells what came of it.
    ///
    /// # Errors
    /// [`JailError::Channel`] when init is gone.
    pub fn start_command(&self, exec: Exec, streams: &[BorrowedFd<'_>]) -> Result<(), JailError> {
        let request = ExecRequest {
            command: exec.number,
            held: exec.held,
            user: exec.user,
            argv: exec.argv.into_iter().map(OsStringExt::into_vec).collect(),
            envp: exec.environment.into_iter().map(assignment).collect(),
            folder: exec.folder,
            terminal: exec.terminal,
        };
        self.channel.send(&Request::Exec(request), streams).map_err(JailError::Channel)
    }

    /// Sends a signal to a command, or to its whole process group.
    ///
    /// # Errors
    /// [`JailError::Channel`] when init is gone.
    pub fn signal(&self, command: u32, signal: i32, group: bool) -> Result<(), JailError> {
        self.channel.send(&Request::Signal { command, signal, group }, &[]).map_err(JailError::Channel)
    }

    /// Ends a command and, where it was [held](Exec::held), every process that it started.
    ///
    /// # Errors
    /// [`JailError::Channel`] when init is gone.
    pub fn end_command(&self, command: u32) -> Result<(), JailError> {
        self.channel.send(&Request::End { command }, &[]).map_err(JailError::Channel)
    }

    /// Stops every process inside and waits until they stand, or lets all go on. Comes before the caller stops itself.
    ///
    /// # Errors
    /// [`JailError::Channel`] or [`JailError::Gone`] when init is gone.
    pub fn freeze(&self, frozen: bool) -> Result<(), JailError> {
        self.channel.send(&Request::Freeze(frozen), &[]).map_err(JailError::Channel)?;
        loop {
            match self.hear()?.ok_or(JailError::Gone)? {
                (Report::Frozen, _) => return Ok(()),
                (report, along) => self.told.borrow_mut().push_back(event_of(report, along)?),
            }
        }
    }

    /// The next event; waits for one. None when init is gone.
    ///
    /// # Errors
    /// [`JailError::Channel`] for a message that makes no sense.
    pub fn event(&self) -> Result<Option<Event>, JailError> {
        let told = self.told.borrow_mut().pop_front();
        if told.is_some() {
            return Ok(told);
        }
        self.hear()?.map(|(report, along)| event_of(report, along)).transpose()
    }

    /// A TCP socket inside, connected to `port` on the sandbox's loopback, as [`Entrance::dial`](crate::Entrance::dial)
    /// gives where there is a network.
    ///
    /// # Errors
    /// [`JailError::Step`] when nobody listens; [`JailError::Channel`] or [`JailError::Gone`] when init is gone.
    pub fn dial(&self, port: u16) -> Result<OwnedFd, JailError> {
        self.channel.send(&Request::Dial(port), &[]).map_err(JailError::Channel)?;
        loop {
            match self.hear()?.ok_or(JailError::Gone)? {
                (Report::Dialled(Ok(())), socket) => return socket.into_iter().next().ok_or(JailError::Gone),
                (Report::Dialled(Err(failure)), _) => return Err(failure.into()),
                (report, along) => self.told.borrow_mut().push_back(event_of(report, along)?),
            }
        }
    }

    /// Whether [`Self::event`] would not wait, though init said nothing new.
    pub fn has_event(&self) -> bool {
        !self.told.borrow().is_empty()
    }

    fn hear(&self) -> Result<Option<(Report, Vec<OwnedFd>)>, JailError> {
        match self.channel.receive() {
            Err(Errno::PIPE | Errno::CONNRESET) => Ok(None),
            heard => heard.map_err(JailError::Channel),
        }
    }

    /// The sandbox's root folder, for looking at its files from outside (full tier). Opened with `O_PATH`.
    pub fn root(&self) -> Option<BorrowedFd<'_>> {
        self.namespaces.get(2).map(AsFd::as_fd)
    }

    /// Mounts these pins and covers once more: the kernel drops a mount everywhere when somebody outside replaces the
    /// file that it lies on. See "detach" in `mount_namespaces(7)`.
    ///
    /// # Errors
    /// [`JailError::Step`] with the piece that could not be placed: then the boundary has a hole, and the caller ends
    /// the session.
    pub fn place_again(&self, pieces: &[Piece]) -> Result<(), JailError> {
        in_child(Namespaces::NONE, || {
            for namespace in self.namespaces.iter().take(2) {
                rustix::thread::move_into_link_name_space(namespace.as_fd(), None).step(Step::EnterRoot)?;
            }
            root::place_again(pieces)
        })?;
        Ok(())
    }

    /// The gateway's ends of the sandbox's network, once; none without a network, and none in the landlock tier.
    pub fn take_wires(&mut self) -> Option<Wires> {
        self.wires.take()
    }

    /// Init's process id outside.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// A descriptor of init, readable once it has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Ends every process inside and waits until none is left.
    pub fn end(mut self) -> Usage {
        self.finish();
        redoma_sys::children_usage()
    }

    /// As [`Self::end`], for a caller that still needs the rest of this value.
    pub fn finish(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        // The closed half is what init of the landlock tier ends the rest by; in a pid namespace the kernel needs
        // only init's death for that.
        let _ = rustix::net::shutdown(&self.channel, rustix::net::Shutdown::Both);
        if self.tier == Tier::Full {
            let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
        let _ = rustix::io::retry_on_intr(|| {
            rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED)
        });
    }
}

impl Raising {
    /// Waits until the boundary stands and the canary has failed to get through.
    ///
    /// # Errors
    /// [`JailError::Step`] with the step that failed; then nothing was started.
    pub fn ready(mut self) -> Result<(Jail, Enforced), JailError> {
        let mut arriving = Arriving::default();
        loop {
            match self.0.channel.receive().map_err(JailError::Channel)? {
                Some((Report::Wired(ends), sockets)) => {
                    arriving.add(ends, sockets).map_err(JailError::Channel)?;
                }
                Some((Report::Ready(enforced), namespaces)) => {
                    self.0.namespaces = namespaces;
                    self.0.wires = arriving.sort().map_err(JailError::Channel)?;
                    return Ok((self.0, enforced));
                }
                Some((Report::Failed(failure), _)) => return Err(failure.into()),
                _ => return Err(JailError::Gone),
            }
        }
    }

    /// Init's process id outside, for placing it in a cgroup before anything runs.
    pub fn pid(&self) -> Pid {
        self.0.pid
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        self.finish();
    }
}

impl AsFd for Jail {
    /// Readable when there is an [`Event`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

fn event_of(report: Report, along: Vec<OwnedFd>) -> Result<Event, JailError> {
    Ok(match report {
        Report::Started { command: number, pid } => {
            Event::Started { number, running: Running { pid, terminal: along.into_iter().next() } }
        }
        Report::NotStarted { command: number, failure } => Event::NotStarted { number, failure },
        Report::Stopped { command: number } => Event::Stopped { number },
        Report::Ended { command: number, ending } => Event::Ended { number, ending },
        Report::Alone => Event::Alone,
        Report::Wired(_) | Report::Ready(_) | Report::Failed(_) | Report::Dialled(_) | Report::Frozen => {
            return Err(JailError::Gone);
        }
    })
}

/// Sandboxes inside the sandbox need Landlock's file rules off, which are all that the landlock tier has.
fn require_tier(blueprint: &Blueprint) -> Result<(), JailError> {
    match (blueprint.tier, blueprint.nested_userns) {
        (Tier::Landlock, true) => Err(JailError::Tier {
            tier: "landlock",
            what: "let sandboxes be made inside (kernel.nested_userns = true)".into(),
            hint: "set `kernel.nested_userns = false`, or use `--tier full`".into(),
        }),
        _ => Ok(()),
    }
}

fn assignment((name, value): (OsString, OsString)) -> Vec<u8> {
    let mut bytes = name.into_vec();
    bytes.push(b'=');
    bytes.extend(value.into_vec());
    bytes
}
