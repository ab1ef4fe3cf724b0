//! What makes sandboxes that live longer than one command.
//!
//! A [`Driver`] can do the little that every kind of sandbox can: create, exec, files in and out, destroy, list. All else
//! is a capability that it may have, asked for by type; [`Manager`](crate::Manager) says `driver X cannot Y` where it has
//! none. A driver's own store is the truth: nobody keeps a second list. Nothing here could be answered by one machine
//! only: a driver may speak to an engine elsewhere.

#[cfg(any(test, feature = "contract"))]
pub mod contract;
mod error;
mod id;
mod info;
mod mock;
mod spec;

use std::ffi::OsString;
use std::io::Read;
use std::net::TcpStream;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use redoma_jail::{Ending, Terminal};

pub use error::DriverError;
pub use id::{InvalidName, Name, Owner, SandboxId};
pub use info::{Info, Past, SnapshotInfo, State, Stats};
pub use mock::{Call, Mock};
pub use spec::{Amounts, DriverName, ImageName, Label, Mount, Rules, Spec, User};

/// Makes sandboxes.
pub trait Driver: Send + Sync {
    /// Its name.
    fn name(&self) -> DriverName;

    /// Makes a sandbox. Nothing runs in it yet. Halfway through, a failure leaves nothing behind.
    ///
    /// # Errors
    /// [`DriverError`].
    fn create(&self, spec: &Spec) -> Result<Info, DriverError>;

    /// Starts a command in a sandbox, which starts the sandbox's own processes where none are alive, and lets a paused one
    /// go on.
    ///
    /// # Errors
    /// [`DriverError::Start`] with what kept the command from starting.
    fn exec(
        &self,
        id: &SandboxId,
        command: &Command,
        streams: &Streams<'_>,
    ) -> Result<Box<dyn Process>, DriverError>;

    /// The files of a sandbox, whether or not anything runs in it.
    ///
    /// # Errors
    /// [`DriverError`].
    fn files(&self, id: &SandboxId) -> Result<Box<dyn Files>, DriverError>;

    /// Ends what runs in a sandbox and leaves it as it is.
    ///
    /// # Errors
    /// [`DriverError`].
    fn stop(&self, id: &SandboxId) -> Result<(), DriverError>;

    /// Ends a sandbox and removes all of it. Doing it twice is no error; one that was never whole goes as well.
    ///
    /// # Errors
    /// [`DriverError`] with what could not be removed.
    fn destroy(&self, id: &SandboxId) -> Result<(), DriverError>;

    /// Every sandbox of this driver, oldest first.
    ///
    /// # Errors
    /// [`DriverError`] when its store cannot be read.
    fn list(&self) -> Result<Vec<Info>, DriverError>;

    /// Which sandbox is meant by a name, an id, or the beginning of one.
    ///
    /// # Errors
    /// [`DriverError::NoSandbox`] and [`DriverError::Ambiguous`].
    fn find(&self, text: &str) -> Result<SandboxId, DriverError> {
        let all = self.list()?;
        if let Some(named) = all.iter().find(|info| info.spec.name.as_str() == text) {
            return Ok(named.spec.id);
        }
        let begins = |id: &SandboxId| !text.is_empty() && id.as_str().starts_with(text);
        let mut begun = all.iter().map(|info| info.spec.id).filter(begins);
        match (begun.next(), begun.next()) {
            (Some(id), None) => Ok(id),
            (Some(_), Some(_)) => Err(DriverError::Ambiguous(text.to_owned())),
            (None, _) => Err(DriverError::NoSandbox(text.to_owned())),
        }
    }

    /// One sandbox.
    ///
    /// # Errors
    /// [`DriverError::NoSandbox`].
    fn info(&self, id: &SandboxId) -> Result<Info, DriverError> {
        let found = self.list()?.into_iter().find(|info| info.spec.id == *id);
        found.ok_or_else(|| DriverError::NoSandbox(id.to_string()))
    }

    /// Stopping the clock for a sandbox.
    fn pausing(&self) -> Option<&dyn Pausing> {
        None
    }

    /// Frozen file systems.
    fn snapshots(&self) -> Option<&dyn Snapshots> {
        None
    }

    /// What differs between two file systems.
    fn comparing(&self) -> Option<&dyn Comparing> {
        None
    }

