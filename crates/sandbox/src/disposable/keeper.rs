//! The keeper of a disposable sandbox: the host-side process of one that has live processes.
//!
//! One thread, which waits for init, the gateway, whoever asks something, and the clock. Bytes of commands do not pass
//! through it: streams are handed on. When it ends, by whatever, the kernel ends everything inside.

mod asked;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant, SystemTime};

use redoma_audit::SessionId;
use redoma_audit::event::{Answer, Outcome, Usage};
use redoma_jail::limits::Limits;
use redoma_jail::{Channel, Ending, Event, Jail};
use redoma_policy::{ByteSize, ResolvedPolicy};
use redoma_sys::{Cloned, Errno, Namespaces};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::Signal;

use super::command::{Commands, Running};
use super::control::{Ask, Refusal, Tell};
use super::drawing;
use super::gauge::Gauge;
use super::guard::Guard;
use super::raise::{Raised, raise};
use super::store::{Claimed, Record, Store};
use crate::ask::Answered;
use crate::driver::{DriverError, SandboxId};
use crate::error::RunError;
use crate::gateway::{Served, Serving};
use crate::homes::Homes;
use crate::quarantine::Quarantined;
use crate::record::{RunRecord, micros};
use crate::run::{NetworkSummary, RunEnd};

/// How long a sandbox without commands keeps its keeper: the next command starts at once meanwhile.
const IDLE: Duration = Duration::from_secs(30);
/// How long whoever asks may take to say all of it: nobody else is heard meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);

/// A sandbox at work.
struct Keeper {
    claimed: Claimed,
    record: Record,
    policy: ResolvedPolicy,
    log: RunRecord,
    jail: Jail,
    limits: Limits,
    gateway: Option<Serving>,
    /// Where there is a limit to what it changes on the disk.
    gauge: Option<Gauge>,
    /// Where the host's folders are written.
    guard: Option<Guard>,
    homes: Homes,
    /// That limit, once it is passed.
    full: Option<u64>,
    /// How many things were moved away.
    quarantined: usize,
    network: NetworkSummary,
    listener: UnixListener,
    clients: HashMap<u64, Client>,
    next_client: u64,
    commands: Commands,
    began: Instant,
    /// When the sandbox has to end.
    deadline: Option<Instant>,
    /// When to end because nothing is going on; none while something is.
    idle_until: Option<Instant>,
    paused: bool,
    over: bool,
}

/// Somebody who asked, and perhaps waits for a command.
struct Client {
    channel: Channel,
    command: Option<u32>,
}

/// The life of a keeper, from its start as a program with the first client as its standard input; its exit code.
pub fn keep(homes: &Homes, id: SandboxId) -> i32 {
    let Ok(first) = become_nobodys_child() else { return 1 };
    let store = Store::new(homes);
    let started = Keeper::start(homes, &store, &id);
    match started {
        Ok(Some(mut keeper)) => {
            keeper.add_client(first);
            let end = keeper.serve();
            i32::from(keeper.finish(end, &store, &id).is_err())
        }
        Ok(None) => refuse(&first, &Tell::Busy),
        Err(error) => refuse(&first, &Tell::Failed(Refusal::of(&error))),
    }
}

/// Whoever asked first is told why there is no keeper.
fn refuse(first: &Channel, why: &Tell) -> i32 {
    let _ = first.receive::<Ask>();
    let _ = first.send(why, &[]);
    1
}

/// Leaves the process that was started behind, and takes the first client off standard input.
fn become_nobodys_child() -> Result<Channel, Errno> {
    match redoma_sys::clone_process(Namespaces::NONE)? {
        Cloned::Parent { .. } => redoma_sys::exit_now(0),
        Cloned::Child => {}
    }
    rustix::process::setsid()?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let first = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    Ok(first.into())
}

