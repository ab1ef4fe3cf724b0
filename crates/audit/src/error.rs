//! What can go wrong, a variant for each step.

use std::io;
use std::path::PathBuf;

use crate::SessionId;

/// A step that failed. After any error of a write the record is incomplete: the session must end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No random bytes.
    #[error("the kernel gave no random bytes: {source}")]
    Random {
        /// The errno of `getrandom(2)`.
        source: io::Error,
    },
    /// Not the shape of a session id.
    #[error("{text:?} is not a session: ten letters a-z or digits 2-7")]
    SessionId {
        /// What was given.
        text: String,
    },
    /// Not 64 lower-case hexadecimal digits.
    #[error("not a BLAKE3 hash: 64 lower-case hexadecimal digits are expected")]
    Digest,
    /// No session of that name.
    #[error("no session {prefix}")]
    NoSession {
        /// What was looked for.
        prefix: String,
    },
    /// More than one session of that name.
    #[error("{prefix} could be {one} or {other}")]
    Ambiguous {
        /// What was looked for.
        prefix: String,
        /// One of those that match.
        one: SessionId,
        /// Another.
        other: SessionId,
    },
    /// A folder could not be made or opened.
    #[error("cannot open the folder {}: {source}", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A folder or file belongs to somebody else.
    #[error("{} belongs to user {owner}, not to you (user {user})", path.display())]
    Owner {
        /// Which.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Who runs this.
        user: u32,
    },
    /// Others may write to a folder, or read the key.
    #[error("others have access to {} (mode {mode:04o})", path.display())]
    Mode {
        /// Which.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
        /// What they should be.
        wanted: u32,
    },
    /// A file could not be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A record could not be written whole.
    #[error("cannot write to {}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A write failed before, and nothing may follow a hole.
    #[error("the log {} is broken off after a failed write", path.display())]
    BrokenOff {
        /// Which.
        path: PathBuf,
    },
    /// A lock could not be had.
    #[error("cannot lock {}: {source}", path.display())]
    Lock {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file could not be watched.
    #[error("cannot watch {}: {source}", path.display())]
    Watch {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file could not be removed.
    #[error("cannot remove {}: {source}", path.display())]
    Remove {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The signing key is not one.
    #[error("{} is not an audit key", path.display())]
    Key {
        /// Which.
        path: PathBuf,
    },
    /// The ledger ends with something that is no line of a ledger.
    #[error("{} is damaged at its end", path.display())]
    Ledger {
        /// Which.
        path: PathBuf,
    },
    /// The last line of a log is not whole, as after a crash or on a full disk.
    #[error("{} breaks off: {bytes} bytes at its end are not a whole record", path.display())]
    Torn {
        /// Which.
        path: PathBuf,
        /// The length of what is there.
        bytes: usize,
    },
    /// A line is not a record.
    #[error("line {line} of {} is not a record: {what}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Counted from one.
        line: u64,
        /// What does not fit.
        what: &'static str,
    },
    /// An event that is longer than a line may be.
    #[error("an event of {bytes} bytes is too long for the log")]
    TooLong {
        /// How long it is.
        bytes: usize,
    },
}

impl Error {
    /// One line that helps when pasted, where there is one.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::SessionId { .. } | Self::NoSession { .. } => "redoma sessions".into(),
            Self::Ambiguous { one, .. } => format!("redoma log {one}"),
            Self::Mode { path, wanted, .. } => format!("chmod {wanted:o} {}", quoted(path)),
            Self::Owner { .. } => "export REDOMA_HOME=\"$HOME/.redoma-$(id -u)\"".into(),
            Self::Write { path, source } if source.kind() == io::ErrorKind::StorageFull => {
                format!("df -h {}", quoted(path))
            }
            // The gap is noted in the next ledger: the anchor with the keys knows how far this one went.
            Self::Key { path } | Self::Ledger { path } => format!("mv {0} {0}.broken", quoted(path)),
            _ => return None,
        })
    }
}

/// A path as a shell takes it.
fn quoted(path: &std::path::Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
