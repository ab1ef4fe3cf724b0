//! The store of all sessions' logs.

use std::cmp::Reverse;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::event::SessionMeta;
use crate::folder::Folder;
use crate::id::is_prefix;
use crate::key::Signer;
use crate::log::SessionLog;
use crate::purge::{Purged, is_due, purge};
use crate::read::{Records, is_unlocked};
use crate::summary::{Listed, SessionSummary};
use crate::verify::{Report, verify};
use crate::{Error, SessionId};

/// The logs of all sessions of one user, their ledger, and the keys they are signed with.
pub struct Store {
    home: Arc<Home>,
    signer: OnceLock<Arc<Signer>>,
}

/// The folders.
pub(crate) struct Home {
    pub(crate) logs: Folder,
    pub(crate) keys: Folder,
    /// Whether a signature is on the disk before it counts.
    sync: bool,
}

// === impl Home ===

impl Home {
    pub(crate) fn file_name(session: SessionId) -> String {
        format!("{session}.jsonl")
    }

    pub(crate) fn capture_name(session: SessionId) -> String {
        format!("{session}.pcapng")
    }

    /// Brings what was written to the disk, if that was asked for.
    pub(crate) fn settle(&self, file: &File) -> io::Result<()> {
        if self.sync { file.sync_data() } else { Ok(()) }
    }

    /// The sessions that have a log, in no order.
    pub(crate) fn ids(&self) -> Result<Vec<SessionId>, Error> {
        let id = |name: &String| name.strip_suffix(".jsonl")?.parse().ok();
        Ok(self.logs.names()?.iter().filter_map(id).collect())
    }
}

// === impl Store ===

impl Store {
    /// Opens the store in `state` (its folder `audit`) with the keys in `keys`. Folders that are missing are made,
    /// for their owner only; the key is made by the first session.
    ///
    /// # Errors
    /// [`Error::Folder`]; [`Error::Owner`] or [`Error::Mode`] if somebody else could write there.
    pub fn open(state: &Path, keys: &Path) -> Result<Self, Error> {
        Self::open_with(state, keys, false)
    }

    /// The same store, with every signature on the disk before it counts (`fdatasync(2)`): records then survive a
    /// crash of the machine, not of the keeper alone.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_synced(state: &Path, keys: &Path) -> Result<Self, Error> {
        Self::open_with(state, keys, true)
    }

    fn open_with(state: &Path, keys: &Path, sync: bool) -> Result<Self, Error> {
        let (logs, keys) = (Folder::open(&state.join("audit"))?, Folder::open(keys)?);
        Ok(Self { home: Arc::new(Home { logs, keys, sync }), signer: OnceLock::new() })
    }

    /// Begins the log of a session, with its first record.
    ///
    /// # Errors
    /// Whatever keeps the record from being complete: then nothing may be started.
    pub fn begin(&self, meta: SessionMeta) -> Result<SessionLog, Error> {
        SessionLog::begin(self.home.clone(), self.signer()?, meta)
    }

    /// The one session whose id starts with `prefix`.
    ///
    /// # Errors
    /// [`Error::SessionId`], [`Error::NoSession`] or [`Error::Ambiguous`].
    pub fn find(&self, prefix: &str) -> Result<SessionId, Error> {
        if !is_prefix(prefix) {
            return Err(Error::SessionId { text: prefix.into() });
        }
        let mut found = self.home.ids()?.into_iter().filter(|id| id.as_str().starts_with(prefix));
        match (found.next(), found.next()) {
            (None, _) => Err(Error::NoSession { prefix: prefix.into() }),
            (Some(id), None) => Ok(id),
            (Some(one), Some(other)) => Err(Error::Ambiguous { prefix: prefix.into(), one, other }),
        }
    }

    /// All sessions, the newest first. Only the two ends of each log are read, and the far end only when it is asked for.
    ///
    /// # Errors
    /// [`Error::Read`] or [`Error::Open`] for the folder or a log in it.
    pub fn sessions(&self) -> Result<impl Iterator<Item = Result<SessionSummary, Error>>, Error> {
        let opened = self.home.ids()?.into_iter().map(|id| Listed::open(&self.home, id));
        let mut listed: Vec<Listed> = opened.filter_map(Result::transpose).collect::<Result<_, _>>()?;
        listed.sort_by_key(|log| Reverse(log.started()));
        let home = self.home.clone();
        Ok(listed.into_iter().map(move |log| log.summary(&home)))
    }

    /// Whether a keeper holds the session's log; one without a log does not run.
    ///
    /// # Errors
    /// [`Error::Open`] or [`Error::Lock`].
    pub fn is_running(&self, session: SessionId) -> Result<bool, Error> {
        let name = Home::file_name(session);
        let Some(file) = self.home.logs.existing(&name, OFlags::RDONLY)? else { return Ok(false) };
        let failed = |errno: Errno| Error::Lock { path: self.home.logs.path(&name), source: errno.into() };
        is_unlocked(&file).map(|gone| !gone).map_err(failed)
    }

    /// The records of a session as far as they go now.
    ///
    /// # Errors
    /// [`Error::NoSession`] or [`Error::Open`].
    pub fn read(&self, session: SessionId) -> Result<Records, Error> {
        Records::read(&self.home, session)
    }

    /// The records of a session from its first, waiting for more until its keeper is gone.
    ///
    /// # Errors
    /// [`Error::NoSession`], [`Error::Open`] or [`Error::Watch`].
    pub fn follow(&self, session: SessionId) -> Result<Records, Error> {
        Records::follow(&self.home, session)
    }

    /// An empty file beside the log of a session, for what goes over the wire ([`export::pcapng`](crate::export::pcapng)).
    /// It is no part of the signed record.
    ///
    /// # Errors
    /// [`Error::Open`].
    pub fn begin_capture(&self, session: SessionId) -> Result<File, Error> {
        self.home.logs.file(&Home::capture_name(session), OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
    }

    /// What was captured of a session as far as it goes now; none if nothing was to be.
    ///
    /// # Errors
    /// [`Error::Open`].
    pub fn capture(&self, session: SessionId) -> Result<Option<File>, Error> {
        self.home.logs.existing(&Home::capture_name(session), OFlags::RDONLY)
    }

    /// Checks every log and the ledger.
    ///
    /// # Errors
    /// If something could not be read at all. What is wrong with it is in the report.
    pub fn verify(&self) -> Result<Report, Error> {
        verify(&self.home)
    }

    /// Removes the logs of sessions that ended before `before`, and leaves a signed tombstone of each in the ledger.
    ///
    /// # Errors
    /// As [`Store::begin`] for the ledger; [`Error::Remove`].
    pub fn purge(&self, before: Timestamp) -> Result<Purged, Error> {
        let due = self
            .sessions()?
            .filter(|summary| summary.as_ref().map_or(true, |summary| is_due(summary, before)));
        purge(&self.home, &*self.signer()?, &due.collect::<Result<Vec<_>, _>>()?)
    }

    fn signer(&self) -> Result<Arc<Signer>, Error> {
        if let Some(signer) = self.signer.get() {
            return Ok(signer.clone());
        }
        let signer = Arc::new(Signer::load_or_create(&self.home.keys)?);
        Ok(self.signer.get_or_init(|| signer).clone())
    }
}
