//! Removing logs whose retention time is over.

use jiff::Timestamp;
use rustix::fs::OFlags;

use crate::key::Signer;
use crate::ledger::{self, Entry};
use crate::store::Home;
use crate::summary::{SessionState, SessionSummary, Tail};
use crate::{Digest, Error, SessionId};

/// What was purged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// The sessions whose logs were removed.
    pub sessions: Vec<SessionId>,
    /// How much room that made, in bytes.
    pub bytes: u64,
}

/// Whether the log of `summary` may go: nothing in it is younger than `before`, and nobody writes it.
pub(crate) fn is_due(summary: &SessionSummary, before: Timestamp) -> bool {
    let last = summary.last.or(summary.started);
    summary.state != SessionState::Running && last.is_some_and(|last| last < before)
}

/// The tombstones are signed before anything is removed: a log without one never just goes.
pub(crate) fn purge(home: &Home, signer: &Signer, due: &[SessionSummary]) -> Result<Purged, Error> {
    let stones = due.iter().map(|summary| tombstone(home, summary.session)).collect::<Result<Vec<_>, _>>()?;
    if !stones.is_empty() {
        ledger::append(home, signer, &stones)?;
    }
    let mut purged = Purged::default();
    for summary in due {
        purged.bytes += remove_capture(home, summary.session)?;
        home.logs.remove(&Home::file_name(summary.session))?;
        purged.sessions.push(summary.session);
        purged.bytes += summary.bytes;
    }
    Ok(purged)
}

/// How much room that made. It goes first: without its log nothing would lead to it.
fn remove_capture(home: &Home, session: SessionId) -> Result<u64, Error> {
    let name = Home::capture_name(session);
    let Some(file) = home.logs.existing(&name, OFlags::RDONLY)? else { return Ok(0) };
    home.logs.remove(&name)?;
    Ok(file.metadata().map_or(0, |metadata| metadata.len()))
}

fn tombstone(home: &Home, session: SessionId) -> Result<Entry, Error> {
    let name = Home::file_name(session);
    let file = home.logs.file(&name, OFlags::RDONLY)?;
    let tail = Tail::read(&file).map_err(|source| Error::Read { path: home.logs.path(&name), source })?;
    let (records, hash) = tail.chain.map_or((0, Digest::of(b"")), |chain| (chain.seq, chain.prev));
    Ok(Entry::Purged { session, records, hash })
}
