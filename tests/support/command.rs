//! One call of `redoma`, and what came of it.

use std::ffi::{OsStr, OsString};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};

use crate::PATIENCE;
use crate::binary::{redoma, search_path, toolchain};
use crate::home::Home;
use crate::process::wait_gone;
use crate::terminal::Terminal;

/// What the kernel is asked to enforce with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Namespaces, Landlock and seccomp.
    Full,
    /// Landlock and seccomp.
    Landlock,
}

impl Tier {
    /// Every tier, for tests of what both promise.
    pub const ALL: [Self; 2] = [Self::Full, Self::Landlock];

    /// As `--tier` takes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Landlock => "landlock",
        }
    }
}

/// A call of `redoma` that has not started yet.
#[derive(Debug, Clone)]
pub struct Redoma {
    folder: PathBuf,
    /// A program that enters somewhere before it becomes `redoma`, with its arguments.
    within: Vec<OsString>,
    arguments: Vec<OsString>,
    command: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    stdin: Vec<u8>,
}

impl Redoma {
    pub(crate) fn new<'a>(home: &Home, folder: &Path, args: impl IntoIterator<Item = &'a str>) -> Self {
        let environment = [
            ("HOME", home.path().into_os_string()),
            ("REDOMA_HOME", home.redoma().into_os_string()),
            ("PATH", search_path()),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "xterm-256color".into()),
            ("USER", "test".into()),
        ];
        Self {
            folder: folder.to_owned(),
            within: Vec::new(),
            arguments: args.into_iter().map(OsString::from).collect(),
            command: Vec::new(),
            environment: environment.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            stdin: Vec::new(),
        }
    }

    /// What comes after `--`.
    #[must_use]
    pub fn command<'a>(mut self, command: impl IntoIterator<Item = &'a str>) -> Self {
        self.command = command.into_iter().map(OsString::from).collect();
        self
    }

    /// One more argument of `redoma` itself, before `--`.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// An option with its value, before `--`.
    #[must_use]
    pub fn option(self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.arg(name).arg(value)
    }

    /// `--tier`.
    #[must_use]
    pub fn tier(self, tier: Tier) -> Self {
        self.option("--tier", tier.name())
    }

    /// One more variable in the caller's environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Another working folder than the project's top.
    #[must_use]
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// What standard input gives before it ends.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Puts the test toolchain first on PATH and lets the sandbox read it.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn with_toolchain(self) -> Self {
        let toolchain = toolchain().expect("a Rust toolchain; hint: cargo xtask setup");
        let mut path = toolchain.join("bin").into_os_string();
        path.push(":");
        path.push(search_path());
        self.option("--read", toolchain).env("PATH", path)
    }

    /// Where it is called.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Called by this program, which becomes what its arguments say.
    pub(crate) fn within(self, program: Vec<OsString>) -> Self {
        Self { within: program, ..self }
    }

    /// As a [`Command`], for what this builder lacks.
    #[must_use]
    pub fn build(&self) -> Command {
        let mut words = self.within.iter().cloned().chain([redoma().into_os_string()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        self.fill(&mut command);
        command
    }

    fn fill(&self, command: &mut Command) {
        command.args(&self.arguments);
        if !self.command.is_empty() {
            command.arg("--").args(&self.command);
        }
        command.current_dir(&self.folder).env_clear().envs(self.environment.iter().cloned());
    }

    /// Starts it with pipes.
    ///
    /// # Panics
    /// If it cannot start.
    #[must_use]
    pub fn spawn(self) -> Running {
        let mut command = self.build();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let input = child.stdin.take().unwrap();
        let feeder = thread::spawn(move || feed(input, &self.stdin));
        let stdout = drain(child.stdout.take().unwrap());
        let stderr = drain(child.stderr.take().unwrap());
        Running { shown: format!("{command:?}"), child, feeder, stdout, stderr }
    }

    /// Starts it and returns once the command inside has printed the line `ready`.
    ///
    /// # Panics
    /// If it prints anything else first.
    #[must_use]
    pub fn until_ready(self) -> Held {
        let mut child = self.build().stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let held = Held { child };
        assert_eq!(line, "ready\n");
        held
    }

    /// Runs it to its end.
    #[must_use]
    pub fn run(self) -> Ran {
        self.spawn().wait()
    }

    /// Starts it on a terminal of its own, as its controlling terminal.
    #[must_use]
    pub fn terminal(self) -> Terminal {
        // setsid(1) makes the session and takes the terminal; that needs unsafe code from here.
        let mut command = Command::new("setsid");
        command.arg("--ctty").args(&self.within).arg(redoma());
        self.fill(&mut command);
        Terminal::start(command)
    }
}

/// A reader that is gone is no failure: the command may end without reading its input.
fn feed(mut input: impl Write, bytes: &[u8]) {
    drop(input.write_all(bytes));
}

fn drain(mut output: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        output.read_to_end(&mut bytes).expect("a pipe is readable to its end");
        bytes
    })
}

