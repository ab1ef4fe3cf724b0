//! What can go wrong, a variant for each step.

use std::io;
use std::path::PathBuf;

/// A step that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder of a layer cannot be opened.
    #[error("cannot open the layer {path:?}: {source}")]
    Open {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Something in a layer cannot be read.
    #[error("cannot read {path:?}: {step}: {source}")]
    Read {
        /// Which, with the layer's folder.
        path: PathBuf,
        /// The system call.
        step: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Something in a copy cannot be made.
    #[error("cannot make {path:?}: {step}: {source}")]
    Write {
        /// Which, with the copy's folder.
        path: PathBuf,
        /// The system call.
        step: &'static str,
        /// Why.
        source: io::Error,
    },
    /// Something in a layer cannot be removed.
    #[error("cannot remove all of {path:?}: {source}")]
    Remove {
        /// The layer.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A mark of overlayfs which says that content or names are somewhere else than they seem to be.
    #[error("{path:?} has the attribute {mark:?}, which Redoma's mounts never make")]
    Mark {
        /// Which, with the layer's folder.
        path: PathBuf,
        /// The attribute.
        mark: String,
    },
    /// More than can be looked through.
    #[error("there are more than {limit} {what} in {path:?}")]
    TooMany {
        /// The topmost layer.
        path: PathBuf,
        /// Of what.
        what: &'static str,
        /// The bound.
        limit: u64,
    },
    /// Something is not any more what it was a moment ago.
    #[error("{path:?} was changed while it was read")]
    Changed {
        /// Which, with the layer's folder.
        path: PathBuf,
    },
    /// The archive cannot be written.
    #[error("cannot write the archive at {path:?}: {source}")]
    Output {
        /// What was to be written next.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Error {
    /// What the user can do.
    pub fn hint(&self) -> String {
        match self {
            Self::Open { .. } => "run `redoma doctor`: what a sandbox was made from is not there".into(),
            Self::Read { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "do it as the user who made the sandbox".into()
            }
            Self::Read { source, .. } if source.raw_os_error() == Some(36) => {
                "remove the folder inside the sandbox: its path is longer than 4096 bytes".into()
            }
            Self::Read { path, .. } => format!("see that {path:?} can be read, and try again"),
            Self::Write { .. } => "make room on the disk (`df -h`, `df -i`), and try again".into(),
            Self::Remove { path, .. } => format!("sudo rm -rf {path:?}"),
            Self::Mark { .. } => "remove the sandbox: somebody outside of it changed its files".into(),
            Self::TooMany { .. } => "remove files inside the sandbox, and try again".into(),
            Self::Changed { .. } => "pause the sandbox, and try again".into(),
            Self::Output { .. } => "see that there is room where the archive goes, and try again".into(),
        }
    }
}
