//! Commands of the mock: each a thread that plays a program.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use redoma_jail::{Ending, Failure, JailError, Step};
use redoma_sys::Errno;

use super::files::Tree;
use super::programs::{Program, Stdio};
use super::{Mock, now};
use crate::driver::{Command, DriverError, Happening, Past, Process, SandboxId, Spec, State, Streams};
use crate::error::RunError;

/// The processes of one sandbox.
#[derive(Default)]
pub(super) struct Clock {
    alive: Mutex<Alive>,
    changed: Condvar,
}

#[derive(Default)]
struct Alive {
    paused: bool,
    /// What is alive: its number, the command it belongs to, its name.
    all: Vec<(u32, u32, String)>,
}

/// Numbers of processes.
static NEXT: AtomicU32 = AtomicU32::new(2);

impl Clock {
    /// A new process of a command; none is the command itself.
    pub(super) fn begin(&self, command: Option<u32>, name: &str) -> u32 {
        let pid = NEXT.fetch_add(1, Ordering::Relaxed);
        self.alive().all.push((pid, command.unwrap_or(pid), name.to_owned()));
        pid
    }

    pub(super) fn end(&self, pid: u32) {
        self.alive().all.retain(|(one, ..)| *one != pid);
        self.changed.notify_all();
    }

    /// With all that a command started.
    pub(super) fn end_command(&self, command: u32) {
        self.alive().all.retain(|(_, of, _)| *of != command);
        self.changed.notify_all();
    }

    pub(super) fn end_all(&self) {
        *self.alive() = Alive::default();
        self.changed.notify_all();
    }

    pub(super) fn pause(&self) -> bool {
        let mut alive = self.alive();
        alive.paused = !alive.all.is_empty();
        alive.paused
    }

    pub(super) fn go_on(&self) {
        self.alive().paused = false;
    }

    pub(super) fn running(&self) -> usize {
        self.alive().all.len()
    }

    pub(super) fn named(&self, name: &str) -> Vec<u32> {
        self.alive().all.iter().filter(|(_, _, one)| one == name).map(|(pid, ..)| *pid).collect()
    }

    pub(super) fn state(&self) -> State {
        let alive = self.alive();
        match (alive.all.is_empty(), alive.paused) {
            (true, _) => State::Stopped,
            (false, true) => State::Paused,
            (false, false) => State::Running,
        }
    }

