//! What a sandbox's keeper is asked, and by whom: the user's own processes, over a socket in a folder of the user's alone.
//!
//! One connection carries at most one command: it ends when the connection does, unless it is detached. A keeper that is not
//! there is started, and gets the first connection along with its life.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command as Program, Stdio};
use std::time::{Duration, Instant};

use redoma_jail::{Channel, Ending, Failure, Step, Terminal};
use serde::{Deserialize, Serialize};

use super::store::{Store, failed};
use crate::driver::{DriverError, Name, Restart, SandboxId};
use crate::homes::Homes;

/// What is asked.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Ask {
    /// Start a command, on the streams that come along.
    Exec(Box<AskExec>),
    /// Send this signal to this connection's command.
    Signal(i32),
    /// Stop everything inside.
    Pause,
    /// Let it go on.
    Resume,
    /// The sandbox's root folder.
    Root,
    /// A connection to a port inside.
    Dial(u16),
    /// End, if nothing runs: whether it does is what the answer says.
    Retire,
    /// End.
    Stop,
}

/// A command to start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AskExec {
    pub(crate) argv: Vec<Vec<u8>>,
    pub(crate) env: Vec<(Vec<u8>, Vec<u8>)>,
    pub(crate) workdir: Option<PathBuf>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) detached: bool,
    pub(crate) restart: Restart,
    /// The log's name; then no streams come along.
    pub(crate) log: Option<String>,
    pub(crate) terminal: Option<Terminal>,
}

/// What is answered.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Tell {
    /// Somebody else holds the sandbox: perhaps a keeper that is about to listen.
    Busy,
    /// It was not done, and why.
    Failed(Refusal),
    /// It was done; what was asked for comes along.
    Done,
    /// The command runs; the outer end of its terminal comes along.
    Started { pid: i32 },
    /// The command was stopped by a signal.
    Stopped,
    /// It ended.
    Ended(Ending),
    /// Its time was up.
    TimedOut,
}

/// An error on its way to whoever asked.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) message: String,
    pub(crate) hint: String,
    pub(crate) code: i32,
}

impl Refusal {
    pub(crate) fn of(error: &DriverError) -> Self {
        Self { message: error.to_string(), hint: error.hint(), code: error.exit_code() }
    }

    /// Of a command that did not start.
    pub(crate) fn of_command(failure: Failure, program: Option<&OsString>, sandbox: &Name) -> Self {
        let program = program.map(|program| program.display().to_string()).unwrap_or_default();
        let message = match failure.step {
            Step::Program => format!("cannot run {program:?} in {sandbox}: {}", failure.errno()),
            _ => format!("cannot run {program:?} in {sandbox}: cannot {failure}"),
        };
        let code = crate::error::RunError::Jail(failure.into()).exit_code();
        Self { message, hint: format!("redoma sandbox shell {sandbox}"), code }
    }
}

/// What keepers are: a program, and the folders that it is told.
#[derive(Clone, Debug)]
pub(crate) struct Keepers {
    pub(crate) program: PathBuf,
    homes: Homes,
}

impl Keepers {
    /// This program again.
    pub(crate) fn of_this_program(homes: &Homes) -> Self {
        Self { program: "/proc/self/exe".into(), homes: homes.clone() }
    }

    fn command(&self, id: &SandboxId) -> Program {
        let mut command = Program::new(&self.program);
        command.arg0("redoma").args(["keeper", id.as_str()]).env("HOME", self.homes.home());
        if let Some(root) = self.homes.root() {
            command.env("REDOMA_HOME", root);
        }
        command
    }
}

/// A connection to a keeper.
pub(crate) struct Line {
    channel: Channel,
}

/// How long a keeper has until it listens, and one that ends until it is gone.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at somebody who is about to listen or to let go.
const PAUSE: Duration = Duration::from_millis(2);

impl Line {
    /// To the keeper of a sandbox if it has one.
    pub(crate) fn to_living(store: &Store, id: &SandboxId) -> Result<Option<Self>, DriverError> {
        let socket = store.socket(id);
        match UnixStream::connect(&socket) {
            Ok(stream) => Ok(Some(Self { channel: OwnedFd::from(stream).into() })),
            Err(error) if is_nobody(&error) => Ok(None),
            Err(source) => Err(failed("speak to", &socket, source)),
        }
    }

    /// Asks the keeper of a sandbox, which is started where there is none.
    pub(crate) fn ask(
        store: &Store,
        keepers: &Keepers,
        id: &SandboxId,
        ask: &Ask,
        along: &[BorrowedFd<'_>],
    ) -> Result<(Self, Tell, Vec<OwnedFd>), DriverError> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let line = match Self::to_living(store, id)? {
                Some(line) => line,
                None => Self::to_new(keepers, id)?,
            };
            match line.exchange(ask, along) {
                Err(DriverError::Gone(_)) | Ok((Tell::Busy, _)) if Instant::now() < deadline => {
                    // Whoever holds it is about to listen, or to let go.
                    std::thread::sleep(PAUSE);
                }
                Ok((Tell::Busy, _)) => return Err(super::store::busy(&store.folder(id))),
                Ok((Tell::Failed(refusal), _)) => return Err(refusal.into()),
                Ok((told, along)) => return Ok((line, told, along)),
                Err(error) => return Err(error),
            }
        }
    }

    /// Starts a keeper, which is this program again: nothing that this process holds or has read goes along.
    fn to_new(keepers: &Keepers, id: &SandboxId) -> Result<Self, DriverError> {
        let start = || -> io::Result<Self> {
            let (ours, theirs) = Channel::pair()?;
            let mut child = keepers
                .command(id)
                .stdin(Stdio::from(OwnedFd::from(theirs)))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .current_dir("/")
                .spawn()?;
            // It leaves the keeper behind, which is nobody's child then, and ends.
            child.wait()?;
            Ok(Self { channel: ours })
        };
        start().map_err(|source| failed("start", &keepers.program, source))
    }

    /// One question, one answer.
    pub(crate) fn exchange(
        &self,
        ask: &Ask,
        along: &[BorrowedFd<'_>],
    ) -> Result<(Tell, Vec<OwnedFd>), DriverError> {
        self.send(ask, along)?;
        self.receive()
    }

    pub(crate) fn send(&self, ask: &Ask, along: &[BorrowedFd<'_>]) -> Result<(), DriverError> {
        self.channel.send(ask, along).map_err(|_| DriverError::Gone(None))
    }

    pub(crate) fn receive(&self) -> Result<(Tell, Vec<OwnedFd>), DriverError> {
        self.channel.receive().ok().flatten().ok_or(DriverError::Gone(None))
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

impl From<Refusal> for DriverError {
    fn from(refusal: Refusal) -> Self {
        let Refusal { message, hint, code } = refusal;
        Self::Told { message, hint, code }
    }
}

/// Nobody listens there: the socket is gone, or was left by a keeper that was killed.
fn is_nobody(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}