/// A call that has said `ready` and goes on; killed when dropped.
pub struct Held {
    child: Child,
}

impl Held {
    /// The process id of `redoma`.
    ///
    /// # Panics
    /// Never: process ids fit.
    #[must_use]
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Ends it with SIGKILL, as a user would with `kill -9`, and waits for it.
    pub fn kill(self) {
        drop(self);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // An error means that it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Held {
    /// Waits for its end and returns its exit code.
    ///
    /// # Panics
    /// If a signal ended it, or it takes longer than [`PATIENCE`].
    #[must_use]
    pub fn wait(mut self) -> i32 {
        assert!(wait_gone(self.pid(), PATIENCE), "it did not end within {PATIENCE:?}");
        self.child.wait().unwrap().code().unwrap()
    }
}

/// A call that runs.
pub struct Running {
    shown: String,
    child: Child,
    feeder: JoinHandle<()>,
    stdout: JoinHandle<Vec<u8>>,
    stderr: JoinHandle<Vec<u8>>,
}

impl Running {
    /// The process id of `redoma`.
    ///
    /// # Panics
    /// Never: process ids fit.
    #[must_use]
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    /// Ends it with SIGKILL, as a user would with `kill -9`.
    ///
    /// # Panics
    /// If it has been waited for.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it takes longer than [`PATIENCE`]; it is killed first.
    #[must_use]
    pub fn wait(mut self) -> Ran {
        if !wait_gone(self.pid(), PATIENCE) {
            self.kill();
            panic!("{} did not end within {PATIENCE:?}", self.shown);
        }
        let status = self.child.wait().unwrap();
        self.feeder.join().unwrap();
        Ran { shown: self.shown, status, stdout: text(self.stdout), stderr: text(self.stderr) }
    }
}

fn text(bytes: JoinHandle<Vec<u8>>) -> Vec<u8> {
    bytes.join().expect("the reader of a pipe does not panic")
}

/// What came of a call.
pub struct Ran {
    shown: String,
    status: ExitStatus,
    /// Standard output, byte for byte.
    pub stdout: Vec<u8>,
    /// Standard error, byte for byte.
    pub stderr: Vec<u8>,
}

impl Ran {
    /// The exit code; 128+N when `redoma` itself died of signal N.
    ///
    /// # Panics
    /// Never: a process has a code or a signal.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap())
    }

    /// Standard output as text.
    #[must_use]
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text.
    #[must_use]
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Fails the test unless the exit code is this.
    ///
    /// # Panics
    /// With both outputs.
    #[must_use]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code(), code, "{self:?}");
        self
    }

    /// Fails the test unless it succeeded.
    #[must_use]
    pub fn ok(self) -> Self {
        self.expect_code(0)
    }

    /// Fails the test unless the command inside ran far enough to print the line `started`, and takes it off.
    ///
    /// For attempts that must come to nothing: without this, a sandbox that never starts would pass.
    ///
    /// # Panics
    /// With both outputs.
    #[must_use]
    pub fn started(mut self) -> Self {
        assert!(self.stdout.starts_with(b"started\n"), "nothing ran inside: {self:?}");
        self.stdout.drain(..b"started\n".len());
        self
    }

    /// Standard output read as JSON.
    ///
    /// # Panics
    /// If it is none.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl std::fmt::Debug for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}\n{}", self.shown, self.status)?;
        write!(f, "--- stdout\n{}\n--- stderr\n{}", self.out(), self.err())
    }
}
