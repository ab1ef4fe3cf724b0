//! Process 1 of a sandbox: raises the bell, starts commands, reaps, nothing else.
//!
//! It is a fork of the keeper, single-threaded, and in the full tier it confines itself before it starts anything.
//! In the landlock tier it stays outside the Landlock domain, so that nothing it confines can signal it, and confines
//! each command.

use std::os::fd::{AsFd, OwnedFd};

use redoma_sys::{Errno, Namespaces, SignalFd};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{Mode, OFlags};
use rustix::process::{DumpableBehavior, Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus};

use crate::blueprint::Blueprint;
use crate::channel::{Channel, Ending, Enforced, ExecRequest, Report, Request};
use crate::child::in_child;
use crate::confine::{self, Confinement};
use crate::error::{Failure, InStep, Step};
use crate::network::{self, Door, Network};
use crate::spawn::{Spawned, replace_standard_streams, spawn};
use crate::supervisor::Supervisor;
use crate::{canary, reap, root};
use redoma_policy::Tier;

/// The life of init, from the fork to its end.
pub(crate) fn run(blueprint: &Blueprint, channel: Channel) -> ! {
    let _never = redoma_sys::NoReturn;
    match Init::raise(blueprint, channel) {
        Ok(init) => init.serve(),
        Err(code) => redoma_sys::exit_now(code),
    }
}

/// A command that runs.
struct Running {
    /// What the keeper calls it.
    number: u32,
    child: Pid,
    command: Pid,
    /// Whether its leader holds together what it starts.
    held: bool,
    /// Whether it is being ended.
    ending: bool,
}

struct Init {
    tier: Tier,
    channel: Channel,
    children: SignalFd,
    confinement: Confinement,
    supervisor: Option<Supervisor>,
    /// Where the keeper asks for connections to what listens inside (full tier).
    door: Option<Door>,
    commands: Vec<Running>,
}

/// What stands when all steps are done.
struct Raised {
    children: SignalFd,
    confinement: Confinement,
    /// Where init is not confined itself (landlock tier).
    supervisor: Option<Supervisor>,
    /// The user and the mount namespace, and the root folder (full tier).
    namespaces: Vec<OwnedFd>,
    /// What is to be given to the gateway (full tier).
    network: Option<Network>,
}

/// What init was woken by.
struct Events {
    /// The keeper asks something.
    channel: PollFlags,
    /// A child ended or was stopped.
    children: PollFlags,
    /// A connection into the sandbox is wanted.
    door: PollFlags,
    /// Which commands wait for an answer to a call.
    calls: Vec<PollFlags>,
}

/// Init's own exit codes say nothing to users: by then the keeper knows the reason.
const NOT_RAISED: i32 = 125;

impl Init {
    fn raise(blueprint: &Blueprint, channel: Channel) -> Result<Self, i32> {
        // What the caller has open, such as folders of the host, must not be within reach of what starts here.
        let raised = channel
            .close_all_others()
            .and_then(|()| wait_for_ranges(blueprint, &channel))
            .step(Step::Guard)
            .and_then(|()| Self::build(blueprint));
        match raised {
            Ok(Raised { children, confinement, supervisor, namespaces, network }) => {
                let door =
                    network.map(|network| network.give(&channel)).transpose().map_err(|_| NOT_RAISED)?;
                let enforced = Enforced { landlock_abi: confine::enforced_abi(blueprint) };
                let namespaces: Vec<_> = namespaces.iter().map(AsFd::as_fd).collect();
                channel.send(&Report::Ready(enforced), &namespaces).map_err(|_| NOT_RAISED)?;
                Ok(Self {
                    tier: blueprint.tier,
                    channel,
                    children,
                    confinement,
                    supervisor,
                    door,
                    commands: Vec::new(),
                })
            }
            Err(failure) => {
                let _ = channel.send(&Report::Failed(failure), &[]);
                Err(NOT_RAISED)
            }
        }
    }

