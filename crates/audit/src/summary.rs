//! A session in one line, from the two ends of its log.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use jiff::Timestamp;
use rustix::fs::OFlags;

use crate::event::{SessionEnd, SessionMeta};
use crate::ledger::last_record;
use crate::line::{Chain, MAX_LINE};
use crate::read::is_unlocked;
use crate::store::Home;
use crate::{Error, Event, Record, SessionId};

/// What is read first of each end of a log.
const GLANCE: usize = 8 * 1024;

/// A session in one line.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSummary {
    /// Its name.
    pub session: SessionId,
    /// Whether it runs.
    pub state: SessionState,
    /// When it started; `None` if its first record cannot be read.
    pub started: Option<Timestamp>,
    /// When its last whole record was written.
    pub last: Option<Timestamp>,
    /// Its first record.
    pub meta: Option<SessionMeta>,
    /// How it ended, if it did.
    pub end: Option<SessionEnd>,
    /// The number of records.
    pub records: u64,
    /// The size of its log.
    pub bytes: u64,
}

/// Whether a session runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// Its keeper holds the log.
    Running,
    /// It ended, and its log says how.
    Ended,
    /// Its keeper is gone without a last record.
    Unfinished,
}

/// A log that was opened to be listed: its start has been read, its end not yet.
pub(crate) struct Listed {
    session: SessionId,
    file: File,
    first: Option<Record>,
}

// === impl Listed ===

impl Listed {
    /// `None` if the log has been purged meanwhile.
    pub(crate) fn open(home: &Home, session: SessionId) -> Result<Option<Self>, Error> {
        let name = Home::file_name(session);
        let Some(file) = home.logs.existing(&name, OFlags::RDONLY)? else { return Ok(None) };
        let first =
            first_line(&file).map_err(|source| Error::Read { path: home.logs.path(&name), source })?;
        Ok(Some(Self { session, file, first: first.and_then(|line| Record::parse(&line).ok()) }))
    }

    /// The newest first; a log without a readable start last.
    pub(crate) fn started(&self) -> Option<Timestamp> {
        self.first.as_ref().map(|record| record.at)
    }

    pub(crate) fn summary(self, home: &Home) -> Result<SessionSummary, Error> {
        let path = || home.logs.path(&Home::file_name(self.session));
        // The lock comes first: a session that ends in between has then a last record to be found.
        let gone =
            is_unlocked(&self.file).map_err(|errno| Error::Lock { path: path(), source: errno.into() })?;
        let tail = Tail::read(&self.file).map_err(|source| Error::Read { path: path(), source })?;
        let state = match (&tail.end, gone) {
            (Some(_), _) => SessionState::Ended,
            (None, true) => SessionState::Unfinished,
            (None, false) => SessionState::Running,
        };
        let started = self.started();
        let meta = self.first.and_then(|record| match record.event {
            Event::SessionStart(meta) => Some(meta),
            _ => None,
        });
        let Tail { last, chain, end, bytes } = tail;
        let records = chain.map_or(0, |chain| chain.seq);
        Ok(SessionSummary { session: self.session, state, started, last, meta, end, records, bytes })
    }
}

/// The end of a log.
pub(crate) struct Tail {
    last: Option<Timestamp>,
    /// Where a next record would go; `None` if there is not one whole record.
    pub(crate) chain: Option<Chain>,
    end: Option<SessionEnd>,
    pub(crate) bytes: u64,
}

// === impl Tail ===

impl Tail {
    pub(crate) fn read(file: &File) -> io::Result<Self> {
        let bytes = file.metadata()?.len();
        let mut size = GLANCE;
        loop {
            let text = last_bytes(file, bytes, size)?;
            // The last line and the one before, whose first bytes must not be cut off.
            let whole = text.len() as u64 == bytes || memchr::memchr_iter(b'\n', &text).nth(2).is_some();
            if whole || size > 4 * MAX_LINE {
                return Ok(Self::of(&text, bytes));
            }
            size *= 4;
        }
    }

    fn of(text: &[u8], bytes: u64) -> Self {
        // What has no line feed is torn, whatever it looks like.
        let text = &text[..memchr::memrchr(b'\n', text).map_or(0, |at| at + 1)];
        let found = last_record(text);
        let mut lines = text.split(|&byte| byte == b'\n').rev().skip(1).map(|line| Record::parse(line).ok());
        let last = lines.next().flatten();
        let end = match (&last, lines.next().flatten()) {
            (
                Some(Record { event: Event::Checkpoint(_), .. }),
                Some(Record { event: Event::SessionEnd(end), .. }),
            ) => Some(end),
            _ => None,
        };
        Self { last: last.map(|record| record.at), chain: found.map(|(chain, _)| chain), end, bytes }
    }
}

fn last_bytes(file: &File, length: u64, size: usize) -> io::Result<Vec<u8>> {
    let start = length.saturating_sub(size as u64);
    let mut text = vec![0; usize::try_from(length - start).unwrap_or_default()];
    file.read_exact_at(&mut text, start)?;
    Ok(text)
}

fn first_line(file: &File) -> io::Result<Option<Vec<u8>>> {
    let mut text = vec![0; GLANCE];
    let mut filled = 0;
    while filled < MAX_LINE {
        let count = file.read_at(&mut text[filled..], filled as u64)?;
        if let Some(at) = memchr::memchr(b'\n', &text[filled..filled + count]) {
            text.truncate(filled + at);
            return Ok(Some(text));
        }
        if count == 0 {
            return Ok(None);
        }
        filled += count;
        text.resize((filled * 2).max(GLANCE), 0);
    }
    Ok(None)
}
