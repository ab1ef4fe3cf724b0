//! What verification found.

use std::fmt;

use crate::SessionId;

/// What verification found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The number of logs.
    pub sessions: u64,
    /// The number of whole records in them.
    pub records: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// The names of the keys that signatures were checked with: compare them with what was noted elsewhere.
    pub keys: Vec<String>,
    /// What is wrong, by place.
    pub findings: Vec<Finding>,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where.
    pub place: Place,
    /// The line, counted from one.
    pub line: Option<u64>,
    /// What.
    pub problem: Problem,
}

/// Where something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the ledger.
    Ledger,
    /// In a session's log.
    Session(SessionId),
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The record is whole; something about it is odd.
    Odd,
    /// The record breaks off, as a crash or a full disk leaves it.
    Incomplete,
    /// The record was changed after it was written.
    Tampered,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Problem {
    /// A line is not a record.
    Malformed(&'static str),
    /// Lines are missing, repeated or in another order.
    Order {
        /// The number it should have.
        expected: u64,
        /// The number it has.
        found: u64,
    },
    /// The line before is not the one this was written after.
    Chain,
    /// A signature does not hold.
    Seal(&'static str),
    /// A log does not begin where the ledger opened it.
    Origin,
    /// There are records behind the end.
    AfterEnd,
    /// A log differs from what the ledger says of it.
    Differs,
    /// A log is gone without having been purged.
    Missing,
    /// A log is in no ledger.
    Unknown,
    /// The ledger's end was cut off or exchanged: the anchor beside the keys knows another one.
    Anchor,
    /// A session found that the ledger had been cut off before it.
    Gap,
    /// Too much is wrong to go on in this file.
    TooMany,
    /// The last line is not whole.
    Torn {
        /// The length of what there is.
        bytes: u64,
    },
    /// The session's keeper is gone without a last record.
    Unfinished {
        /// The number of records behind the last signature.
        unsigned: u64,
    },
    /// A session ended, but its keeper did not get to say so in the ledger.
    NotClosed,
    /// A log is still there although it was purged.
    NotRemoved,
    /// The clock was set back between two records.
    Clock,
}

// === impl Report ===

impl Report {
    /// The worst finding, or `None` if all is well.
    #[must_use]
    pub fn severity(&self) -> Option<Severity> {
        self.findings.iter().map(|finding| finding.problem.severity()).max()
    }

    /// Whether nothing was changed after it was written.
    #[must_use]
    pub fn is_untampered(&self) -> bool {
        self.severity() < Some(Severity::Tampered)
    }
}

// === impl Problem ===

impl Problem {
    /// How bad it is.
    #[must_use]
    pub fn severity(&self) -> Severity {
        match self {
            Self::Clock | Self::NotRemoved => Severity::Odd,
            Self::Torn { .. } | Self::Unfinished { .. } | Self::NotClosed => Severity::Incomplete,
            _ => Severity::Tampered,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(what) => write!(f, "not a record: {what}"),
            Self::Order { expected, found } => write!(f, "record {found} stands where {expected} belongs"),
            Self::Chain => f.write_str("the line before was changed, or this one belongs elsewhere"),
            Self::Seal(what) => write!(f, "not signed: {what}"),
            Self::Origin => f.write_str("the log does not begin where the ledger opened it"),
            Self::AfterEnd => f.write_str("there are records behind the end"),
            Self::Differs => f.write_str("the log is not the one the ledger closed or marked"),
            Self::Missing => f.write_str("the log is gone and was never purged"),
            Self::Unknown => f.write_str("the log is in no ledger"),
            Self::Anchor => f.write_str("the end of the ledger was cut off or exchanged"),
            Self::Gap => f.write_str("the ledger had been cut off or exchanged before this line"),
            Self::TooMany => f.write_str("too much is wrong to go on here"),
            Self::Torn { bytes } => write!(f, "breaks off: {bytes} bytes are not a whole record"),
            Self::Unfinished { unsigned } => {
                write!(f, "the keeper was gone before the end; the last {unsigned} records are not signed")
            }
            Self::NotClosed => f.write_str("the session ended, but was not closed in the ledger"),
            Self::NotRemoved => f.write_str("the log was purged, but is still there"),
            Self::Clock => f.write_str("the clock was set back"),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ledger => f.write_str("ledger"),
            Self::Session(session) => session.fmt(f),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.place, self.problem),
            None => write!(f, "{}: {}", self.place, self.problem),
        }
    }
}
