//! Why something could not be copied.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::driver::DriverError;
use crate::shell;

/// Why something could not be copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// There is nothing at the path.
    #[error("there is no {path:?}")]
    Absent {
        /// The path.
        path: PathBuf,
    },
    /// A path that does not say what it is called, as `..`.
    #[error("{path:?} does not end with a name")]
    NoName {
        /// The path.
        path: PathBuf,
    },
    /// A folder where a file is needed.
    #[error("{path:?} is a folder")]
    IsFolder {
        /// The path.
        path: PathBuf,
    },
    /// Something else where a folder is needed.
    #[error("{path:?} is no folder")]
    NotFolder {
        /// The path.
        path: PathBuf,
    },
    /// A link where what is copied has a folder: it would lead elsewhere.
    #[error("{path:?} is a symbolic link, and nothing is written through links")]
    Link {
        /// The path.
        path: PathBuf,
    },
    /// A FIFO, a socket or a device.
    #[error("{path:?} is no regular file")]
    Special {
        /// The path.
        path: PathBuf,
    },
    /// More bytes than one call carries.
    #[error("{path:?} goes beyond the limit of {limit} bytes")]
    TooLarge {
        /// The file with which the limit was reached.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// More paths than one call carries.
    #[error("{path:?} goes beyond the limit of {limit} files")]
    TooMany {
        /// The folder with which the limit was reached.
        path: PathBuf,
        /// The limit.
        limit: u64,
    },
    /// Folders within folders beyond measure.
    #[error("{path:?} lies more than {limit} folders deep")]
    TooDeep {
        /// The folder.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
    /// A system call failed.
    #[error("{path:?}: {step}: {source}")]
    Step {
        /// What it was about.
        path: PathBuf,
        /// The system call.
        step: &'static str,
        /// Why.
        source: io::Error,
    },
}

// === impl TransferError ===

impl TransferError {
    pub(super) fn step(path: &Path, step: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| match errno {
            Errno::NOENT => Self::Absent { path: path.into() },
            Errno::NOTDIR => Self::NotFolder { path: path.into() },
            Errno::LOOP => Self::Link { path: path.into() },
            Errno::ISDIR => Self::IsFolder { path: path.into() },
            errno => Self::Step { path: path.into(), step, source: errno.into() },
        }
    }

    /// Whether somebody with more rights could do it.
    #[must_use]
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::Step { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }

    /// What the user can do.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Absent { path } | Self::Link { path } | Self::NotFolder { path } => {
                let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
                format!("look what is there: `ls -la {}`", shell::word(parent.unwrap_or(Path::new("."))))
            }
            Self::NoName { path } => {
                format!("write what it is called, or {:?} for what is in it", path.join("."))
            }
            Self::IsFolder { path } => format!("name a file in it, as {:?}", path.join("file")),
            Self::Special { .. } => "redoma sandbox exec ID -- cat".into(),
            Self::TooLarge { .. } | Self::TooMany { .. } | Self::TooDeep { .. } => {
                "copy a part of it at a time, or mount a folder: `redoma sandbox create --mount`".into()
            }
            Self::Step { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "make room where it is written to: `df -h`".into()
                }
                io::ErrorKind::ReadOnlyFilesystem => {
                    "choose a place that the sandbox can write to, as its /tmp".into()
                }
                io::ErrorKind::ResourceBusy => {
                    "choose another place: something is mounted on this one".into()
                }
                _ => "see that it can be read, and its place be written".into(),
            },
        }
    }
}

impl From<TransferError> for DriverError {
    fn from(error: TransferError) -> Self {
        Self::Files { why: error.to_string(), hint: error.hint() }
    }
}
