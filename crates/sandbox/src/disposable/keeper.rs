//! The keeper of a disposable sandbox: the host-side process of one that has live processes.
//!
//! One thread, which waits for init, the gateway, whoever asks something, and the clock. Bytes of commands do not pass
//! through it: streams are handed on. When it ends, by whatever, the kernel ends everything inside.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant, SystemTime};

use redoma_audit::SessionId;
use redoma_audit::event::{Answer, Outcome, Phase, Usage};
use redoma_jail::limits::{Limits, Wanted};
use redoma_jail::{Blueprint, Channel, Ending, Event, Jail};
use redoma_policy::{ResolvedPolicy, Tier};
use redoma_sys::{Cloned, Errno, Namespaces};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::Signal;

use super::command::{Commands, Running};
use super::control::{Ask, Refusal, Tell};
use super::drawing::{self, Folders};
use super::peers::Peers;
use super::store::{Claimed, Record, Store};
use crate::ask::Answered;
use crate::canary;
use crate::driver::{DriverError, SandboxId};
use crate::error::RunError;
use crate::gateway::{Prepared, Served, Serving};
use crate::homes::Homes;
use crate::machine;
use crate::native;
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
        let mut log = RunRecord::begin_sandbox(&log_store, session, &record.spec, &policy)
            .map_err(DriverError::Start)?;
        claimed.note_session(session)?;
        match Self::raise(homes, store, &record, &policy, session, &mut log) {
            Ok((jail, limits, gateway, variables)) => {
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

    #[expect(clippy::type_complexity, reason = "its parts go to one place")]
    fn raise(
        homes: &Homes,
        store: &Store,
        record: &Record,
        policy: &ResolvedPolicy,
        session: SessionId,
        log: &mut RunRecord,
    ) -> Result<(Jail, Limits, Option<Serving>, Vec<(String, std::ffi::OsString)>), DriverError> {
        let probes = machine::probes(homes);
        let tier = machine::choose_tier(&probes, Some(Tier::Full)).map_err(DriverError::Start)?;
        if let Some(missing) = machine::missing_overlay(&probes) {
            return Err(DriverError::Start(RunError::NoBoundary { missing }));
        }
        let spec = &record.spec;
        let folders = Folders { store, folder: store.folder(&spec.id) };
        let mut view = folders.draw(homes, spec, policy)?;
        let needed = policy.network.needs_gateway() || !spec.peers.is_empty();
        let prepared = prepare_gateway(policy, session, &view.canaries, needed)?;
        let prepared = prepared.map(|prepared| prepared.with_peers(Peers::of(spec, store)));
        if let Some(prepared) = &prepared {
            view.layout.extend(folders.network_pieces(spec, prepared)?);
        }
        let variables = prepared.as_ref().map(|prepared| prepared.variables(None)).unwrap_or_default();
        let limits = Limits::prepare(&wanted(policy), tier, session.as_str(), None, None).map_err(start)?;
        let (canary, _listener) = canary::set_out(homes).map_err(DriverError::Start)?;
        let (identity, _) = drawing::identity(spec);
        let blueprint = Blueprint {
            tier,
            identity,
            privileges: drawing::privileges(spec),
            hostname: Some(spec.name.to_string()),
            root: folders.root(&record.base)?,
            layout: view.layout,
            access: view.access,
            nested_userns: false,
            private_bytes: native::default_private_bytes(),
            wire: prepared.as_ref().map(Prepared::wire),
            rlimits: limits.rlimits().to_vec(),
            canary,
        };
        let (mut jail, enforced) =
            Jail::start(&blueprint).and_then(redoma_jail::Raising::ready).map_err(start)?;
        limits.enter(jail.pid()).map_err(start)?;
        let gateway = prepared
            .map(|prepared| prepared.start(session, &mut jail, policy, tier))
            .transpose()
            .map_err(DriverError::Start)?;
        log.built(enforced.landlock_abi, &blueprint.canary).map_err(DriverError::Start)?;
        Ok((jail, limits, gateway, variables))
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
            clients: clients.iter().filter(|(_, at)| any(*at)).map(|(id, _)| *id).collect(),
            logs: logs.iter().filter(|(_, at)| any(*at)).map(|(number, _)| *number).collect(),
        })
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

    // --- what is asked ---

    fn hear(&mut self, id: u64) -> Result<(), RunError> {
        let Some(client) = self.clients.get(&id) else { return Ok(()) };
        match client.channel.receive() {
            Ok(Some((ask, along))) => self.answer(id, ask, along),
            Ok(None) | Err(_) => self.lose(id),
        }
    }

    /// A client is gone: what it waited for ends with it.
    fn lose(&mut self, id: u64) -> Result<(), RunError> {
        let client = self.clients.remove(&id);
        if let Some(number) = client.and_then(|client| client.command) {
            self.resume()?;
            self.jail.end_command(number)?;
        }
        Ok(())
    }

    fn answer(&mut self, id: u64, ask: Ask, along: Vec<OwnedFd>) -> Result<(), RunError> {
        match ask {
            Ask::Exec(exec) => {
                self.resume()?;
                self.idle_until = None;
                self.claimed.touch();
                let root = self.jail.root();
                let started = self.commands.prepare(*exec, along, id, root).and_then(|(exec, streams)| {
                    let streams: Vec<BorrowedFd<'_>> = streams.iter().map(AsFd::as_fd).collect();
                    self.jail.start_command(exec, &streams).map_err(start)
                });
                started.or_else(|error| self.tell(id, &Tell::Failed(Refusal::of(&error)), &[]))
            }
            Ask::Signal(signal) => {
                let command = self.clients.get(&id).and_then(|client| client.command);
                command.map_or(Ok(()), |number| Ok(self.jail.signal(number, signal, true)?))
            }
            Ask::Pause => {
                self.pause()?;
                self.tell(id, &Tell::Done, &[])
            }
            Ask::Resume => {
                self.resume()?;
                self.tell(id, &Tell::Done, &[])
            }
            Ask::Root => {
                let root = self.jail.root().as_ref().map(BorrowedFd::try_clone_to_owned).transpose();
                let root = root.map_err(|_| RunError::Wait(Errno::MFILE))?;
                let along: Vec<BorrowedFd<'_>> = root.iter().map(AsFd::as_fd).collect();
                self.tell(id, &Tell::Done, &along)
            }
            Ask::Dial(port) => self.dial(id, port),
            Ask::Retire if self.idle_until.is_some() && self.commands.is_empty() => {
                self.over = true;
                Ok(())
            }
            Ask::Retire => self.tell(id, &Tell::Busy, &[]),
            Ask::Stop => {
                self.over = true;
                Ok(())
            }
        }
    }

    fn dial(&mut self, id: u64, port: u16) -> Result<(), RunError> {
        match self.jail.dial(port) {
            Ok(socket) => self.tell(id, &Tell::Done, &[socket.as_fd()]),
            Err(error) => self.tell(id, &Tell::Failed(Refusal::of(&start(error))), &[]),
        }
    }

    fn tell(&mut self, id: u64, what: &Tell, along: &[BorrowedFd<'_>]) -> Result<(), RunError> {
        let told = self.clients.get(&id).map(|client| client.channel.send(what, along));
        // It is gone, or does not listen.
        if told.is_some_and(|told| told.is_err()) { self.lose(id) } else { Ok(()) }
    }

    fn pause(&mut self) -> Result<(), RunError> {
        if !std::mem::replace(&mut self.paused, true) {
            self.jail.freeze(true)?;
            self.log.phase(Phase::Paused)?;
            let _ = fs::write(self.claimed.folder.join(super::store::PAUSED), []);
        }
        Ok(())
    }

    fn resume(&mut self) -> Result<(), RunError> {
        if std::mem::take(&mut self.paused) {
            self.jail.freeze(false)?;
            self.log.phase(Phase::Resumed)?;
            let _ = fs::remove_file(self.claimed.folder.join(super::store::PAUSED));
        }
        Ok(())
    }

    // --- what happens inside ---

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
        if let Some(client) = command.client.filter(|_| !command.detached) {
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
        for client in self.clients.values() {
            let told = if limit.is_some() { Tell::TimedOut } else { Tell::Done };
            let _ = client.channel.send(&told, &[]);
        }
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

fn prepare_gateway(
    policy: &ResolvedPolicy,
    session: SessionId,
    canaries: &[crate::decoy::Canary],
    needed: bool,
) -> Result<Option<Prepared>, DriverError> {
    if !needed {
        return Ok(None);
    }
    let given: Vec<_> = std::env::vars_os().collect();
    let prepared = Prepared::new(policy, Tier::Full, session.as_str(), &given, canaries);
    prepared.map(Some).map_err(DriverError::Start)
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

fn wanted(policy: &ResolvedPolicy) -> Wanted {
    let limits = &policy.limits;
    Wanted {
        cpus: limits.cpus.map(redoma_policy::Cpus::get),
        memory: limits.memory.map(|memory| memory.0),
        pids: limits.pids,
        disk: None,
        time: None,
        strict: limits.strict,
    }
}

fn push<'a>(fds: &mut Vec<PollFd<'a>>, fd: BorrowedFd<'a>) -> usize {
    fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
    fds.len() - 1
}

fn start(error: redoma_jail::JailError) -> DriverError {
    DriverError::Start(error.into())
}

fn recorded(error: redoma_audit::Error) -> DriverError {
    DriverError::Start(error.into())
}
