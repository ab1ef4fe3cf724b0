//! One session's log.

use rustix::fs::OFlags;

use crate::key::{KeyRing, Purpose};
use crate::line::Chain;
use crate::lines::Lines;
use crate::read::is_unlocked;
use crate::store::Home;
use crate::verify::ledger::Account;
use crate::verify::walk::Walk;
use crate::verify::{Finding, Place, Problem};
use crate::{Digest, Error, SessionId};

/// What a log says of itself.
pub(super) struct LogCheck {
    pub(super) session: SessionId,
    pub(super) findings: Vec<Finding>,
    /// The end of the log.
    pub(super) chain: Chain,
    pub(super) bytes: u64,
    /// The hash its first record begins with.
    origin: Option<Digest>,
    /// The chain behind each checkpoint.
    marks: Vec<Chain>,
    state: State,
    pub(super) running: bool,
    torn: u64,
}

/// How far a log got.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// The last record is there, its signature not yet.
    Ending,
    Ended,
}

// === impl LogCheck ===

impl LogCheck {
    /// `None` if it has been purged meanwhile.
    pub(super) fn of(home: &Home, ring: &KeyRing, session: SessionId) -> Result<Option<Self>, Error> {
        let name = Home::file_name(session);
        let Some(file) = home.logs.existing(&name, OFlags::RDONLY)? else { return Ok(None) };
        let path = || home.logs.path(&name);
        // The lock comes first: who ends in between is then found complete.
        let unlocked =
            is_unlocked(&file).map_err(|errno| Error::Lock { path: path(), source: errno.into() })?;
        let mut check = Self::new(session, !unlocked);
        let mut walk = Walk::new(Place::Session(session), None);
        let mut lines = Lines::new(file);
        while let Some(line) = lines.next_line().map_err(|source| Error::Read { path: path(), source })? {
            check.bytes += line.len() as u64 + 1;
            check.step(&mut walk, ring, line);
            if walk.is_hopeless() {
                break;
            }
        }
        check.torn = lines.rest().len() as u64;
        check.bytes += check.torn;
        check.chain = walk.chain.unwrap_or(check.chain);
        check.findings = walk.findings;
        Ok(Some(check))
    }

    fn new(session: SessionId, running: bool) -> Self {
        let chain = Chain::start(Digest::of(b""));
        let (findings, marks) = (Vec::new(), Vec::new());
        Self { session, findings, chain, bytes: 0, origin: None, marks, state: State::Open, running, torn: 0 }
    }

    fn step(&mut self, walk: &mut Walk, ring: &KeyRing, line: &[u8]) {
        let head = match walk.step(line) {
            Ok(head) => head,
            Err(what) => return walk.report(Problem::Malformed(what)),
        };
        self.origin.get_or_insert(head.chain.prev);
        let is_seal = head.kind == b"checkpoint";
        if is_seal {
            if let Err(what) = ring.check(Purpose::Session(self.session), line) {
                walk.report(Problem::Seal(what));
            }
            self.marks.extend(walk.chain);
        }
        self.state = match (self.state, head.kind) {
            (State::Open, b"session_end") => State::Ending,
            (State::Open, _) => State::Open,
            (State::Ending, _) if is_seal => State::Ended,
            (state, _) => {
                walk.report(Problem::AfterEnd);
                state
            }
        };
    }

    /// What is wrong about it in the light of the ledger.
    pub(super) fn against(&self, account: Option<&Account>) -> Vec<Problem> {
        let Some(account) = account else { return vec![Problem::Unknown] };
        let mut problems = Vec::new();
        let empty = self.origin.is_none() && account.closed.is_none();
        if !empty && self.origin != account.opened {
            problems.push(Problem::Origin);
        }
        let marked = account.marks.iter().all(|mark| self.marks.contains(mark));
        let closed = account.closed.is_none_or(|end| end == self.chain && self.torn == 0);
        let purged = account.purged.is_none_or(|end| end == self.chain || self.chain.seq == 0);
        if !(marked && closed && purged) {
            problems.push(Problem::Differs);
        }
        if account.purged.is_some() {
            problems.push(Problem::NotRemoved);
        } else if account.closed.is_none() && !self.running {
            problems.extend(self.unfinished());
        }
        problems
    }

    /// What a crash has left.
    fn unfinished(&self) -> Vec<Problem> {
        if self.state == State::Ended && self.torn == 0 {
            return vec![Problem::NotClosed];
        }
        let signed = self.marks.last().map_or(0, |mark| mark.seq);
        let torn = (self.torn > 0).then_some(Problem::Torn { bytes: self.torn });
        torn.into_iter()
            .chain([Problem::Unfinished { unsigned: self.chain.seq.saturating_sub(signed) }])
            .collect()
    }
}
