//! The commands of a sandbox, as its keeper knows them.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use redoma_audit::SessionId;
use redoma_jail::{Ending, Exec, Ids, Terminal};
use rustix::pipe::PipeFlags;

use super::control::AskExec;
use super::drawing::WORKSPACE;
use super::ids;
use super::store::{Record, Says, failed};
use crate::driver::{DriverError, Restart, Spec, User};

/// All that run, and those that are to be started again.
pub(crate) struct Commands {
    folder: PathBuf,
    spec: Spec,
    says: Says,
    session: SessionId,
    /// What programs are told about the network.
    network: Vec<(String, OsString)>,
    next: u32,
    running: Vec<Running>,
    again: Vec<(Instant, Running)>,
}

/// A command.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) number: u32,
    /// Who wanted it.
    pub(crate) client: Option<u64>,
    pub(crate) argv: Vec<OsString>,
    pub(crate) folder: PathBuf,
    pub(crate) pid: i32,
    pub(crate) began: Instant,
    pub(crate) detached: bool,
    pub(crate) timed_out: bool,
    deadline: Option<Instant>,
    log: Option<Log>,
    /// To be started again by.
    asked: Asked,
    restart: Restart,
    /// How often it was started again in a row.
    restarts: u32,
}

#[derive(Clone, Debug)]
struct Asked {
    env: Vec<(OsString, OsString)>,
    terminal: Option<Terminal>,
    log: Option<String>,
}

/// Where a detached command's output goes: two files in turn, so that it fills no disk.
#[derive(Debug)]
struct Log {
    path: PathBuf,
    file: File,
    written: u64,
    from: OwnedFd,
}

