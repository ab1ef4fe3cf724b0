//! The log of one running session.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use jiff::Timestamp;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use serde::Serialize;

use crate::event::{SessionEnd, SessionMeta};
use crate::folder::Folder;
use crate::key::{Purpose, Signer};
use crate::ledger::{self, Entry};
use crate::line::Chain;
use crate::store::Home;
use crate::{Digest, Error, Event, SessionId};

/// The most records between two signatures.
const CHECKPOINT_EVERY: u64 = 4096;

/// The log of one running session, with its only writer.
///
/// Each record reaches the kernel before [`SessionLog::append`] returns, so that it survives the keeper. After an error of a
/// write the record would have a hole: the log takes nothing more, and the keeper must end the session.
///
/// The file is locked (`flock(2)`) for as long as this value lives, which is how others see that the session runs. The lock
/// belongs to the open file, so a child that is forked without exec must close it.
pub struct SessionLog {
    home: Arc<Home>,
    signer: Arc<Signer>,
    session: SessionId,
    file: File,
    chain: Chain,
    line: Vec<u8>,
    unsigned: u64,
    broken: bool,
}

/// What a finished log came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// The number of records.
    pub records: u64,
    /// The hash of the last one, as it stands in the ledger.
    pub hash: Digest,
}

// === impl SessionLog ===

impl SessionLog {
    /// 1. The file, locked before it has its name, so that whoever sees it sees that it runs. 2. The ledger, after the
    ///    file, so that nothing stands there that never was. 3. The first record.
    pub(crate) fn begin(home: Arc<Home>, signer: Arc<Signer>, meta: SessionMeta) -> Result<Self, Error> {
        let session = meta.session;
        let name = Home::file_name(session);
        let file = create_locked(&home.logs, &name)?;
        let opened = ledger::append(&home, &signer, &[Entry::Opened { session }])
            .inspect_err(|_| drop(home.logs.remove(&name)))?;
        let chain = Chain::start(opened);
        let mut log =
            Self { home, signer, session, file, chain, line: Vec::new(), unsigned: 0, broken: false };
        log.append(&Event::SessionStart(meta))?;
        Ok(log)
    }

    /// The session's name.
    #[must_use]
    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The number of records so far.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.chain.seq
    }

    /// Writes one record. The first and the last kinds are written by [`Store::begin`](crate::Store::begin) and [`SessionLog::end`].
    ///
    /// # Errors
    /// [`Error::Write`] if it could not be written whole, and [`Error::BrokenOff`] from then on; [`Error::TooLong`], after which the
    /// log goes on.
    pub fn append(&mut self, event: &Event) -> Result<(), Error> {
        self.compose(event)?;
        self.commit()?;
        if self.unsigned >= CHECKPOINT_EVERY {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Signs the records so far, here and in the ledger, so that they cannot be cut off unnoticed even if the end is never written.
    ///
    /// # Errors
    /// As [`SessionLog::append`], for the ledger as well.
    pub fn checkpoint(&mut self) -> Result<(), Error> {
        self.sign()?;
        let (session, records, hash) = (self.session, self.chain.seq, self.chain.prev);
        self.enter(Entry::Marked { session, records, hash })
    }

    /// Writes the last record, signs the log and closes it in the ledger.
    ///
    /// # Errors
    /// As [`SessionLog::append`], for the ledger as well.
    pub fn end(mut self, end: SessionEnd) -> Result<Sealed, Error> {
        self.compose(&Event::SessionEnd(end))?;
        self.commit()?;
        self.sign()?;
        let (session, records, hash) = (self.session, self.chain.seq, self.chain.prev);
        self.enter(Entry::Closed { session, records, hash })?;
        Ok(Sealed { records, hash })
    }

    fn sign(&mut self) -> Result<(), Error> {
        #[derive(Serialize)]
        struct Unsealed {
            kind: &'static str,
        }
        self.compose(&Unsealed { kind: "checkpoint" })?;
        self.line.pop();
        self.signer.seal(Purpose::Session(self.session), &mut self.line, 0);
        self.commit()?;
        self.unsigned = 0;
        self.home.settle(&self.file).map_err(|source| self.break_off(source))
    }

    fn enter(&mut self, entry: Entry) -> Result<(), Error> {
        ledger::append(&self.home, &self.signer, &[entry]).map(drop).inspect_err(|_| self.broken = true)
    }

    fn compose(&mut self, record: &impl Serialize) -> Result<(), Error> {
        self.line.clear();
        self.chain.write(&mut self.line, Timestamp::now(), record)
    }

    /// Writes the composed line with one `write(2)`: a log ends between two records, unless the disk is full.
    fn commit(&mut self) -> Result<(), Error> {
        if self.broken {
            return Err(Error::BrokenOff { path: self.path() });
        }
        let mut next = self.chain;
        next.advance(&self.line);
        self.line.push(b'\n');
        self.file.write_all(&self.line).map_err(|source| self.break_off(source))?;
        self.chain = next;
        self.unsigned += 1;
        Ok(())
    }

    fn break_off(&mut self, source: std::io::Error) -> Error {
        self.broken = true;
        Error::Write { path: self.path(), source }
    }

    fn path(&self) -> std::path::PathBuf {
        self.home.logs.path(&Home::file_name(self.session))
    }
}

fn create_locked(logs: &Folder, name: &str) -> Result<File, Error> {
    let draft = format!(".{name}");
    let file = logs.file(&draft, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL)?;
    let locked = flock(&file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|errno| Error::Lock { path: logs.path(name), source: errno.into() });
    let linked = locked.and_then(|()| {
        let exists = |errno: Errno| Error::Open { path: logs.path(name), source: errno.into() };
        logs.link(&draft, name).map_err(exists)
    });
    logs.remove(&draft)?;
    linked.map(|()| file)
}
