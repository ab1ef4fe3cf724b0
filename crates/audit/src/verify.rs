//! Whether the record is complete, ordered and unchanged.
//!
//! Every log is walked first and the ledger last, so that whatever a running session does meanwhile is known to the ledger:
//! a session writes its `closed` line before it lets go of its log.

mod ledger;
mod log;
mod report;
mod walk;

pub use report::{Finding, Place, Problem, Report, Severity};

use std::collections::HashSet;

use crate::key::KeyRing;
use crate::store::Home;
use crate::verify::ledger::{Account, LedgerCheck};
use crate::verify::log::LogCheck;
use crate::{Error, SessionId};

pub(crate) fn verify(home: &Home) -> Result<Report, Error> {
    let mut logs = Vec::new();
    let sessions = home.ids()?;
    // A key is older than whatever it signed, so it is enough to look for keys after the logs.
    let ring = KeyRing::load(&home.keys)?;
    for session in sessions {
        logs.extend(LogCheck::of(home, &ring, session)?);
    }
    let ledger = LedgerCheck::of(home)?;
    let ring = &ledger.ring;
    let mut report = Report { keys: ring.ids(), ..Report::default() };
    let walked: HashSet<SessionId> = logs.iter().map(|log| log.session).collect();
    for mut log in logs {
        let account = ledger.accounts.get(&log.session);
        if log.running && account.is_some_and(|account| account.is_ahead_of(&log.chain)) {
            // It went on during the walk. A lock that somebody else holds must not excuse it from being compared.
            let Some(mut again) = LogCheck::of(home, ring, log.session)? else { continue };
            again.running = account.is_some_and(|account| account.closed.is_none());
            log = again;
        }
        if log.bytes == 0 && account.is_none() {
            // A session that is about to begin, or that could not: nothing was ever started in it.
            continue;
        }
        report.sessions += 1;
        report.records += log.chain.seq;
        report.bytes += log.bytes;
        let problems = log.against(account);
        report.findings.extend(log.findings);
        let place = Place::Session(log.session);
        report.findings.extend(problems.into_iter().map(|problem| Finding { place, line: None, problem }));
    }
    for (&session, account) in ledger.accounts.iter().filter(|(session, _)| !walked.contains(session)) {
        report.findings.extend(without_log(home, session, account)?);
    }
    report.findings.extend(ledger.findings);
    report.findings.sort_by_key(|finding| (finding.place, finding.line));
    Ok(report)
}

/// What is wrong about a session that stands in the ledger, but had no log when the logs were walked.
fn without_log(home: &Home, session: SessionId, account: &Account) -> Result<Option<Finding>, Error> {
    let problem = match (account.purged, account.closed) {
        (Some(purged), Some(closed)) if purged != closed => Problem::Differs,
        (Some(_), _) => return Ok(None),
        // It began after the walk.
        (None, _) if home.logs.existing(&Home::file_name(session), rustix::fs::OFlags::RDONLY)?.is_some() => {
            return Ok(None);
        }
        (None, _) => Problem::Missing,
    };
    Ok(Some(Finding { place: Place::Session(session), line: None, problem }))
}