    /// What runs, kept on disk and brought back.
    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        None
    }

    /// What a sandbox uses.
    fn statistics(&self) -> Option<&dyn Statistics> {
        None
    }

    /// What detached commands wrote.
    fn logging(&self) -> Option<&dyn Logging> {
        None
    }

    /// What happened in a sandbox.
    fn histories(&self) -> Option<&dyn Histories> {
        None
    }

    /// Connections to ports inside.
    fn dialing(&self) -> Option<&dyn Dialing> {
        None
    }
}

/// A command to run in a sandbox.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// Name and arguments.
    pub argv: Vec<OsString>,
    /// Variables besides the sandbox's own.
    pub env: Vec<(OsString, OsString)>,
    /// Where it runs, instead of where the sandbox's commands do.
    pub workdir: Option<PathBuf>,
    /// When to end it, with every process it started.
    pub timeout: Option<Duration>,
    /// Whether it goes on when whoever started it is gone.
    pub detached: bool,
    /// What to do when it ends, if it is detached.
    pub restart: Restart,
    /// The name of the log that its output goes to, if it is detached: of two files of limited size in turn.
    pub log: Option<Name>,
}

/// Whether a command that ended is started again. Each time takes longer than the last, up to a minute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// Never.
    #[default]
    No,
    /// When it failed.
    OnFailure,
    /// However it ended.
    Always,
}

/// What a command reads and writes.
pub struct Streams<'a> {
    /// A terminal to make inside, and which streams it is.
    pub terminal: Option<Terminal>,
    /// The other streams of standard input, output and error, in order: files and pipes, never a terminal of the user's.
    pub given: Vec<BorrowedFd<'a>>,
}

/// A command that runs in a sandbox. Dropping it ends the command, unless it is detached.
pub trait Process: Send {
    /// Readable when [`Self::event`] would not wait.
    fn events(&self) -> BorrowedFd<'_>;

    /// Waits for what happens next.
    ///
    /// # Errors
    /// [`DriverError::Gone`] when the sandbox ended under it.
    fn event(&mut self) -> Result<Happening, DriverError>;

    /// Sends a signal by its number, to the command's whole process group.
    ///
    /// # Errors
    /// [`DriverError::Gone`] when the sandbox ended under it.
    fn signal(&mut self, signal: i32) -> Result<(), DriverError>;

    /// The outer end of the terminal that was asked for, once.
    fn take_terminal(&mut self) -> Option<OwnedFd>;

    /// Tells the terminal its size: rows and columns.
    fn resize(&mut self, size: (u16, u16));

    /// Its process id inside, where the driver knows it.
    fn pid(&self) -> Option<u32>;
}

/// What happens to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A signal stopped it.
    Stopped,
    /// It ended.
    Ended(Ending),
    /// Its time was up: it and all it started were ended.
    TimedOut,
}

/// Files of one sandbox. Paths inside are absolute, and no link inside leads out.
pub trait Files {
    /// Copies a file or folder of the host into the sandbox.
    ///
    /// # Errors
    /// [`DriverError::Files`].
    fn copy_in(&self, from: &Path, to: &Path) -> Result<Copied, DriverError>;

    /// Copies a file or folder out of the sandbox.
    ///
    /// # Errors
    /// [`DriverError::Files`].
    fn copy_out(&self, from: &Path, to: &Path) -> Result<Copied, DriverError>;

    /// Reads a file from `offset`, at most `length` bytes.
    ///
    /// # Errors
    /// [`DriverError::Files`].
    fn read(&self, path: &Path, offset: u64, length: u64) -> Result<Box<dyn Read>, DriverError>;

    /// Writes a file whole; what was there is replaced when all of it has come.
    ///
    /// # Errors
    /// [`DriverError::Files`].
    fn write(&self, path: &Path, mode: u32, content: &mut dyn Read) -> Result<(), DriverError>;

    /// What lies in a folder.
    ///
    /// # Errors
    /// [`DriverError::Files`].
    fn list(&self, path: &Path) -> Result<Vec<Entry>, DriverError>;
}

/// What came of copying.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Copied {
    /// Files, folders and links.
    pub entries: u64,
    /// Bytes of files.
    pub bytes: u64,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// One thing in a folder of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Entry {
    /// Its name, escaped where it is no text.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
    /// Bytes of a file.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Last change, in seconds since 1970.
    pub modified: i64,
}

/// What a directory entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum EntryKind {
    File,
    Folder,
    Link,
    Other,
}

