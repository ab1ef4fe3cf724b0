//! A command, as whoever started it sees it: frames over the engine's attached streams.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bollard::query_parameters::KillContainerOptions;
use futures_util::{Stream, StreamExt};
use redoma_jail::JailError;
use redoma_sandbox::RunError;
use redoma_sandbox::driver::{Command, DriverError, Happening, Process, Spec, Streams};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::container::user;
use crate::driver::{Found, OciDriver};
use crate::error::engine;
use crate::frames::{Arriving, CHUNK, Start, ToDriver, ToInside, WINDOW, encode};
use crate::logs::FOLDER;
use crate::network::Network;

/// A command in a container.
pub(crate) struct Remote {
    pid: u32,
    /// A byte for each thing that happened.
    events: UnixStream,
    /// Of a detached command nothing is told: the other end stays open, so that nobody takes it for ended.
    _untold: Option<UnixStream>,
    happened: Arc<Shared>,
    terminal: Option<OwnedFd>,
    /// Closed when nothing is to be read for the command any more.
    _reading: Option<UnixStream>,
    /// The line is served there.
    _driver: OciDriver,
}

/// Between those who wait and the threads that serve.
#[derive(Default)]
struct Shared {
    /// None once there is nothing to say: whoever is inside waits for that before it goes, since an engine may lose the last
    /// words of a process that is gone.
    line: Mutex<Option<UnboundedSender<ToInside>>>,
    happened: Mutex<VecDeque<Result<Happening, DriverError>>>,
    /// Frames of input that may be sent.
    credit: Mutex<u32>,
    more_credit: Condvar,
}

type Output = Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>;
type Input = Pin<Box<dyn AsyncWrite + Send>>;

/// How long an end may take inside before the container is ended as a whole.
const GRACE: Duration = Duration::from_secs(5);

impl Remote {
    pub(crate) fn start(
        driver: &OciDriver,
        found: &Found,
        spec: &Spec,
        network: Option<&Network<'_>>,
        command: &Command,
        streams: &Streams<'_>,
    ) -> Result<Self, DriverError> {
        let start = start_of(command, streams, network);
        let (mut output, mut input) = driver.wait(attach(driver, found, spec))?;
        let mut arriving = Arriving::default();
        let begun = async {
            input
                .write_all(&encode(&ToInside::Start(Box::new(start))))
                .await
                .map_err(|error| lost(&error.to_string()))?;
            next(&mut output, &mut arriving).await
        };
        let pid = match driver.wait(begun)? {
            Some(ToDriver::Started(pid)) => pid,
            Some(ToDriver::NotStarted(failure)) => {
                return Err(DriverError::Start(RunError::Jail(JailError::Step(failure))));
            }
            _ => return Err(lost("it says nothing")),
        };
        let (events, tell) = UnixStream::pair().map_err(no_streams)?;
        let happened = Arc::new(Shared { credit: Mutex::new(WINDOW), ..Shared::default() });
        let mut remote = Self {
            pid,
            events,
            _untold: None,
            happened,
            terminal: None,
            _reading: None,
            _driver: driver.clone(),
        };
        if command.detached {
            remote._untold = Some(tell);
            return Ok(remote);
        }
        let (line, words) = unbounded_channel();
        driver.0.runtime.spawn(send_all(words, input));
        *lock(&remote.happened.line) = Some(line.clone());
        remote.serve(driver, found, streams, &line, tell, (output, arriving), command.timeout)?;
        Ok(remote)
    }

    /// Starts the threads that read and write the user's streams.
    #[expect(clippy::too_many_arguments, reason = "they come together here and nowhere else")]
    fn serve(
        &mut self,
        driver: &OciDriver,
        found: &Found,
        streams: &Streams<'_>,
        line: &UnboundedSender<ToInside>,
        tell: UnixStream,
        (output, arriving): (Output, Arriving),
        timeout: Option<Duration>,
    ) -> Result<(), DriverError> {
        let on_terminal = streams.terminal.map_or([false; 3], |terminal| terminal.streams);
        let mut given = streams.given.iter();
        let mut ends = [None, None, None];
        for (end, on_terminal) in ends.iter_mut().zip(on_terminal) {
            if !on_terminal {
                *end = given.next().map(BorrowedFd::try_clone_to_owned).transpose().map_err(no_streams)?;
            }
        }
        let mut inner = None;
        if streams.terminal.is_some() {
            let (outer, ours) = UnixStream::pair().map_err(no_streams)?;
            self.terminal = Some(outer.into());
            inner = Some(OwnedFd::from(ours));
        }
        let [stdin, stdout, stderr] = ends;
        let typed = inner.as_ref().map(OwnedFd::try_clone).transpose().map_err(no_streams)?;
        if let Some(from) = stdin.or(typed) {
            let (cancel, cancelled) = UnixStream::pair().map_err(no_streams)?;
            let (line, shared) = (line.downgrade(), Arc::clone(&self.happened));
            std::thread::spawn(move || {
                let send = |word| line.upgrade().is_some_and(|line| line.send(word).is_ok());
                feed(&from, &cancelled, &shared, &send);
            });
            self._reading = Some(cancel);
        }
        let pump = Pump {
            driver: driver.clone(),
            container: found.id().to_owned(),
            shared: Arc::clone(&self.happened),
            sinks: [inner, stdout, stderr],
            deadline: timeout.map(|timeout| Instant::now() + timeout + GRACE),
        };
        std::thread::spawn(move || pump.run(output, arriving, &tell));
        Ok(())
    }
}