    /// Waits until a process is ended by others, or the time has come. Whether it still lives.
    pub(super) fn wait(&self, pid: u32, until: Instant) -> bool {
        let mut alive = self.alive();
        loop {
            if !alive.all.iter().any(|(one, ..)| *one == pid) {
                return false;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            alive = self.changed.wait_timeout(alive, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn alive(&self) -> MutexGuard<'_, Alive> {
        self.alive.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A command about to begin.
pub(super) struct Begun<'a> {
    pub(super) spec: &'a Spec,
    pub(super) tree: &'a Tree,
    pub(super) command: &'a Command,
    pub(super) streams: &'a Streams<'a>,
    pub(super) given: Vec<OwnedFd>,
}

/// A command of the mock.
pub(super) struct Played {
    clock: Arc<Clock>,
    pid: u32,
    detached: bool,
    /// What ended it from outside.
    signal: Arc<Mutex<Option<i32>>>,
    size: Arc<Mutex<(u16, u16)>>,
    events: UnixStream,
    end: Arc<Mutex<Option<Happening>>>,
    terminal: Option<OwnedFd>,
    /// Where its end is written down: the sandbox, and the place in its history.
    owner: Option<(Mock, SandboxId, usize)>,
}

impl Begun<'_> {
    /// Starts it, unless there is no such program.
    pub(super) fn begin(self, clock: &Arc<Clock>) -> Result<(Played, Past), DriverError> {
        let argv: Vec<String> =
            self.command.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let program = Program::of(&argv).ok_or_else(|| absent(argv.first()))?;
        let (events, tell) = UnixStream::pair().map_err(failed)?;
        let (stdio, terminal, size) = self.stdio()?;
        let pid = clock.begin(None, program.name());
        let (end, signal) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(None)));
        let (told, killed) = (Arc::clone(&end), Arc::clone(&signal));
        let scene = self.scene(clock, pid, stdio);
        let deadline = self.command.timeout.map(|timeout| Instant::now() + timeout);
        std::thread::spawn(move || {
            let ending = program.play(&scene, deadline);
            let killed = lock(&killed).map(Ending::Signaled);
            let timed_out = killed.is_none() && deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if timed_out {
                scene.clock.end_command(pid);
            } else {
                scene.clock.end(pid);
            }
            let end =
                if timed_out { Happening::TimedOut } else { Happening::Ended(killed.unwrap_or(ending)) };
            // Its ends are closed before anybody hears that it ended.
            drop(scene);
            *lock(&told) = Some(end);
            drop(tell);
        });
        let detached = self.command.detached;
        let played = Played {
            clock: Arc::clone(clock),
            pid,
            detached,
            signal,
            size,
            events,
            end,
            terminal,
            owner: None,
        };
        let began_us = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let began_us = i64::try_from(began_us).unwrap_or(i64::MAX);
        Ok((played, Past { argv, began_us, ran_us: None, exit: None, session: None }))
    }

    fn scene(&self, clock: &Arc<Clock>, pid: u32, stdio: Stdio) -> super::programs::Scene {
        let own =
            self.command.env.iter().map(|(name, value)| {
                (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
            });
        let workdir = self.command.workdir.clone().or_else(|| self.spec.workdir.clone());
        super::programs::Scene {
            clock: Arc::clone(clock),
            pid,
            tree: self.tree.clone(),
            env: self.spec.env.iter().cloned().chain(own).collect(),
            workdir: workdir.unwrap_or_else(|| "/".into()),
            stdio,
        }
    }

    /// Its three streams, the terminal's outer end, and the terminal's size.
    #[expect(clippy::type_complexity, reason = "it is three things")]
    fn stdio(&self) -> Result<(Stdio, Option<OwnedFd>, Arc<Mutex<(u16, u16)>>), DriverError> {
        let terminal =
            self.streams.terminal.unwrap_or(redoma_jail::Terminal { size: (0, 0), streams: [false; 3] });
        let size = Arc::new(Mutex::new(terminal.size));
        let (inner, outer) = UnixStream::pair().map_err(failed)?;
        let mut given = self.given.iter();
        let mut ends = Vec::new();
        for on_terminal in terminal.streams {
            let end = if on_terminal { Some(inner.as_fd()) } else { given.next().map(AsFd::as_fd) };
            let end = end.map(|end| end.try_clone_to_owned()).transpose().map_err(failed)?;
            ends.push(end.map(File::from));
        }
        let outer = self.streams.terminal.map(|_| OwnedFd::from(outer));
        let [stdin, stdout, stderr] = <[_; 3]>::try_from(ends).unwrap_or_default();
        let terminal = terminal.streams[0].then(|| Arc::clone(&size));
        Ok((Stdio { stdin, stdout, stderr, terminal }, outer, size))
    }
}

impl Played {
    /// Where the end is to be written down.
    pub(super) fn of(&mut self, mock: Mock, id: SandboxId, past: usize) {
        self.owner = Some((mock, id, past));
    }

    fn note(&self, exit: i32) {
        let Some((mock, id, past)) = &self.owner else { return };
        let mut world = mock.world();
        let Some(sandbox) = world.sandboxes.get_mut(id) else { return };
        sandbox.info.used = now();
        if let Some(past) = sandbox.past.get_mut(*past) {
            (past.exit, past.ran_us) = (Some(exit), Some(0));
        }
    }
}

impl Process for Played {
    fn events(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    fn event(&mut self) -> Result<Happening, DriverError> {
        // The other end says nothing; it is closed when all is over.
        let _ = rustix::io::retry_on_intr(|| rustix::io::read(&self.events, &mut [0; 1][..]));
        let happened = lock(&self.end).ok_or(DriverError::Gone(None))?;
        self.note(match happened {
            Happening::Ended(Ending::Exited(code)) => code,
            Happening::Ended(Ending::Signaled(signal)) => 128 + signal,
            Happening::Stopped | Happening::TimedOut => 124,
        });
        Ok(happened)
    }

    fn signal(&mut self, signal: i32) -> Result<(), DriverError> {
        *lock(&self.signal) = Some(signal);
        self.clock.end_command(self.pid);
        Ok(())
    }

    fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.terminal.take()
    }

    fn resize(&mut self, size: (u16, u16)) {
        *lock(&self.size) = size;
    }

    fn pid(&self) -> Option<u32> {
        Some(self.pid)
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        if !self.detached {
            self.clock.end_command(self.pid);
        }
    }
}

/// Longer than any test waits.
pub(super) const FOREVER: Duration = Duration::from_secs(3600);

fn absent(name: Option<&String>) -> DriverError {
    let name = name.map_or("", String::as_str);
    DriverError::Start(RunError::Jail(JailError::Step(Failure::at(Step::Program, name, Errno::NOENT))))
}

fn failed(source: io::Error) -> DriverError {
    DriverError::Store { what: "make streams for", path: "a command".into(), source }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