/// What each of the two files of a log holds.
const LOG_BYTES: u64 = 8 << 20;
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Commands {
    pub(crate) fn new(
        folder: &Path,
        record: &Record,
        session: SessionId,
        network: Vec<(String, OsString)>,
    ) -> Self {
        Self {
            folder: folder.to_owned(),
            spec: record.spec.clone(),
            says: record.base.says.clone(),
            session,
            network,
            next: 1,
            running: Vec::new(),
            again: Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.running.is_empty() && self.again.is_empty()
    }

    /// What to ask init for, and on which streams.
    pub(crate) fn prepare(
        &mut self,
        ask: AskExec,
        along: Vec<OwnedFd>,
        client: u64,
        root: Option<BorrowedFd<'_>>,
    ) -> Result<(Exec, Vec<OwnedFd>), DriverError> {
        let folder = ask.workdir.unwrap_or_else(|| self.workdir());
        let env =
            ask.env.into_iter().map(|(name, value)| (OsString::from_vec(name), OsString::from_vec(value)));
        let running = Running {
            number: 0,
            client: Some(client),
            argv: ask.argv.into_iter().map(OsString::from_vec).collect(),
            folder,
            pid: 0,
            began: Instant::now(),
            detached: ask.detached,
            timed_out: false,
            deadline: ask.timeout.map(|timeout| Instant::now() + timeout),
            log: None,
            asked: Asked { env: env.collect(), terminal: ask.terminal, log: ask.log },
            restart: ask.restart,
            restarts: 0,
        };
        self.begin(running, along, root)
    }

    fn begin(
        &mut self,
        mut running: Running,
        along: Vec<OwnedFd>,
        root: Option<BorrowedFd<'_>>,
    ) -> Result<(Exec, Vec<OwnedFd>), DriverError> {
        running.number = self.next;
        running.began = Instant::now();
        self.next = self.next.wrapping_add(1).max(1);
        let user = self.user(root)?;
        let streams = match running.asked.log.clone() {
            Some(name) => {
                let (log, streams) = self.log(&name)?;
                running.log = Some(log);
                streams
            }
            None => along,
        };
        let exec = Exec {
            number: running.number,
            held: running.deadline.is_some(),
            environment: self.environment(user.as_ref(), &running.asked.env),
            user: user.map(|(ids, _)| ids),
            argv: running.argv.clone(),
            folder: running.folder.clone(),
            terminal: running.asked.terminal,
        };
        self.running.push(running);
        Ok((exec, streams))
    }

    fn workdir(&self) -> PathBuf {
        let own = self.spec.workdir.clone().or_else(|| self.says.workdir.clone());
        own.filter(|folder| folder.is_absolute()).unwrap_or_else(|| WORKSPACE.into())
    }

    /// Who the image says commands are, with the home folder, where that is not user 0.
    fn user(&self, root: Option<BorrowedFd<'_>>) -> Result<Option<(Ids, PathBuf)>, DriverError> {
        let named = self.says.user.as_deref().filter(|_| self.spec.user == User::Root);
        match (named, root) {
            (Some(named), Some(root)) => ids::look_up(named, root),
            _ => Ok(None),
        }
    }

    /// The image's variables, then those about the network, the sandbox's, the command's: the last of a name counts.
    fn environment(
        &self,
        user: Option<&(Ids, PathBuf)>,
        own: &[(OsString, OsString)],
    ) -> Vec<(OsString, OsString)> {
        let home = match (user, self.spec.user) {
            (Some((_, home)), _) => home.clone(),
            (None, User::Root) => "/root".into(),
            (None, User::Me) => "/home/me".into(),
        };
        let text = |(name, value): &(String, String)| (OsString::from(name), OsString::from(value));
        let first = [
            ("PATH".into(), PATH.into()),
            ("HOME".into(), home.into_os_string()),
            ("HOSTNAME".into(), self.spec.name.as_str().into()),
            ("REDOMA_SANDBOX".into(), self.spec.name.as_str().into()),
            ("REDOMA_SESSION".into(), self.session.as_str().into()),
        ];
        let network = self.network.iter().map(|(name, value)| (name.into(), value.clone()));
        let all = first
            .into_iter()
            .chain(self.says.env.iter().map(text))
            .chain(network)
            .chain(self.spec.env.iter().map(text))
            .chain(own.iter().cloned());
        let mut environment: Vec<(OsString, OsString)> = Vec::new();
        for (name, value) in all {
            environment.retain(|(known, _)| *known != name);
            environment.push((name, value));
        }
        environment
    }

    pub(crate) fn started(&mut self, number: u32, pid: i32) -> Option<&Running> {
        let running = self.running.iter_mut().find(|running| running.number == number)?;
        running.pid = pid;
        Some(running)
    }

    pub(crate) fn client_of(&self, number: u32) -> Option<u64> {
        self.running.iter().find(|running| running.number == number)?.client
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<Running> {
        let at = self.running.iter().position(|running| running.number == number)?;
        let mut removed = self.running.swap_remove(at);
        if let Some(log) = &mut removed.log {
            log.drain();
        }
        Some(removed)
    }

    pub(crate) fn take_all(&mut self) -> Vec<Running> {
        std::mem::take(&mut self.running)
    }

    /// Has a command started again if it is to be: each time twice as long after its end as the last, unless it had run for
    /// a while.
    pub(crate) fn perhaps_again(&mut self, mut ended: Running, ending: Ending) {
        const LONGEST: Duration = Duration::from_secs(60);
        const FIRST: Duration = Duration::from_millis(100);
        let wanted = match ended.restart {
            Restart::No => false,
            Restart::OnFailure => ending != Ending::Exited(0),
            Restart::Always => true,
        };
        if !wanted || !ended.detached {
            return;
        }
        ended.restarts = if ended.began.elapsed() > LONGEST { 0 } else { ended.restarts + 1 };
        let pause = FIRST.saturating_mul(1 << ended.restarts.min(16)).min(LONGEST);
        ended.client = None;
        self.again.push((Instant::now() + pause, ended));
    }

    pub(crate) fn due_again(
        &mut self,
        now: Instant,
        root: Option<BorrowedFd<'_>>,
    ) -> Vec<(Exec, Vec<OwnedFd>)> {
        let (due, later) = std::mem::take(&mut self.again).into_iter().partition(|(at, _)| *at <= now);
        self.again = later;
        let due: Vec<(Instant, Running)> = due;
        due.into_iter().filter_map(|(_, running)| self.begin(running, Vec::new(), root).ok()).collect()
    }

    /// Those whose time is up, each once.
    pub(crate) fn overdue(&mut self, now: Instant) -> Vec<u32> {
        let overdue = self.running.iter_mut().filter(|running| running.deadline.is_some_and(|at| at <= now));
        overdue
            .map(|running| {
                running.deadline = None;
                running.timed_out = true;
                running.number
            })
            .collect()
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let again = self.again.iter().map(|(at, _)| *at);
        self.running.iter().filter_map(|running| running.deadline).chain(again).min()
    }

    // --- logs ---

    fn log(&self, name: &str) -> Result<(Log, Vec<OwnedFd>), DriverError> {
        let folder = self.folder.join("logs");
        let path = folder.join(format!("{name}.log"));
        let open = || -> io::Result<(Log, Vec<OwnedFd>)> {
            fs::create_dir_all(&folder)?;
            let file = File::options().append(true).create(true).open(&path)?;
            let written = file.metadata()?.len();
            let (from, to) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
            rustix::io::ioctl_fionbio(&from, true)?;
            let null = File::open("/dev/null")?;
            let log = Log { path: path.clone(), file, written, from };
            Ok((log, vec![null.into(), to.try_clone()?, to]))
        };
        open().map_err(|source| failed("write the log", &path, source))
    }

    pub(crate) fn logs(&self) -> impl Iterator<Item = (u32, BorrowedFd<'_>)> {
        let open = self.running.iter().filter_map(|running| Some((running.number, running.log.as_ref()?)));
        open.map(|(number, log)| (number, log.from.as_fd()))
    }

    pub(crate) fn pump_logs(&mut self, ready: &[u32]) {
        for running in self.running.iter_mut().filter(|running| ready.contains(&running.number)) {
            if running.log.as_mut().is_some_and(|log| log.pump().is_err()) {
                // Its writers are gone, or the disk is full: it goes on without.
                running.log = None;
            }
        }
    }

    pub(crate) fn drain_logs(&mut self) {
        self.running.iter_mut().filter_map(|running| running.log.as_mut()).for_each(Log::drain);
    }
}

impl Log {
    /// Writes down what there is; an error is the end of it.
    fn pump(&mut self) -> io::Result<()> {
        let mut bytes = [0u8; 64 << 10];
        match rustix::io::read(&self.from, &mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => self.write(&bytes[..length]),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.written >= LOG_BYTES {
            fs::rename(&self.path, self.path.with_extension("log.1"))?;
            self.file = File::options().append(true).create(true).open(&self.path)?;
            self.written = 0;
        }
        self.written += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    /// What is left of a command that has ended; something that it left behind may write on and on.
    fn drain(&mut self) {
        const MOST: usize = 64;
        let mut reads = 0;
        while reads < MOST && is_readable(&self.from) && self.pump().is_ok() {
            reads += 1;
        }
    }
}

fn is_readable(fd: &OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec};
    let mut wait = [PollFd::new(fd, PollFlags::IN)];
    rustix::event::poll(&mut wait, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}