fn start_of(command: &Command, streams: &Streams<'_>, network: Option<&Network<'_>>) -> Start {
    let bytes = |text: &std::ffi::OsString| text.as_bytes().to_vec();
    let own = command.env.iter().map(|(name, value)| (bytes(name), bytes(value)));
    Start {
        argv: command.argv.iter().map(bytes).collect(),
        env: network.map(Network::variables).unwrap_or_default().into_iter().chain(own).collect(),
        folder: command.workdir.clone(),
        terminal: streams.terminal.filter(|_| !command.detached),
        timeout_ms: command.timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        detached: command.detached,
        network: network.is_some(),
        log: command.log.as_ref().map(|name| PathBuf::from(FOLDER).join(name.as_str())),
    }
}

/// Has the engine start our program inside, and gets its streams.
async fn attach(driver: &OciDriver, found: &Found, spec: &Spec) -> Result<(Output, Input), DriverError> {
    let exec = CreateExecOptions {
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        cmd: Some(found.tool(&["exec"])?),
        user: Some(user(spec)),
        ..CreateExecOptions::default()
    };
    let made = driver.docker().create_exec(found.id(), exec).await.map_err(engine)?;
    let options = StartExecOptions { output_capacity: Some(CHUNK * 2), ..StartExecOptions::default() };
    match driver.docker().start_exec(&made.id, Some(options)).await.map_err(engine)? {
        StartExecResults::Attached { output, input } => Ok((output, input)),
        StartExecResults::Detached => Err(lost("the engine did not attach")),
    }
}

/// The next frame; none when there are no more. What our program writes to standard error is the engine's own complaint.
async fn next(output: &mut Output, arriving: &mut Arriving) -> Result<Option<ToDriver>, DriverError> {
    let mut complaint = Vec::new();
    loop {
        if let Some(frame) = arriving.next().map_err(|error| lost(&error.to_string()))? {
            return Ok(Some(frame));
        }
        match output.next().await {
            Some(Ok(LogOutput::StdOut { message })) => arriving.add(&message),
            Some(Ok(LogOutput::StdErr { message })) if complaint.len() < CHUNK => complaint.extend(message),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(engine(error)),
            None if complaint.is_empty() => return Ok(None),
            None => return Err(lost(String::from_utf8_lossy(&complaint).trim())),
        }
    }
}

async fn send_all(mut words: UnboundedReceiver<ToInside>, mut input: Input) {
    while let Some(word) = words.recv().await {
        if input.write_all(&encode(&word)).await.is_err() {
            return;
        }
    }
    // Whoever is inside takes the end of the line for the end of all.
    let _ = input.shutdown().await;
}