/// A driver that can stop a sandbox's clock.
pub trait Pausing {
    /// Stops every process inside.
    ///
    /// # Errors
    /// [`DriverError::NotRunning`] when there is none.
    fn pause(&self, id: &SandboxId) -> Result<(), DriverError>;

    /// Lets them go on.
    ///
    /// # Errors
    /// [`DriverError`].
    fn resume(&self, id: &SandboxId) -> Result<(), DriverError>;
}

/// A driver that can freeze a file system, and make sandboxes from it.
pub trait Snapshots {
    /// Freezes a sandbox's file system under a name; one that runs is stopped meanwhile.
    ///
    /// # Errors
    /// [`DriverError::NameTaken`].
    fn snapshot(&self, id: &SandboxId, name: &Name) -> Result<SnapshotInfo, DriverError>;

    /// Makes a sandbox whose file system begins as the snapshot, and of which all else is as `spec` says.
    ///
    /// # Errors
    /// [`DriverError::NoSnapshot`].
    fn fork(&self, snapshot: &Name, spec: &Spec) -> Result<Info, DriverError>;

    /// Every snapshot of this driver, oldest first.
    ///
    /// # Errors
    /// [`DriverError`].
    fn snapshots(&self) -> Result<Vec<SnapshotInfo>, DriverError>;

    /// Removes a snapshot; what sandboxes still stand on stays until they are gone.
    ///
    /// # Errors
    /// [`DriverError::NoSnapshot`].
    fn remove(&self, name: &Name) -> Result<(), DriverError>;
}

/// A driver that can compare file systems.
pub trait Comparing {
    /// What differs between two snapshots or sandboxes, in the order of paths; with `content`, also how texts do.
    ///
    /// # Errors
    /// [`DriverError::NoSnapshot`] for what is neither; [`DriverError::Files`] when one cannot be read.
    fn diff(&self, before: &str, after: &str, content: bool) -> Result<Vec<Difference>, DriverError>;
}

/// One path that differs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Difference {
    /// Absolute, inside; escaped where it is no text.
    pub path: String,
    /// How.
    pub differs: Differs,
    /// What it is in the first.
    pub before: Option<What>,
    /// What it is in the second.
    pub after: Option<What>,
    /// A unified diff, where it was asked for and both are text.
    pub text: Option<String>,
}

/// How a path differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Differs {
    /// Only the second has it.
    Added,
    /// Only the first has it.
    Removed,
    /// Its content is another.
    Modified,
    /// Its mode, owner or attributes are others, its content is not.
    Mode,
    /// It is another kind of thing.
    Kind,
}

/// What a path is on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct What {
    /// Permission bits.
    pub mode: u32,
    /// The owner outside.
    pub uid: u32,
    /// The group outside.
    pub gid: u32,
    /// Bytes.
    pub size: u64,
}

/// A driver that can keep what runs on disk.
pub trait Checkpoints {
    /// Keeps every process of a sandbox on disk and ends them.
    ///
    /// # Errors
    /// [`DriverError::Unsupported`] with the reason, where this machine cannot.
    fn checkpoint(&self, id: &SandboxId) -> Result<(), DriverError>;

    /// Brings them back.
    ///
    /// # Errors
    /// As [`Self::checkpoint`].
    fn restore(&self, id: &SandboxId) -> Result<(), DriverError>;
}

/// A driver that can tell what a sandbox uses.
pub trait Statistics {
    /// What it uses now.
    ///
    /// # Errors
    /// [`DriverError`].
    fn stats(&self, id: &SandboxId) -> Result<Stats, DriverError>;
}

/// A driver that keeps what detached commands write.
pub trait Logging {
    /// All that is kept, oldest first; with `follow` until the sandbox ends.
    ///
    /// # Errors
    /// [`DriverError`].
    fn logs(&self, id: &SandboxId, follow: bool) -> Result<Box<dyn Read>, DriverError>;
}

/// A driver that can tell what happened.
pub trait Histories {
    /// The commands that ran, oldest first.
    ///
    /// # Errors
    /// [`DriverError`].
    fn history(&self, id: &SandboxId) -> Result<Vec<Past>, DriverError>;
}

/// A driver that can connect to a port of a sandbox that is not published.
pub trait Dialing {
    /// A connection to a port on the sandbox's own loopback.
    ///
    /// # Errors
    /// [`DriverError`], also where nobody listens.
    fn dial(&self, id: &SandboxId, port: u16) -> Result<TcpStream, DriverError>;
}
