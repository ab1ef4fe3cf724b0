//! A command in a sandbox on the caller's own streams: what `redoma sandbox exec` and `shell` are to the person who types
//! them. Bytes go between the caller and the command; the driver only tells what happens to it.

use std::os::fd::{AsFd, BorrowedFd};

use redoma_jail::Ending;
use redoma_sys::{Errno, SignalFd};
use rustix::event::{PollFd, PollFlags};
use rustix::process::Signal;

use crate::driver::{Command, Driver, DriverError, Happening, Process, SandboxId, Streams as Given};
use crate::error::RunError;
use crate::keeper;
use crate::pipes::Pipes;
use crate::run::RunEnd;
use crate::streams::Streams;
use crate::terminal::{Relay, Wants};

/// What of the caller's streams the command has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// Standard input.
    pub interactive: bool,
    /// A terminal, where the caller has one.
    pub terminal: bool,
}

/// Runs a command in a sandbox on the caller's streams until it ends.
///
/// # Errors
/// [`DriverError`] when it does not start, or the sandbox ends under it.
pub fn run(
    driver: &dyn Driver,
    id: &SandboxId,
    command: &Command,
    wanted: Wanted,
) -> Result<RunEnd, DriverError> {
    let streams = Streams::of_caller_for(wanted.interactive, wanted.terminal).map_err(DriverError::Start)?;
    let signals = keeper::take_signals().map_err(DriverError::Start)?;
    let (handed, pipes) = streams.hand_in().map_err(waiting)?;
    let given = Given { terminal: streams.terminal(), given: handed.iter().map(AsFd::as_fd).collect() };
    let mut process = driver.exec(id, command, &given)?;
    // The command's ends: a pipe has its end only when nobody else holds it.
    drop(given);
    drop(handed);
    let relay = process.take_terminal().map(|inner| Relay::new(inner, streams)).transpose();
    let relay = relay.map_err(|errno| DriverError::Start(RunError::Terminal(errno)))?;
    Attached { process, signals, relay, pipes }.until_it_ends()
}

struct Attached {
    process: Box<dyn Process>,
    signals: SignalFd,
    relay: Option<Relay>,
    pipes: Pipes,
}

impl Attached {
    fn until_it_ends(mut self) -> Result<RunEnd, DriverError> {
        let end = loop {
            let ready = self.wait()?;
            if let Some(relay) = &mut self.relay {
                relay.pump(ready.relay);
            }
            ready.pipes.iter().for_each(|&index| self.pipes.pump(index));
            if ready.signal {
                self.pass_signals()?;
            }
            if ready.event {
                match self.process.event()? {
                    Happening::Stopped => self.stop_along()?,
                    Happening::Ended(ending) => break RunEnd::Command(ending),
                    Happening::TimedOut => break RunEnd::TimedOut,
                }
            }
        };
        if let Some(mut relay) = self.relay.take() {
            relay.drain();
        }
        // What it left running may hold a pipe for as long as it likes: only what is there already is waited for.
        self.pipes.drain(false);
        Ok(end)
    }

    fn wait(&self) -> Result<Ready, DriverError> {
        let mut fds = vec![
            PollFd::from_borrowed_fd(self.process.events(), PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        let wants = self.relay.as_ref().map(Relay::wants).unwrap_or_default();
        let places = keeper::relay_places(self.relay.as_ref(), &mut fds, wants);
        let pipes: Vec<(usize, usize)> =
            self.pipes.waits().map(|(index, fd, flags)| (index, keeper::push(&mut fds, fd, flags))).collect();
        match rustix::event::poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(waiting(errno)),
        }
        let any = |at: Option<usize>| at.is_some_and(|at| !fds[at].revents().is_empty());
        Ok(Ready {
            event: any(Some(0)),
            signal: any(Some(1)),
            pipes: pipes.into_iter().filter(|(_, at)| any(Some(*at))).map(|(index, _)| index).collect(),
            relay: keeper::relay_ready(places, wants, any),
        })
    }

    fn pass_signals(&mut self) -> Result<(), DriverError> {
        while let Some(number) = self.signals.next().map_err(waiting)? {
            if number == Signal::WINCH.as_raw() {
                self.relay.iter().for_each(Relay::resize);
            } else if number == Signal::CONT.as_raw() {
                self.go_on()?;
            } else {
                self.process.signal(number)?;
            }
        }
        Ok(())
    }

    /// The command was stopped by Ctrl-Z on its terminal: the user's shell takes over.
    fn stop_along(&mut self) -> Result<(), DriverError> {
        let Some(relay) = self.relay.as_mut().filter(|relay| relay.has_terminal()) else { return Ok(()) };
        relay.give_terminal_back();
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::STOP);
        self.go_on()
    }

    fn go_on(&mut self) -> Result<(), DriverError> {
        if let Some(relay) = &mut self.relay {
            relay.take_terminal();
            relay.resize();
        }
        self.process.signal(Signal::CONT.as_raw())
    }
}

/// What one round of waiting brought.
struct Ready {
    event: bool,
    signal: bool,
    pipes: Vec<usize>,
    relay: Wants,
}

fn waiting(errno: Errno) -> DriverError {
    DriverError::Start(RunError::Wait(errno))
}

/// The exit code of a command that ended so.
#[must_use]
pub fn exit_code(ending: Ending) -> i32 {
    RunEnd::Command(ending).exit_code()
}

/// Runs a command on streams of the caller's own making, and waits for its end.
///
/// # Errors
/// [`DriverError`].
pub fn wait(process: &mut dyn Process) -> Result<RunEnd, DriverError> {
    loop {
        match process.event()? {
            Happening::Stopped => {}
            Happening::Ended(ending) => return Ok(RunEnd::Command(ending)),
            Happening::TimedOut => return Ok(RunEnd::TimedOut),
        }
    }
}

/// Streams that read nothing and show nothing.
///
/// # Errors
/// [`DriverError`] where `/dev/null` cannot be opened.
pub fn nowhere() -> Result<std::fs::File, DriverError> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null");
    null.map_err(|error| waiting(Errno::from_io_error(&error).unwrap_or(Errno::IO)))
}

/// `given` as a command's three streams.
#[must_use]
pub fn on(given: [BorrowedFd<'_>; 3]) -> Given<'_> {
    Given { terminal: None, given: given.to_vec() }
}