/// Reads for the command until there is no more, or nobody wants it.
fn feed(from: &OwnedFd, cancelled: &UnixStream, shared: &Shared, send: &dyn Fn(ToInside) -> bool) {
    let mut chunk = vec![0; CHUNK];
    loop {
        shared.take_credit();
        let mut wait = [PollFd::new(from, PollFlags::IN), PollFd::new(cancelled, PollFlags::IN)];
        match rustix::event::poll(&mut wait, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        let [readable, over] = wait.map(|fd| !fd.revents().is_empty());
        if over {
            return;
        }
        let read = if readable { rustix::io::read(from, &mut chunk) } else { Err(Errno::AGAIN) };
        match read {
            Ok(length @ 1..) => {
                if !send(ToInside::Input(chunk[..length].to_vec())) {
                    return;
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => shared.give_credit(1),
            // There is no more, or a terminal that hung up.
            Ok(0) | Err(_) => {
                send(ToInside::InputEnd);
                return;
            }
        }
    }
}

impl Shared {
    /// Whether there is still somebody to say it to.
    fn say(&self, word: ToInside) -> bool {
        lock(&self.line).as_ref().is_some_and(|line| line.send(word).is_ok())
    }

    fn take_credit(&self) {
        let mut credit = lock(&self.credit);
        while *credit == 0 {
            credit = self.more_credit.wait(credit).unwrap_or_else(PoisonError::into_inner);
        }
        *credit -= 1;
    }

    fn give_credit(&self, count: u32) {
        let mut credit = lock(&self.credit);
        *credit = credit.saturating_add(count);
        self.more_credit.notify_all();
    }
}

/// Takes what comes from inside.
struct Pump {
    driver: OciDriver,
    container: String,
    shared: Arc<Shared>,
    /// The terminal, standard output, standard error.
    sinks: [Option<OwnedFd>; 3],
    /// When an end by time is overdue.
    deadline: Option<Instant>,
}

impl Pump {
    fn run(mut self, mut output: Output, mut arriving: Arriving, tell: &UnixStream) {
        loop {
            let frame = self.wait(next(&mut output, &mut arriving));
            let over = match frame {
                Some(Ok(Some(ToDriver::Output(which, bytes)))) => {
                    self.write(which, &bytes);
                    continue;
                }
                Some(Ok(Some(ToDriver::Taken(count)))) => {
                    self.shared.give_credit(count.min(WINDOW));
                    continue;
                }
                Some(Ok(Some(ToDriver::Stopped))) => {
                    self.note(Ok(Happening::Stopped), tell);
                    continue;
                }
                Some(Ok(Some(ToDriver::Ended(ending)))) => Ok(Happening::Ended(ending)),
                Some(Ok(Some(ToDriver::TimedOut))) => Ok(Happening::TimedOut),
                // It hinders its own end: then all of the sandbox ends.
                None => {
                    let kill =
                        self.driver.docker().kill_container(&self.container, None::<KillContainerOptions>);
                    let _ = self.driver.wait(kill);
                    Ok(Happening::TimedOut)
                }
                Some(Ok(Some(_) | None)) => Err(DriverError::Gone(None)),
                Some(Err(error)) => Err(error),
            };
            // Readers see the end of the streams before anybody hears of the command's.
            self.sinks = [None, None, None];
            lock(&self.shared.line).take();
            self.shared.give_credit(WINDOW);
            return self.note(over, tell);
        }
    }

    /// None when it takes too long.
    fn wait<T>(&self, frame: impl Future<Output = T>) -> Option<T> {
        match self.deadline {
            None => Some(self.driver.wait(frame)),
            Some(deadline) => {
                let left = deadline.saturating_duration_since(Instant::now());
                self.driver.wait(async { tokio::time::timeout(left, frame).await.ok() })
            }
        }
    }

    fn write(&mut self, which: u8, bytes: &[u8]) {
        let Some(place) = self.sinks.get_mut(usize::from(which)) else { return };
        if place.as_ref().is_some_and(|sink| write_all(sink, bytes).is_err()) {
            // Nobody reads it any more.
            *place = None;
        }
    }

    fn note(&self, happened: Result<Happening, DriverError>, mut tell: &UnixStream) {
        lock(&self.shared.happened).push_back(happened);
        let _ = io::Write::write_all(&mut tell, &[1]);
    }
}

fn write_all(sink: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(sink, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => drop(rustix::event::poll(&mut [PollFd::new(sink, PollFlags::OUT)], None)),
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

impl Process for Remote {
    fn events(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    fn event(&mut self) -> Result<Happening, DriverError> {
        let _ = rustix::io::retry_on_intr(|| rustix::io::read(&self.events, &mut [0; 1]));
        lock(&self.happened.happened).pop_front().unwrap_or(Err(DriverError::Gone(None)))
    }

    fn signal(&mut self, signal: i32) -> Result<(), DriverError> {
        if self.happened.say(ToInside::Signal(signal)) { Ok(()) } else { Err(DriverError::Gone(None)) }
    }

    fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.terminal.take()
    }

    fn resize(&mut self, (rows, columns): (u16, u16)) {
        self.happened.say(ToInside::Resize(rows, columns));
    }

    fn pid(&self) -> Option<u32> {
        Some(self.pid)
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // The end of the line is the command's.
        lock(&self.happened.line).take();
    }
}

fn lost(why: &str) -> DriverError {
    DriverError::Gone(Some(why.to_owned()))
}

fn no_streams(source: io::Error) -> DriverError {
    DriverError::Store { what: "make streams for", path: "a command".into(), source }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