impl Keeper {
    /// Everything up to a boundary that stands, and has been tried. None where somebody else holds the sandbox.
    fn start(homes: &Homes, store: &Store, id: &SandboxId) -> Result<Option<Self>, DriverError> {
        let folder = store.folder(id);
        if !folder.is_dir() {
            return Err(DriverError::NoSandbox(id.to_string()));
        }
        let Some(claimed) = Claimed::take(&folder)? else { return Ok(None) };
        let mut record = store.read(id)?.ok_or_else(|| DriverError::NoSandbox(id.to_string()))?;
        claimed.recover(store, &mut record)?;
        let policy = drawing::policy(homes, &record.spec)?;
        let began = Instant::now();
        let deadline = deadline(&record, &policy, began)?;
        let log_store = redoma_audit::Store::open(homes.state(), &homes.keys()).map_err(recorded)?;
        let session = SessionId::random().map_err(recorded)?;
        let mut log = RunRecord::begin_sandbox(
            &log_store,
            session,
            &record.spec,
            &policy,
            crate::driver::DriverName::Native,
        )
        .map_err(DriverError::Start)?;
        claimed.note_session(session)?;
        match raise(homes, store, &record, &policy, session, &mut log) {
            Ok(Raised { jail, limits, gateway, gauge, guard, variables }) => {
                let listener = listen(store, id)?;
                let commands = Commands::new(&claimed.folder, &record, session, variables);
                Ok(Some(Self {
                    claimed,
                    record,
                    policy,
                    log,
                    jail,
                    limits,
                    gateway,
                    gauge,
                    guard,
                    homes: homes.clone(),
                    full: None,
                    quarantined: 0,
                    network: NetworkSummary::default(),
                    listener,
                    clients: HashMap::new(),
                    next_client: 0,
                    commands,
                    began,
                    deadline,
                    idle_until: Some(began + IDLE),
                    paused: false,
                    over: false,
                }))
            }
            Err(error) => {
                let told = crate::record::failed_with(&error.to_string());
                log.end(told, Usage::default()).map_err(DriverError::Start)?;
                Err(error)
            }
        }
    }

    fn add_client(&mut self, channel: Channel) {
        // Without these a client that says half of something would hold up all others.
        let _ = rustix::net::sockopt::set_socket_timeout(
            &channel,
            rustix::net::sockopt::Timeout::Recv,
            Some(PATIENCE),
        );
        let _ = rustix::net::sockopt::set_socket_timeout(
            &channel,
            rustix::net::sockopt::Timeout::Send,
            Some(PATIENCE),
        );
        self.clients.insert(self.next_client, Client { channel, command: None });
        self.next_client += 1;
    }

    /// Until it is told to end, its time is up, nothing has gone on for a while, or the boundary broke.
    fn serve(&mut self) -> Result<RunEnd, RunError> {
        let found = self.guard.as_mut().map(Guard::listen).transpose()?;
        self.note(&found.unwrap_or_default())?;
        while !self.over {
            let now = Instant::now();
            if self.deadline.is_some_and(|deadline| deadline <= now) {
                return Ok(RunEnd::TimedOut);
            }
            if self.idle_until.is_some_and(|until| until <= now) && self.clients.is_empty() {
                break;
            }
            let ready = self.wait(now)?;
            self.commands.pump_logs(&ready.logs);
            if ready.jail {
                self.hear_init()?;
            }
            if ready.gateway {
                self.hear_gateway()?;
            }
            if ready.guard {
                let found = self.guard.as_mut().map(Guard::handle).transpose()?;
                self.note(&found.unwrap_or_default())?;
            }
            if let Some(limit) = ready.gauge.then(|| self.gauge.as_ref()?.passed()).flatten() {
                self.full = Some(limit);
                self.over = true;
            }
            if ready.listener {
                self.accept();
            }
            for client in ready.clients {
                self.hear(client)?;
            }
            self.tick()?;
        }
        Ok(RunEnd::Command(Ending::Exited(0)))
    }

    fn wait(&self, now: Instant) -> Result<Ready, RunError> {
        let mut fds =
            vec![PollFd::new(&self.jail, PollFlags::IN), PollFd::new(&self.listener, PollFlags::IN)];
        let gateway = self.gateway.as_ref().map(|gateway| push(&mut fds, gateway.as_fd()));
        let gauge = self.gauge.as_ref().map(|gauge| push(&mut fds, gauge.as_fd()));
        let guard = self.guard.as_ref().and_then(Guard::fd).map(|guard| push(&mut fds, guard));
        let clients: Vec<(u64, usize)> =
            self.clients.iter().map(|(id, client)| (*id, push(&mut fds, client.channel.as_fd()))).collect();
        let logs: Vec<(u32, usize)> =
            self.commands.logs().map(|(number, fd)| (number, push(&mut fds, fd))).collect();
        let next = [self.deadline, self.idle_until, self.commands.next_deadline()];
        let at_once = self.jail.has_event().then_some(now);
        let left = next.into_iter().chain([at_once]).flatten().min();
        let left = left.map(|next| next.saturating_duration_since(now));
        let left = left.map(|left| Timespec::try_from(left + Duration::from_millis(1)).unwrap_or_default());
        match rustix::event::poll(&mut fds, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(RunError::Wait(errno)),
        }
        let any = |at: usize| !fds[at].revents().is_empty();
        Ok(Ready {
            jail: any(0) || self.jail.has_event(),
            listener: any(1),
            gateway: gateway.is_some_and(any),
            gauge: gauge.is_some_and(any),
            guard: guard.is_some_and(any),
            clients: clients.iter().filter(|(_, at)| any(*at)).map(|(id, _)| *id).collect(),
            logs: logs.iter().filter(|(_, at)| any(*at)).map(|(number, _)| *number).collect(),
        })
    }