    /// The order matters; each step needs what the later ones take away.
    fn build(blueprint: &Blueprint) -> Result<Raised, Failure> {
        let mut namespaces = Vec::new();
        let mut network = None;
        // 1. The keeper's death is ours, and the keeper's terminal is not.
        guard(blueprint.tier).step(Step::Guard)?;
        let children = SignalFd::new(&[Signal::CHILD]).step(Step::Guard)?;
        if blueprint.tier == Tier::Full {
            // 2. Become somebody in the new user namespace, which all later rights come from.
            blueprint.identity.map().step(Step::MapUser)?;
            // 3. The view: what is not mounted cannot be named.
            let mask = rustix::process::umask(Mode::empty());
            root::enter(blueprint)?;
            rustix::process::umask(mask);
            // For the keeper: nobody can open them once init is closed to others.
            namespaces = own_namespaces().step(Step::EnterRoot)?;
            if let Some(name) = &blueprint.hostname {
                rustix::system::sethostname(name.as_bytes()).step(Step::NewRoot)?;
            }
            // 4. The network: loopback, and the gateway behind it or nothing.
            network = network::raise(blueprint.wire.as_ref())?;
        }
        // 5. Limits, then everything that only ever narrows.
        confine::set_rlimits(&blueprint.rlimits)?;
        let confinement = Confinement::prepare(blueprint)?;
        replace_standard_streams().step(Step::Stdio)?;
        let supervisor = match blueprint.tier {
            Tier::Full => {
                confinement.apply()?;
                // After the id map was written, which needs a dumpable process: from here on nobody inside can
                // read init's memory, a copy of the keeper's, by ptrace or /proc/1. See ptrace(2).
                rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).step(Step::Guard)?;
                // 6. Proof.
                canary::sing(&blueprint.canary)?;
                network.as_ref().map(Network::open).transpose()?;
                None
            }
            Tier::Landlock => {
                // Init makes calls for commands that have no capabilities, and must not lend them its own.
                confine::drop_capabilities()?;
                try_in_child(&confinement, blueprint)?;
                Some(Supervisor::prepare(blueprint)?)
            }
        };
        Ok(Raised { children, confinement, supervisor, namespaces, network })
    }

    fn serve(mut self) -> ! {
        loop {
            let Ok(events) = self.wait() else { continue };
            if !events.children.is_empty() {
                self.reap();
            }
            if let Some(supervisor) = &mut self.supervisor {
                supervisor.answer(&events.calls);
            }
            if !events.door.is_empty() {
                self.door = self.door.take().filter(|door| door.answer().is_ok());
            }
            if !events.channel.is_empty() && self.answer().is_err() {
                self.end();
            }
        }
    }

    fn wait(&self) -> Result<Events, Errno> {
        let own = [PollFd::new(&self.channel, PollFlags::IN), PollFd::new(&self.children, PollFlags::IN)];
        let door = self.door.iter().map(|door| PollFd::new(door, PollFlags::IN));
        let calls = self.supervisor.iter().flat_map(Supervisor::poll_fds);
        let mut fds: Vec<_> = own.into_iter().chain(door).chain(calls).collect();
        rustix::event::poll(&mut fds, None)?;
        let mut events = fds.iter().map(PollFd::revents);
        let mut next = || events.next().unwrap_or(PollFlags::empty());
        let (channel, children) = (next(), next());
        let door = if self.door.is_some() { next() } else { PollFlags::empty() };
        Ok(Events { channel, children, door, calls: events.collect() })
    }

    /// An error means that the keeper is gone.
    fn answer(&mut self) -> Result<(), Errno> {
        match self.channel.receive()?.ok_or(Errno::PIPE)? {
            (Request::Exec(request), descriptors) => self.start(&request, descriptors),
            (Request::Signal { command, signal, group }, _) => {
                self.signal(command, signal, group);
                Ok(())
            }
            (Request::End { command }, _) => {
                self.end_command(command);
                Ok(())
            }
            (Request::Dial(port), _) => match network::dial(port) {
                Ok(socket) => self.channel.send(&Report::Dialled(Ok(())), &[socket.as_fd()]),
                Err(failure) => self.channel.send(&Report::Dialled(Err(failure)), &[]),
            },
            (Request::Mapped, _) => Ok(()),
            (Request::Freeze(frozen), _) => {
                self.signal_all(if frozen { Signal::STOP } else { Signal::CONT });
                if frozen {
                    self.wait_until_all_stand();
                }
                self.channel.send(&Report::Frozen, &[])
            }
        }
    }

    fn start(&mut self, request: &ExecRequest, descriptors: Vec<OwnedFd>) -> Result<(), Errno> {
        let confinement = self.supervisor.is_some().then_some(&self.confinement);
        match spawn(request, descriptors, confinement) {
            Ok(Spawned { child, command, terminal, listener }) => {
                if let (Some(supervisor), Some(listener)) = (&mut self.supervisor, listener) {
                    // Not watched over, the command makes none of these calls.
                    supervisor.watch(listener)?;
                }
                let (number, held) = (request.command, request.held);
                self.commands.push(Running { number, child, command, held, ending: false });
                let terminal: Vec<_> = terminal.iter().map(AsFd::as_fd).collect();
                let pid = command.as_raw_nonzero().get();
                self.channel.send(&Report::Started { command: number, pid }, &terminal)
            }
            Err(failure) => {
                let report = Report::NotStarted { command: request.command, failure };
                self.channel.send(&report, &[])?;
                self.tell_if_alone()
            }
        }
    }

    fn running(&self, number: u32) -> Option<&Running> {
        self.commands.iter().find(|running| running.number == number)
    }

    fn signal(&self, number: u32, signal: i32, group: bool) {
        let (Some(running), Some(signal)) = (self.running(number), Signal::from_named_raw(signal)) else {
            return;
        };
        let _ = if group {
            rustix::process::kill_process_group(running.command, signal)
        } else {
            rustix::process::kill_process(running.command, signal)
        };
        // The leader stopped itself when the command was stopped.
        if signal == Signal::CONT && running.child != running.command {
            let _ = rustix::process::kill_process(running.child, signal);
        }
    }

    /// All that a held command started is below its leader, which inherits every orphan.
    fn end_command(&mut self, number: u32) {
        let Some(running) = self.commands.iter_mut().find(|running| running.number == number) else { return };
        running.ending = true;
        if running.held {
            reap::end_below(running.child);
        }
        let _ = rustix::process::kill_process_group(running.command, Signal::KILL);
        let _ = rustix::process::kill_process(running.child, Signal::KILL);
    }

    fn signal_all(&self, signal: Signal) {
        match self.tier {
            // To a pid namespace's init, everybody is everybody inside.
            Tier::Full => drop(redoma_sys::signal_everybody(signal)),
            Tier::Landlock => reap::signal_descendants(signal),
        }
    }

    /// A process that runs meets its signal at the next look of its processor. One that waits for a disk meets it later, which
    /// is not waited for longer than this.
    fn wait_until_all_stand(&self) {
        const PATIENCE: std::time::Duration = std::time::Duration::from_secs(1);
        let began = std::time::Instant::now();
        while began.elapsed() < PATIENCE && !self.all_stand() {
            rustix::thread::sched_yield();
        }
    }

    fn all_stand(&self) -> bool {
        match self.tier {
            Tier::Full => reap::all_others().into_iter().all(reap::stands),
            Tier::Landlock => reap::descendants().into_iter().all(reap::stands),
        }
    }

    fn reap(&mut self) {
        let _ = self.children.next();
        let mut reaped = false;
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG | WaitOptions::UNTRACED)
        {
            reaped = true;
            if let Some(at) = self.commands.iter().position(|running| running.child == pid) {
                self.report(at, status);
            }
        }
        if reaped {
            // A keeper that is gone shows at the next look at the channel.
            let _ = self.tell_if_alone();
        }
    }

    fn report(&mut self, at: usize, status: WaitStatus) {
        let command = self.commands[at].number;
        let report = if status.stopped() {
            Report::Stopped { command }
        } else {
            let running = self.commands.swap_remove(at);
            let killed = status.terminating_signal() == Some(Signal::KILL.as_raw());
            if running.held && killed && !running.ending {
                self.end_orphans();
            }
            let signaled = status.terminating_signal().map(Ending::Signaled);
            let exited = || Ending::Exited(status.exit_status().unwrap_or(NOT_RAISED));
            Report::Ended { command, ending: signaled.unwrap_or_else(exited) }
        };
        // A keeper that is gone shows at the next look at the channel.
        let _ = self.channel.send(&report, &[]);
    }

    /// Somebody killed a leader, so that what it held would be init's and could not be told apart from what other
    /// commands left. That is done for one reason: to outlive the time that was given.
    fn end_orphans(&self) {
        for child in reap::children_of(rustix::process::getpid()) {
            if self.commands.iter().all(|running| running.child != child) {
                reap::kill_tree(child);
            }
        }
    }

    fn tell_if_alone(&self) -> Result<(), Errno> {
        let none = rustix::process::waitid(
            WaitId::All,
            WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT,
        );
        match none {
            Err(Errno::CHILD) => self.channel.send(&Report::Alone, &[]),
            _ => Ok(()),
        }
    }

    /// In a pid namespace the kernel ends everything with init. Without one, init does it.
    fn end(&self) -> ! {
        if self.tier == Tier::Landlock {
            reap::end_descendants();
        }
        redoma_sys::exit_now(0)
    }
}

