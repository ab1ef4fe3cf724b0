//! What is left to do when a keeper is killed: a session's end is when what it left where nothing may be is moved away,
//! and repositories it made are judged.
//!
//! A keeper notes, before the command starts, what it will compare with then, and removes the note when that is done. Of
//! a killed one the janitor finds the note, and where that is gone as well, the next session or `redoma doctor --gc`:
//! before anybody takes what the session made for what had been there.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use redoma_audit::event::{Outcome, Usage};
use redoma_audit::{SessionId, Store};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, PidfdFlags};
use serde::{Deserialize, Serialize};

use crate::error::RunError;
use crate::folder;
use crate::gitguard::{self, Before, Ground};
use crate::homes::Homes;
use crate::kept::{Kept, folder_of};
use crate::quarantine::{Expected, Quarantined, Watch};
use crate::record::RunRecord;
use crate::walk::tree;

/// How long the kernel may take to end a session's processes after its keeper's.
const PATIENCE: Duration = Duration::from_secs(10);

/// All that the end of a session needs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Unfinished {
    /// Nanoseconds since 1970.
    noted: i64,
    init: Init,
    ground: Ground,
    git: Before,
    /// Denied and protected paths that did not exist.
    expected: Vec<Expected>,
}

/// A process that has ended when all the others inside have.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Init {
    pid: i32,
    /// When it started, in ticks since boot: numbers are given again.
    started: Option<u64>,
}

/// A note that was written down, to be removed.
#[derive(Debug)]
pub(crate) struct Noted(PathBuf);

/// What was done for a session whose keeper was killed.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The session.
    pub(crate) session: SessionId,
    /// What it had left where nothing may be.
    pub(crate) quarantined: Vec<Quarantined>,
    /// What nobody could look at.
    pub(crate) notes: Vec<String>,
}

// === impl Unfinished ===

impl Unfinished {
    pub(crate) fn of(init: Pid, ground: Ground, git: &Before, watch: Option<&Watch>) -> Self {
        let pid = init.as_raw_nonzero().get();
        let expected = watch.map(Watch::expected).unwrap_or_default();
        let init = Init { pid, started: started(pid) };
        Self { noted: tree::now(), init, ground, git: git.clone(), expected }
    }

    /// Writes it down, whole or not at all.
    pub(crate) fn note(&self, homes: &Homes, session: SessionId) -> io::Result<Noted> {
        let path = note_of(homes, session);
        let folder = homes.unfinished();
        folder::private(&folder)?;
        let new = folder.join(format!(".{session}"));
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        fs::rename(&new, &path)?;
        Ok(Noted(path))
    }

    /// Nothing of a session outlives the boot it began in.
    fn until(&self) -> Option<i64> {
        booted().filter(|booted| *booted > self.noted)
    }

    fn finish(self, quarantine: &Path, finished: &mut Finished) {
        let until = self.until();
        let roots: Vec<_> = self.ground.existing().into_iter().filter(|path| path.is_dir()).collect();
        let within = |one: &&Expected| roots.iter().any(|root| one.path().starts_with(root));
        let expected: Vec<_> = self.expected.iter().filter(within).cloned().collect();
        match Watch::again(&roots, &expected, until, quarantine) {
            Ok(mut watch) => finished.quarantined.extend(watch.sweep()),
            Err(error) => finished.notes.push(error.to_string()),
        }
        let judged = gitguard::judge_noted(&self.ground, &self.git.ended_by(until), &quarantine.join("git"));
        finished.quarantined.extend(judged.quarantined);
        finished.notes.extend(judged.notes);
    }
}

// === impl Noted ===

impl Noted {
    /// The end was as it should be.
    pub(crate) fn remove(self) -> io::Result<()> {
        fs::remove_file(self.0)
    }
}

// === impl Finished ===

impl Finished {
    /// For the user of the next session.
    pub(crate) fn told(&self) -> Vec<String> {
        let moved = (!self.quarantined.is_empty()).then(|| {
            let paths: Vec<_> = self.quarantined.iter().map(|one| one.path.display().to_string()).collect();
            format!(
                "session {} was killed before its end; only now this was moved into quarantine: {}",
                self.session,
                paths.join(", ")
            )
        });
        moved.into_iter().chain(self.notes.iter().cloned()).collect()
    }
}

// === impl Init ===