    fn note(&mut self, found: &[Quarantined]) -> Result<(), RunError> {
        /// Of more, the record holds none: a command that makes them is at it on purpose, to fill it.
        const RECORDED: usize = 256;
        let room = RECORDED.saturating_sub(self.quarantined);
        self.quarantined += found.len();
        found.iter().take(room).try_for_each(|one| self.log.quarantined(one))
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            // The folder is the user's alone; this holds where somebody opened it.
            let own = rustix::process::geteuid();
            let same = rustix::net::sockopt::socket_peercred(&stream).is_ok_and(|peer| peer.uid == own);
            if same && stream.set_nonblocking(false).is_ok() {
                self.add_client(OwnedFd::from(stream).into());
            }
        }
    }

    fn hear_init(&mut self) -> Result<(), RunError> {
        match self.jail.event()?.ok_or(RunError::Jail(redoma_jail::JailError::Gone))? {
            Event::Started { number, running } => {
                let pid = running.pid;
                let Some(command) = self.commands.started(number, pid) else { return Ok(()) };
                self.log.exec(pid.unsigned_abs(), &command.argv, &command.folder)?;
                let waits = command.client;
                if let Some(client) = waits {
                    let detached = command.detached;
                    let along: Vec<BorrowedFd<'_>> = running.terminal.iter().map(AsFd::as_fd).collect();
                    if let Some(known) = self.clients.get_mut(&client).filter(|_| !detached) {
                        known.command = Some(number);
                    } else if !detached {
                        // Whoever wanted it is gone already.
                        self.jail.end_command(number)?;
                    }
                    self.tell(client, &Tell::Started { pid }, &along)?;
                }
                Ok(())
            }
            Event::NotStarted { number, failure } => {
                let Some(command) = self.commands.remove(number) else { return Ok(()) };
                let Some(client) = command.client else { return Ok(()) };
                let refusal = Refusal::of_command(failure, command.argv.first(), &self.record.spec.name);
                self.tell(client, &Tell::Failed(refusal), &[])
            }
            Event::Stopped { number } => match self.commands.client_of(number) {
                Some(client) if !self.paused => self.tell(client, &Tell::Stopped, &[]),
                _ => Ok(()),
            },
            Event::Ended { number, ending } => self.ended(number, ending),
            Event::Alone => {
                self.idle_until = self.commands.is_empty().then(|| Instant::now() + IDLE);
                Ok(())
            }
        }
    }

    fn ended(&mut self, number: u32, ending: Ending) -> Result<(), RunError> {
        let Some(command) = self.commands.remove(number) else { return Ok(()) };
        self.claimed.touch();
        let end = if command.timed_out { RunEnd::TimedOut } else { RunEnd::Command(ending) };
        self.log.exec_end(command.pid.unsigned_abs(), end, command.began.elapsed())?;
        // Also of one that is detached, as long as whoever started it listens.
        if let Some(client) = command.client {
            if let Some(known) = self.clients.get_mut(&client) {
                known.command = None;
            }
            let told = if command.timed_out { Tell::TimedOut } else { Tell::Ended(ending) };
            self.tell(client, &told, &[])?;
        }
        self.commands.perhaps_again(command, ending);
        Ok(())
    }

    fn hear_gateway(&mut self) -> Result<(), RunError> {
        let Some(gateway) = &mut self.gateway else { return Ok(()) };
        for served in gateway.receive()? {
            match served {
                Served::Event(event) => {
                    self.network.add(&event);
                    self.log.append(&event)?;
                }
                // There is no terminal here to ask at, and who can't be asked is a no.
                Served::Question(question) => {
                    gateway.answer(question.number, Answer::Deny);
                    self.log.answered(&Answered { question: *question, answer: Answer::Deny })?;
                }
                Served::Gone => {
                    self.gateway = None;
                    return self.log.gateway_gone();
                }
            }
        }
        Ok(())
    }

    /// What the clock brings: commands whose time is up, and those to be started again.
    fn tick(&mut self) -> Result<(), RunError> {
        let now = Instant::now();
        for number in self.commands.overdue(now) {
            self.resume()?;
            self.jail.end_command(number)?;
        }
        for (exec, streams) in self.commands.due_again(now, self.jail.root()) {
            let streams: Vec<BorrowedFd<'_>> = streams.iter().map(AsFd::as_fd).collect();
            self.jail.start_command(exec, &streams)?;
            self.idle_until = None;
        }
        Ok(())
    }

    fn tell_the_end(&self, timed_out: bool) {
        let name = &self.record.spec.name;
        let told = match self.full {
            Some(limit) => Tell::Failed(Refusal {
                message: format!(
                    "sandbox {name} changed more than the {} of disk that it may, and was ended",
                    ByteSize(limit)
                ),
                hint: format!("make room in it, or make it anew with more: redoma sandbox rm {name}"),
                code: 125,
            }),
            None if timed_out => Tell::TimedOut,
            None => Tell::Done,
        };
        for client in self.clients.values() {
            // Who is gone needs no answer.
            let _ = client.channel.send(&told, &[]);
        }
    }

    /// Ends everything inside, hears the last words, and closes the record.
    fn finish(
        mut self,
        end: Result<RunEnd, RunError>,
        store: &Store,
        id: &SandboxId,
    ) -> Result<(), DriverError> {
        self.jail.finish();
        let _ = fs::remove_file(store.socket(id));
        let _ = fs::remove_file(self.claimed.folder.join(super::store::PAUSED));
        self.commands.drain_logs();
        let found = self.guard.take().map(|mut guard| guard.finish(&self.homes, &self.policy));
        self.note(&found.unwrap_or_default()).map_err(DriverError::Start)?;
        let (network, log) = (&mut self.network, &mut self.log);
        let served = self.gateway.take().map_or(Ok(()), |gateway| {
            gateway.finish(&mut |event| {
                network.add(event);
                log.append(event)
            })
        });
        let open: Vec<Running> = self.commands.take_all();
        for command in &open {
            let killed = RunEnd::Command(Ending::Signaled(Signal::KILL.as_raw()));
            self.log
                .exec_end(command.pid.unsigned_abs(), killed, command.began.elapsed())
                .map_err(DriverError::Start)?;
        }
        let limit = matches!(end, Ok(RunEnd::TimedOut)).then_some(self.policy.limits.time).flatten();
        if let Some(limit) = limit {
            self.log.time_limit(limit.0).map_err(DriverError::Start)?;
        }
        if let Some(limit) = self.full {
            self.log.disk_limit(limit).map_err(DriverError::Start)?;
        }
        self.tell_the_end(limit.is_some());
        self.limits.hits().iter().try_for_each(|hit| self.log.limit_hit(hit)).map_err(DriverError::Start)?;
        let peak = self.limits.peak();
        let _ = self.limits.remove();
        let usage = self.jail.end();
        let outcome = match (&end, &served) {
            (Err(error), _) | (_, Err(error)) => crate::record::failed(error),
            (Ok(RunEnd::TimedOut), _) => Outcome::TimedOut,
            _ => Outcome::Exited { code: 0 },
        };
        let usage = Usage {
            wall_us: micros(self.began.elapsed()),
            user_us: micros(usage.user),
            system_us: micros(usage.system),
            peak_memory: peak.memory.or(Some(usage.peak_memory)),
            peak_pids: peak.pids,
        };
        self.log.end(outcome, usage).map_err(DriverError::Start)?;
        end.map(drop).and(served).map_err(DriverError::Start)
    }
}

