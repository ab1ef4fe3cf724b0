//! Reading a log, to its end or as it grows.

use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::line::Head;
use crate::lines::Lines;
use crate::store::Home;
use crate::{Digest, Error, Event, SessionId};

/// One record of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Its number, from zero.
    pub seq: u64,
    /// The hash of the line before.
    pub prev: Digest,
    /// When it was written.
    pub at: Timestamp,
    /// What happened.
    pub event: Event,
    json: String,
}

impl Record {
    /// Reads a line, without its line feed. The chain is not checked here: see [`Store::verify`](crate::Store::verify).
    ///
    /// # Errors
    /// What does not fit.
    pub fn parse(line: &[u8]) -> Result<Self, &'static str> {
        let head = Head::parse(line)?;
        let at = head.timestamp().ok_or("there is no such time")?;
        let event = serde_json::from_slice(&head.body()).map_err(|_| "its event is not valid JSON")?;
        let json = str::from_utf8(line).map_err(|_| "it is not UTF-8")?.into();
        Ok(Self { seq: head.chain.seq, prev: head.chain.prev, at, event, json })
    }

    /// The line as it stands in the log: JSON in which everything invisible is escaped.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }
}

/// The records of one log in order. The last item is an error if the log is torn.
pub struct Records {
    lines: Lines<File>,
    path: PathBuf,
    line: u64,
    /// What to wait on at the end, when following.
    growth: Option<Growth>,
    done: bool,
}

/// Tells when a log has grown, and when its writer is gone.
struct Growth {
    inotify: OwnedFd,
    file: File,
    path: PathBuf,
}

/// What there is to do at the end of a log.
#[derive(PartialEq, Eq)]
enum More {
    Read,
    Never,
}

// === impl Records ===

impl Records {
    pub(crate) fn read(home: &Home, session: SessionId) -> Result<Self, Error> {
        let name = Home::file_name(session);
        let file = home.logs.existing(&name, OFlags::RDONLY)?;
        let file = file.ok_or_else(|| Error::NoSession { prefix: session.to_string() })?;
        Ok(Self { lines: Lines::new(file), path: home.logs.path(&name), line: 0, growth: None, done: false })
    }

    pub(crate) fn follow(home: &Home, session: SessionId) -> Result<Self, Error> {
        let mut records = Self::read(home, session)?;
        records.growth =
            Some(Growth::watch(home.logs.file(&Home::file_name(session), OFlags::RDONLY)?, &records.path)?);
        Ok(records)
    }

    fn advance(&mut self) -> Result<Option<Record>, Error> {
        // Once the writer is gone, what it wrote last is still to be read.
        let mut gone = self.growth.is_none();
        loop {
            match self.lines.next_line() {
                Err(source) => return Err(Error::Read { path: self.path.clone(), source }),
                Ok(Some(line)) => {
                    self.line += 1;
                    let wrong = |what| Error::Line { path: self.path.clone(), line: self.line, what };
                    return Record::parse(line).map(Some).map_err(wrong);
                }
                Ok(None) if gone => break,
                Ok(None) => gone = self.growth.as_ref().map_or(Ok(More::Never), Growth::wait)? == More::Never,
            }
        }
        match self.lines.rest().len() {
            0 => Ok(None),
            bytes => Err(Error::Torn { path: self.path.clone(), bytes }),
        }
    }
}

impl Iterator for Records {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.advance().transpose();
        // A line that is no record is passed over: the rest of the log still tells something.
        self.done = !matches!(next, Some(Ok(_) | Err(Error::Line { .. })));
        next
    }
}

// === impl Growth ===

impl Growth {
    fn watch(file: File, path: &Path) -> Result<Self, Error> {
        let failed = |errno: Errno| Error::Watch { path: path.into(), source: errno.into() };
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(failed)?;
        let flags = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::DELETE_SELF;
        inotify::add_watch(&inotify, path, flags).map_err(failed)?;
        Ok(Self { inotify, file, path: path.into() })
    }

    /// Waits until there may be more to read, or the writer is gone.
    ///
    /// The kernel reports the close just before it gives the lock back, so after a close the lock is asked for a few more
    /// times. Nothing is lost if somebody else closed the file: the next write wakes this again.
    fn wait(&self) -> Result<More, Error> {
        if self.writer_is_gone()? {
            return Ok(More::Never);
        }
        let closed = self.next_events(None)?.contains(ReadFlags::CLOSE_WRITE);
        for _ in 0..if closed { 10 } else { 0 } {
            if self.writer_is_gone()? {
                return Ok(More::Never);
            }
            if !self.next_events(Some(10_000_000))?.is_empty() {
                break;
            }
        }
        Ok(More::Read)
    }

    fn writer_is_gone(&self) -> Result<bool, Error> {
        is_unlocked(&self.file).map_err(|errno| Error::Lock { path: self.path.clone(), source: errno.into() })
    }

    /// What happened to the file since the last call; waits at most so many nanoseconds for it.
    fn next_events(&self, nanoseconds: Option<i64>) -> Result<ReadFlags, Error> {
        let failed = |errno: Errno| Error::Watch { path: self.path.clone(), source: errno.into() };
        let timeout = nanoseconds.map(|tv_nsec| Timespec { tv_sec: 0, tv_nsec });
        let ready = poll(&mut [PollFd::new(&self.inotify, PollFlags::IN)], timeout.as_ref());
        if !matches!(ready, Ok(_) | Err(Errno::INTR)) {
            return ready.map(|_| ReadFlags::empty()).map_err(failed);
        }
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        let mut seen = ReadFlags::empty();
        loop {
            match reader.next() {
                Ok(event) => seen |= event.events(),
                Err(Errno::AGAIN | Errno::INTR) => return Ok(seen),
                Err(errno) => return Err(failed(errno)),
            }
        }
    }
}

/// Whether no session holds the lock of its log any more.
pub(crate) fn is_unlocked(file: &File) -> Result<bool, Errno> {
    match flock(file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => flock(file, FlockOperation::Unlock).map(|()| true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(errno) => Err(errno),
    }
}