/// The kernel kills init when the keeper dies. Without a pid namespace init has to outlive the keeper by the moment
/// it takes to end the rest, so there the closed channel tells it, and orphans become its children.
fn guard(tier: Tier) -> Result<(), Errno> {
    match tier {
        Tier::Full => rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?,
        Tier::Landlock => rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?,
    }
    rustix::process::setsid().map(drop)
}

/// Without privilege a process maps one user only. Ranges come from outside, and nothing can be done before.
fn wait_for_ranges(blueprint: &Blueprint, channel: &Channel) -> Result<(), Errno> {
    if blueprint.tier != Tier::Full || !blueprint.identity.has_ranges() {
        return Ok(());
    }
    match channel.receive()?.ok_or(Errno::PIPE)? {
        (Request::Mapped, _) => Ok(()),
        _ => Err(Errno::BADMSG),
    }
}

/// The user and the mount namespace, in the order in which they are joined (see `setns(2)`), and the root folder.
fn own_namespaces() -> Result<Vec<OwnedFd>, Errno> {
    let open = |name| {
        rustix::fs::open(format!("/proc/self/ns/{name}"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
    };
    let mut all = ["user", "mnt"].into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
    all.push(rustix::fs::open("/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?);
    Ok(all)
}

/// The canary needs the rules on, and init must stay without them: a child tries in its place.
fn try_in_child(confinement: &Confinement, blueprint: &Blueprint) -> Result<(), Failure> {
    in_child(Namespaces::NONE, || confinement.apply().and_then(|()| canary::sing(&blueprint.canary)))
}