/// What one round of waiting brought.
struct Ready {
    jail: bool,
    listener: bool,
    gateway: bool,
    gauge: bool,
    guard: bool,
    clients: Vec<u64>,
    logs: Vec<u32>,
}

/// A time limit counts from the sandbox's creation.
fn deadline(record: &Record, policy: &ResolvedPolicy, now: Instant) -> Result<Option<Instant>, DriverError> {
    let Some(limit) = policy.limits.time else { return Ok(None) };
    let created = SystemTime::UNIX_EPOCH + Duration::from_secs(record.spec.created.unsigned_abs());
    let age = created.elapsed().unwrap_or(Duration::ZERO);
    let left = limit.0.checked_sub(age).filter(|left| !left.is_zero());
    let left = left.ok_or_else(|| DriverError::Invalid {
        what: format!("starting sandbox {}", record.spec.name),
        why: "its time is up".into(),
        hint: format!("redoma sandbox rm {}", record.spec.name),
    })?;
    Ok(Some(now + left))
}

fn listen(store: &Store, id: &SandboxId) -> Result<UnixListener, DriverError> {
    store.make_socket_folder()?;
    let path = store.socket(id);
    // Left by a keeper that was killed: the lock says that there is none.
    let _ = fs::remove_file(&path);
    let listen = || -> io::Result<UnixListener> {
        let listener = UnixListener::bind(&path)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    listen().map_err(|source| super::store::failed("listen on", &path, source))
}

fn push<'a>(fds: &mut Vec<PollFd<'a>>, fd: BorrowedFd<'a>) -> usize {
    fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
    fds.len() - 1
}

fn recorded(error: redoma_audit::Error) -> DriverError {
    DriverError::Start(error.into())
}