impl Init {
    fn wait_for_end(self) -> bool {
        let Some(pid) = Pid::from_raw(self.pid) else { return true };
        let Ok(process) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return true };
        if started(self.pid) != self.started {
            return true;
        }
        let patience = Timespec::try_from(PATIENCE).ok();
        // Readable once it has ended; process 1 of a namespace ends after all the others in it. See pidfd_open(2).
        rustix::event::poll(&mut [PollFd::new(&process, PollFlags::IN)], patience.as_ref()) == Ok(1)
    }
}

/// Field 22 of proc_pid_stat(5); the name before it may hold anything.
fn started(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// `btime` of proc_stat(5), in nanoseconds since 1970.
fn booted() -> Option<i64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let seconds: i64 = stat.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()?;
    Some(tree::nanos(seconds, 0))
}

/// Ends what killed keepers did not, of all sessions that do not run.
///
/// # Errors
/// When the record cannot be read, so that nobody knows which sessions run, or not be written.
pub(crate) fn finish_all(homes: &Homes) -> Result<Vec<Finished>, RunError> {
    let mut all = Vec::new();
    let noted = noted(homes);
    if noted.is_empty() {
        return Ok(all);
    }
    let store = Store::open(homes.state(), &homes.keys())?;
    for session in noted {
        if !store.is_running(session)? {
            all.extend(finish(homes, session)?);
        }
    }
    Ok(all)
}

/// Ends what the session's keeper, which is gone, did not; none where nothing was left to do, or somebody else did it.
///
/// # Errors
/// When the note cannot be taken away, or what was found not be written into the record.
pub(crate) fn finish(homes: &Homes, session: SessionId) -> Result<Option<Finished>, RunError> {
    let path = note_of(homes, session);
    let Some(file) = claim(&path).map_err(|source| failed(&path, source))? else { return Ok(None) };
    let mut finished = Finished { session, quarantined: Vec::new(), notes: Vec::new() };
    match serde_json::from_reader::<_, Unfinished>(io::BufReader::new(&file)) {
        Ok(unfinished) if !unfinished.init.wait_for_end() => {
            finished.notes.push(format!("process {} of session {session} does not end", unfinished.init.pid));
            return Ok(Some(finished));
        }
        Ok(unfinished) => unfinished.finish(&folder_of(homes, session).join("quarantine"), &mut finished),
        Err(error) => finished.notes.push(format!("the notes of session {session} cannot be read: {error}")),
    }
    fs::remove_file(&path).map_err(|source| failed(&path, source))?;
    record(homes, &finished)?;
    Ok(Some(finished))
}

/// Ends the session of this process's own keeper, as its janitor: the moment that it ended is now, which tells an undo
/// what the user did later.
pub(crate) fn finish_own(homes: &Homes, session: SessionId) -> Result<(), RunError> {
    let Some(_finished) = finish(homes, session)? else { return Ok(()) };
    match Kept::load(homes, session) {
        Ok(mut kept) if kept.ended.is_none() => {
            kept.end(homes).map_err(|source| failed(&homes.sessions(), source))
        }
        _ => Ok(()),
    }
}

/// What was found goes into a log of its own: that of the session ended with its keeper.
fn record(homes: &Homes, finished: &Finished) -> Result<(), RunError> {
    if finished.quarantined.is_empty() {
        return Ok(());
    }
    let store = Store::open(homes.state(), &homes.keys())?;
    let mut record = RunRecord::begin_finish(&store, SessionId::random()?, finished.session)?;
    finished.quarantined.iter().try_for_each(|found| record.quarantined(found))?;
    record.end(Outcome::Exited { code: 0 }, Usage::default())
}

/// Opens a note and keeps others from it as long as it is held. None if it is gone, or was while this waited.
fn claim(path: &Path) -> io::Result<Option<File>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    flock(&file, FlockOperation::LockExclusive)?;
    Ok((rustix::fs::fstat(&file)?.st_nlink > 0).then_some(file))
}

fn noted(homes: &Homes) -> Vec<SessionId> {
    let entries = fs::read_dir(homes.unfinished()).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".json")?.parse().ok()).collect()
}

fn note_of(homes: &Homes, session: SessionId) -> PathBuf {
    homes.unfinished().join(format!("{session}.json"))
}

fn failed(path: &Path, source: io::Error) -> RunError {
    RunError::Prepare { what: "the session's notes", path: path.to_owned(), source }
}
