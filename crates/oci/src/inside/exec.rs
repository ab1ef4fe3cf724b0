//! Starts one command inside and stands between it and the driver.
//!
//! Everything that the command starts is found below this process, so that a time-out, or a driver that is gone, ends all
//! of it. What would end only this process is the sandbox's own user 0; then the driver ends the container instead.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use redoma_jail::{Ending, Failure, Guest, GuestCommand, Reaped, Step, confine_guest};
use redoma_sys::{Errno, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;
use rustix::termios::Winsize;

use crate::frames::{Arriving, CHUNK, Start, ToDriver, ToInside, encode};

/// As much as may wait for a driver that does not read.
const MOST_WAITING: usize = 256 << 10;
/// How long a driver may take to hear that all is over.
const HEARD: Duration = Duration::from_secs(10);

/// Takes the first word from standard input, and then serves until all is over.
pub(super) fn run() -> ExitCode {
    let mut session = Session::default();
    let Some(start) = session.first_word() else { return ExitCode::FAILURE };
    let detached = start.detached;
    let behind = match detached.then(stay_behind) {
        None => None,
        Some(Ok(Some(behind))) => Some(behind),
        Some(Ok(None)) => return ExitCode::SUCCESS,
        Some(Err(_)) => return ExitCode::FAILURE,
    };
    match session.start(start) {
        Ok(mut running) => {
            if detached {
                session.leave_driver();
                drop(behind);
            }
            let told = running.serve(&mut session, detached);
            session.tell(&told);
        }
        Err(failure) => session.tell(&ToDriver::NotStarted(failure)),
    }
    session.flush();
    if !session.gone {
        wait_for_driver();
    }
    ExitCode::SUCCESS
}

/// Goes only when the driver has heard the last word, which is when it hangs up: an engine may lose what a process said that
/// is gone already.
fn wait_for_driver() {
    let until = Instant::now() + HEARD;
    let mut chunk = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or_default();
        let stdin = rustix::stdio::stdin();
        let ready = rustix::event::poll(&mut [PollFd::from_borrowed_fd(stdin, PollFlags::IN)], Some(&left));
        match ready.and_then(|ready| if ready == 0 { Ok(0) } else { rustix::io::read(stdin, &mut chunk) }) {
            Ok(0) => return,
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Goes on in a child that belongs to the container's first process. The engine's own command ends here once the child has
/// said what there is to say: it drops what it gets, or ends.
fn stay_behind() -> Result<Option<OwnedFd>, Errno> {
    let (over, behind) = pipe_with(PipeFlags::CLOEXEC)?;
    match redoma_sys::fork()? {
        None => Ok(Some(behind)),
        Some(_) => {
            drop(behind);
            let _ = rustix::io::retry_on_intr(|| rustix::io::read(&over, &mut [0; 1]));
            wait_for_driver();
            Ok(None)
        }
    }
}

/// The line to the driver.
#[derive(Default)]
struct Session {
    arriving: Arriving,
    waiting: VecDeque<u8>,
    gone: bool,
}

impl Session {
    fn first_word(&mut self) -> Option<Start> {
        loop {
            match self.arriving.next::<ToInside>().ok()? {
                Some(ToInside::Start(start)) => return Some(*start),
                Some(_) => return None,
                None => self.read().then_some(())?,
            }
        }
    }

    /// Whether there was something to read.
    fn read(&mut self) -> bool {
        let mut chunk = vec![0; CHUNK];
        match rustix::io::read(rustix::stdio::stdin(), &mut chunk) {
            Ok(0) => false,
            Ok(length) => {
                self.arriving.add(&chunk[..length]);
                true
            }
            Err(errno) => errno == Errno::INTR || errno == Errno::AGAIN,
        }
    }

    fn tell(&mut self, what: &ToDriver) {
        if !self.gone {
            self.waiting.extend(encode(what));
        }
    }

    /// Writes as much as goes without waiting for more room than there is.
    fn write(&mut self) {
        let (front, _) = self.waiting.as_slices();
        let part = &front[..front.len().min(4096)];
        match rustix::io::write(rustix::stdio::stdout(), part) {
            Ok(written) => drop(self.waiting.drain(..written)),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => self.leave_driver(),
        }
    }

    fn flush(&mut self) {
        while !self.waiting.is_empty() && !self.gone {
            self.write();
        }
    }

    fn leave_driver(&mut self) {
        self.flush();
        self.gone = true;
        self.waiting.clear();
        if let Ok(null) = OpenOptions::new().read(true).write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdin(&null);
            let _ = rustix::stdio::dup2_stdout(&null);
            let _ = rustix::stdio::dup2_stderr(&null);
        }
    }

    fn start(&mut self, start: Start) -> Result<Running, Failure> {
        let failed = |step| move |errno| Failure::new(step, errno);
        let signals = SignalFd::new(&[Signal::CHILD]).map_err(failed(Step::Fork))?;
        let (given, ends) = streams(&start).map_err(failed(Step::Stdio))?;
        confine_guest(start.network)?;
        let deadline = start.timeout_ms.map(|time| Instant::now() + Duration::from_millis(time));
        let mut guest = Guest::start(command(start)?, given)?;
        self.tell(&ToDriver::Started(guest.pid()));
        let terminal = guest.take_terminal();
        Ok(Running {
            guest,
            signals,
            deadline,
            terminal,
            terminal_over: false,
            ends,
            input: VecDeque::new(),
            input_over: false,
            taken: 0,
        })
    }
}

/// The container's variables and the command's own.
fn command(start: Start) -> Result<GuestCommand, Failure> {
    let outer = std::env::vars_os();
    let mut env: BTreeMap<Vec<u8>, Vec<u8>> =
        outer.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
    env.extend(start.env);
    let envp = env.into_iter().map(|(name, value)| [name, b"=".to_vec(), value].concat()).collect();
    let here = || std::env::current_dir().map_err(|_| Failure::new(Step::Folder, Errno::NOENT));
    let folder = start.folder.map_or_else(here, Ok)?;
    Ok(GuestCommand { argv: start.argv, envp, folder, terminal: start.terminal })
}

/// This side's ends of the command's pipes.
#[derive(Default)]
struct Ends {
    stdin: Option<OwnedFd>,
    /// Standard output and error, with their numbers.
    outputs: Vec<(u8, OwnedFd)>,
}

fn streams(start: &Start) -> Result<(Vec<OwnedFd>, Ends), Errno> {
    let on_terminal = start.terminal.map_or([false; 3], |terminal| terminal.streams);
    let (mut given, mut ends) = (Vec::new(), Ends::default());
    if start.detached {
        let sink =
            sink(start.log.as_deref()).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let null = File::open("/dev/null").map_err(|_| Errno::NOENT)?;
        let again = sink.try_clone().map_err(|_| Errno::MFILE)?;
        return Ok((vec![null.into(), sink.into(), again.into()], ends));
    }
    for (number, on_terminal) in on_terminal.into_iter().enumerate() {
        if on_terminal {
            continue;
        }
        let (reading, writing) = pipe_with(PipeFlags::CLOEXEC)?;
        if number == 0 {
            given.push(reading);
            rustix::io::ioctl_fionbio(&writing, true)?;
            ends.stdin = Some(writing);
        } else {
            given.push(writing);
            ends.outputs.push((number as u8, reading));
        }
    }
    Ok((given, ends))
}

/// Where a detached command writes.
fn sink(log: Option<&Path>) -> io::Result<File> {
    let path = log.map_or_else(|| PathBuf::from("/dev/null"), Path::to_owned);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    OpenOptions::new().create(true).append(true).open(path)
}

/// A command that runs.
struct Running {
    guest: Guest,
    signals: SignalFd,
    deadline: Option<Instant>,
    terminal: Option<OwnedFd>,
    /// Nobody inside has it open any more.
    terminal_over: bool,
    ends: Ends,
    input: VecDeque<u8>,
    input_over: bool,
    /// Frames of input that went through, and were not told of yet.
    taken: u32,
}

/// What can be done now.
#[derive(Default)]
struct Ready {
    driver: bool,
    input: bool,
    terminal: bool,
    outputs: Vec<u8>,
}

impl Running {
    /// What the last word is.
    fn serve(&mut self, session: &mut Session, detached: bool) -> ToDriver {
        let mut driver = !detached;
        loop {
            if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                self.guest.end_all();
                self.drain(session);
                return ToDriver::TimedOut;
            }
            let ready = self.wait(session, driver);
            if ready.driver && !(session.read() && self.hear(session)) {
                // Whoever wanted this is gone.
                self.guest.end_all();
                driver = false;
            }
            self.feed(session, ready.input);
            for &number in &ready.outputs {
                self.pass_on(number, session);
            }
            if ready.terminal {
                self.pass_on(0, session);
            }
            if !session.waiting.is_empty() {
                session.write();
            }
            if let Some(ending) = self.reap(session) {
                self.drain(session);
                return ToDriver::Ended(ending);
            }
        }
    }

    fn wait(&self, session: &Session, driver: bool) -> Ready {
        let (stdin, stdout) = (rustix::stdio::stdin(), rustix::stdio::stdout());
        let mut wanted: Vec<(BorrowedFd<'_>, PollFlags)> = vec![(self.signals.as_fd(), PollFlags::IN)];
        let mut want = |fd, flags| {
            wanted.push((fd, flags));
            wanted.len() - 1
        };
        let driver = driver.then(|| want(stdin, PollFlags::IN));
        if !session.waiting.is_empty() {
            want(stdout, PollFlags::OUT);
        }
        let sink = self.terminal.as_ref().filter(|_| self.ends.stdin.is_none()).or(self.ends.stdin.as_ref());
        let input = sink.filter(|_| !self.input.is_empty()).map(|sink| want(sink.as_fd(), PollFlags::OUT));
        let room = session.waiting.len() < MOST_WAITING;
        let terminal = self
            .terminal
            .as_ref()
            .filter(|_| room && !self.terminal_over)
            .map(|end| want(end.as_fd(), PollFlags::IN));
        let outputs: Vec<(usize, u8)> = self
            .ends
            .outputs
            .iter()
            .filter(|_| room)
            .map(|(number, end)| (want(end.as_fd(), PollFlags::IN), *number))
            .collect();
        let mut fds: Vec<PollFd<'_>> =
            wanted.iter().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        if rustix::event::poll(&mut fds, left.as_ref()).is_err() {
            return Ready::default();
        }
        let is = |at: Option<usize>| at.and_then(|at| fds.get(at)).is_some_and(|fd| !fd.revents().is_empty());
        Ready {
            driver: is(driver),
            input: is(input),
            terminal: is(terminal),
            outputs: outputs.into_iter().filter(|(at, _)| is(Some(*at))).map(|(_, number)| number).collect(),
        }
    }

    /// Takes what the driver says; false for what makes no sense.
    fn hear(&mut self, session: &mut Session) -> bool {
        loop {
            match session.arriving.next() {
                Ok(Some(ToInside::Input(bytes))) => {
                    self.input.extend(bytes);
                    self.taken += 1;
                }
                Ok(Some(ToInside::InputEnd)) => self.input_over = true,
                Ok(Some(ToInside::Signal(signal))) => drop(self.guest.signal(signal)),
                Ok(Some(ToInside::Resize(ws_row, ws_col))) => {
                    let size = Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
                    let _ = self.terminal.as_ref().map(|end| rustix::termios::tcsetwinsize(end, size));
                }
                Ok(Some(ToInside::Start(_))) | Err(_) => return false,
                Ok(None) => return true,
            }
        }
    }

    /// Writes to the command's input what it takes.
    fn feed(&mut self, session: &mut Session, ready: bool) {
        let sink = self.ends.stdin.as_ref().or(self.terminal.as_ref());
        if ready && let Some(sink) = sink {
            // Few bytes at a time for a terminal, which may wait otherwise.
            let (front, _) = self.input.as_slices();
            let most = if self.ends.stdin.is_some() { front.len() } else { front.len().min(256) };
            match rustix::io::write(sink, &front[..most]) {
                Ok(written) => drop(self.input.drain(..written)),
                Err(Errno::INTR | Errno::AGAIN) => {}
                // It reads no more: what still comes is for nobody.
                Err(_) => {
                    self.ends.stdin = None;
                    self.input.clear();
                }
            }
        }
        if self.ends.stdin.is_none() && self.terminal.is_none() {
            self.input.clear();
        }
        if self.input.is_empty() {
            if self.input_over {
                self.ends.stdin = None;
            }
            if self.taken > 0 {
                session.tell(&ToDriver::Taken(std::mem::take(&mut self.taken)));
            }
        }
    }

    /// Whether there was something to pass on.
    fn pass_on(&mut self, number: u8, session: &mut Session) -> bool {
        let at = self.ends.outputs.iter().position(|(one, _)| *one == number);
        let end = match at {
            Some(at) => &self.ends.outputs[at].1,
            None => match &self.terminal {
                Some(terminal) => terminal,
                None => return false,
            },
        };
        let mut chunk = vec![0; CHUNK];
        match rustix::io::read(end, &mut chunk) {
            Ok(length @ 1..) => {
                chunk.truncate(length);
                session.tell(&ToDriver::Output(number, chunk));
                true
            }
            Err(Errno::INTR) => true,
            _ => {
                match at {
                    Some(at) => drop(self.ends.outputs.remove(at)),
                    // Open still: closing it would hang up on whoever leads its session, and has not ended yet.
                    None => self.terminal_over = true,
                }
                false
            }
        }
    }

    fn reap(&mut self, session: &mut Session) -> Option<Ending> {
        while let Ok(Some(_)) = self.signals.next() {}
        while let Some(reaped) = self.guest.reap() {
            match reaped {
                Reaped::Ended(ending) => return Some(ending),
                Reaped::Stopped => session.tell(&ToDriver::Stopped),
                Reaped::Orphan => {}
            }
        }
        None
    }

    /// What was written before the end, and no more: others may hold the pipes still.
    fn drain(&mut self, session: &mut Session) {
        for number in [0, 1, 2] {
            while self.has_more(number) && self.pass_on(number, session) {
                session.flush();
            }
        }
    }

    fn has_more(&self, number: u8) -> bool {
        let output = self.ends.outputs.iter().find(|(one, _)| *one == number).map(|(_, end)| end);
        let Some(end) = output.or(self.terminal.as_ref().filter(|_| number == 0 && !self.terminal_over))
        else {
            return false;
        };
        let mut wait = [PollFd::new(end, PollFlags::IN)];
        rustix::event::poll(&mut wait, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}
