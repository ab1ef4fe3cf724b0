//! The ledger.

use std::collections::HashMap;
use std::fs::File;

use rustix::fs::{FlockOperation, OFlags, flock};

use crate::key::{KeyRing, Purpose};
use crate::ledger::{Anchor, Entry, LEDGER, genesis};
use crate::line::Chain;
use crate::lines::Lines;
use crate::store::Home;
use crate::verify::walk::Walk;
use crate::verify::{Finding, Place, Problem};
use crate::{Digest, Error, SessionId};

/// What the ledger says of one session; an end is the chain behind its last record.
#[derive(Default)]
pub(super) struct Account {
    pub(super) opened: Option<Digest>,
    pub(super) marks: Vec<Chain>,
    pub(super) closed: Option<Chain>,
    pub(super) purged: Option<Chain>,
}

pub(super) struct LedgerCheck {
    pub(super) accounts: HashMap<SessionId, Account>,
    pub(super) findings: Vec<Finding>,
    /// The keys as they were when the ledger was read.
    pub(super) ring: KeyRing,
}

/// The ledger on its way through.
struct Passage {
    walk: Walk,
    ring: KeyRing,
    accounts: HashMap<SessionId, Account>,
    /// Lines that are no record, with their line feeds, until the next record explains them.
    debris: Vec<u8>,
    anchor: Option<Chain>,
    anchored: bool,
}

// === impl Account ===

impl Account {
    /// Whether it tells of records behind `end`, or of the end itself.
    pub(super) fn is_ahead_of(&self, end: &Chain) -> bool {
        self.closed.is_some() || self.marks.iter().any(|mark| mark.seq > end.seq)
    }
}

// === impl LedgerCheck ===

impl LedgerCheck {
    pub(super) fn of(home: &Home) -> Result<Self, Error> {
        let path = || home.logs.path(LEDGER);
        let mut file = home.logs.existing(LEDGER, OFlags::RDONLY)?;
        if file.is_none() && Anchor::read_in(&home.keys)?.is_some() {
            // The first session of all may have begun in between: the ledger comes before its anchor.
            file = home.logs.existing(LEDGER, OFlags::RDONLY)?;
        }
        if let Some(file) = &file {
            // The anchor is written under the same lock.
            let locked = flock(file, FlockOperation::LockShared);
            locked.map_err(|errno| Error::Lock { path: path(), source: errno.into() })?;
        }
        let anchor = Anchor::read_in(&home.keys)?;
        let mut passage = Passage::new(KeyRing::load(&home.keys)?, anchor);
        if let Some(file) = file {
            passage.go(file).map_err(|source| Error::Read { path: path(), source })?;
        }
        Ok(passage.arrive())
    }
}

// === impl Passage ===

impl Passage {
    fn new(ring: KeyRing, anchor: Option<Chain>) -> Self {
        let start = Some(Chain::start(genesis()));
        let walk = Walk::new(Place::Ledger, start);
        Self { walk, ring, accounts: HashMap::new(), debris: Vec::new(), anchor, anchored: anchor == start }
    }

    fn go(&mut self, file: File) -> std::io::Result<()> {
        let mut lines = Lines::new(file);
        while let Some(line) = lines.next_line()? {
            self.step(line);
            if self.walk.is_hopeless() {
                return Ok(());
            }
        }
        self.debris.extend_from_slice(lines.rest());
        if !self.debris.is_empty() {
            let bytes = self.debris.len() as u64;
            let whole = self.debris.ends_with(b"\n");
            self.walk.report(if whole {
                Problem::Malformed("it is no line of a ledger")
            } else {
                Problem::Torn { bytes }
            });
        }
        Ok(())
    }

    fn step(&mut self, line: &[u8]) {
        let Ok(head) = self.walk.step(line) else {
            self.debris.extend_from_slice(line);
            self.debris.push(b'\n');
            return;
        };
        let entry = serde_json::from_slice(&head.body());
        if let Err(what) = self.ring.check(Purpose::Ledger, line) {
            self.walk.report(Problem::Seal(what));
        }
        match entry {
            Ok(entry) => self.enter(&entry, Digest::of(line)),
            Err(_) => self.walk.report(Problem::Malformed("it is no line of a ledger")),
        }
        self.anchored |= self.anchor == self.walk.chain;
    }

    fn enter(&mut self, entry: &Entry, hash_of_line: Digest) {
        self.explain_debris(entry);
        match *entry {
            Entry::Opened { session } => self.account(session).opened = Some(hash_of_line),
            Entry::Marked { session, records, hash } => {
                self.account(session).marks.push(Chain { seq: records, prev: hash });
            }
            Entry::Closed { session, records, hash } => {
                self.account(session).closed = Some(Chain { seq: records, prev: hash });
            }
            Entry::Purged { session, records, hash } => {
                self.account(session).purged = Some(Chain { seq: records, prev: hash });
            }
            Entry::Torn { bytes, .. } => self.walk.report(Problem::Torn { bytes }),
            Entry::Gap { .. } => self.walk.report(Problem::Gap),
        }
    }

    fn account(&mut self, session: SessionId) -> &mut Account {
        self.accounts.entry(session).or_default()
    }

    /// What is no record must be what the writer of this line has found and signed for.
    fn explain_debris(&mut self, entry: &Entry) {
        let debris = std::mem::take(&mut self.debris);
        // The writer adds a line feed to a torn line that has none.
        let bare = debris.strip_suffix(b"\n").unwrap_or(&debris);
        let explained = match *entry {
            Entry::Torn { bytes, hash } => {
                [&debris, bare].iter().any(|d| d.len() as u64 == bytes && Digest::of(d) == hash)
            }
            _ => debris.is_empty(),
        };
        if !explained {
            self.walk.report(Problem::Malformed("what stands before is no line of a ledger"));
        }
    }

    fn arrive(mut self) -> LedgerCheck {
        let empty = self.walk.line == 0;
        let agrees = match self.anchor {
            None => empty,
            Some(_) => self.anchored,
        };
        if !agrees {
            self.walk.findings.push(Finding { place: Place::Ledger, line: None, problem: Problem::Anchor });
        }
        LedgerCheck { accounts: self.accounts, findings: self.walk.findings, ring: self.ring }
    }
}
