//! What a session changed in a workspace that keeps changes aside (`workspace = "overlay"`), and what becomes of it.
//!
//! The upper folder of an overlay file system (in a user namespace, so with its marks in `user.overlay.*`) was written by
//! the session: every name, mode, link and attribute in it is hostile. What is not a plain file, folder or link within
//! the project is refused by name, and what the user changed meanwhile is a conflict, which only naming it overrules.
//!
//! After overlayfs in the kernel's documentation: a character device 0/0 is a whiteout, `user.overlay.opaque` hides what
//! lies below a folder, `user.overlay.origin` marks what was copied up.

mod apply;
mod diff;
mod list;
mod refuse;
mod select;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::io::Errno;

use crate::walk::Matcher;
use crate::walk::tree::Root;

pub use apply::Applied;
pub use diff::FileDiff;
pub use redoma_layers::text::Body;
pub use select::Selection;

/// A change set: the project, and what a session put over it.
#[derive(Clone, Copy)]
pub struct ChangeSet<'a> {
    /// The lower folder, canonical.
    pub project: &'a Path,
    /// The upper folder.
    pub upper: &'a Path,
    /// When the session started: whatever has changed in the project since is not the session's doing.
    pub began: SystemTime,
    /// The denied and protected paths, which a change set may not touch.
    pub matcher: Matcher<'a>,
}

/// What kind of change it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It is new.
    Added,
    /// A file with other content, and maybe another mode.
    Modified,
    /// It is gone.
    Deleted,
    /// Only the mode differs.
    Mode,
    /// A link that leads elsewhere.
    Link,
    /// A file became a folder, a link a file, and so on.
    Type,
}

/// Why a change is never applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A device node.
    Device,
    /// A named pipe.
    Fifo,
    /// A Unix socket.
    Socket,
    /// It would run with its owner's or group's rights.
    SetId,
    /// A name that is no name.
    Name,
    /// A link that is absolute or leads out of the project.
    LinkOutside(PathBuf),
    /// A file with a name outside the change set.
    HardLink,
    /// It carries a mark of overlayfs that Redoma's mounts never make.
    Mark,
    /// The policy denies or protects the path.
    Policy,
    /// It cannot be read.
    Unreadable,
}

/// Why a change would overwrite somebody else's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// The path in the project was changed or made after the session had started.
    Changed,
    /// The session changed a file that is no longer in the project.
    Vanished,
    /// The folder it belongs in is not there, or is a link or a file: nothing is written through links.
    Parent,
    /// A folder that is to go holds something the session did not know.
    NotEmpty,
}

/// One path of a change set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Relative to the project.
    pub path: PathBuf,
    /// What happened to it.
    pub kind: ChangeKind,
    /// Why it will not be applied, whatever the user says.
    pub refusal: Option<Refusal>,
    /// Why it will not be applied unless it is named.
    pub conflict: Option<Conflict>,
}

/// Why a change set could not be read or applied.
#[derive(Debug, thiserror::Error)]
pub enum ChangesError {
    /// Something in the project or the change set could not be read.
    #[error("cannot read {path:?}: {source}")]
    Read {
        /// The path.
        path: PathBuf,
        /// The kernel's reason.
        source: Errno,
    },
    /// Something in the project could not be written; what was applied before it stays.
    #[error("cannot apply the change to {path:?}: {source}")]
    Apply {
        /// The path.
        path: PathBuf,
        /// The kernel's reason.
        source: Errno,
    },
    /// The change set could not be removed.
    #[error("cannot discard the changes in {path:?}: {source}")]
    Discard {
        /// The upper folder.
        path: PathBuf,
        /// The kernel's reason.
        source: Errno,
    },
    /// More changes than anybody can look through.
    #[error("the change set in {path:?} has more than {limit} entries")]
    TooMany {
        /// The upper folder.
        path: PathBuf,
        /// The bound.
        limit: usize,
    },
    /// A pattern that names no paths.
    #[error("{pattern:?} is no path or pattern: {reason}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl ChangesError {
    /// What the user can do.
    pub fn hint(&self) -> String {
        match self {
            Self::Read { path, .. } => format!("see that {path:?} can be read"),
            Self::Apply { path, .. } => {
                format!("see that {path:?} can be written, then apply again: it goes on there")
            }
            Self::Discard { path, .. } => format!("rm -rf {path:?}"),
            Self::TooMany { .. } => "redoma changes discard".to_owned(),
            Self::Pattern { .. } => "redoma changes list".to_owned(),
        }
    }
}

impl ChangeSet<'_> {
    /// All changes, in path order.
    ///
    /// # Errors
    /// When a folder cannot be read, or the change set is beyond bounds.
    pub fn list(&self) -> Result<Vec<Change>, ChangesError> {
        let (lower, upper) = self.open()?;
        let items = list::list(self, &lower, &upper)?;
        Ok(items.into_iter().map(|item| item.change).collect())
    }

    /// The selected changes with what they change, in path order.
    ///
    /// # Errors
    /// As [`ChangeSet::list`].
    pub fn diff(&self, selection: &Selection) -> Result<Vec<FileDiff>, ChangesError> {
        let (lower, upper) = self.open()?;
        let items = list::list(self, &lower, &upper)?;
        let selected = items.into_iter().filter(|item| selection.has(&item.change.path));
        Ok(selected.map(|item| diff::diff(&lower, &upper, item)).collect())
    }

    /// Applies the selected changes. Refused ones are skipped and named, and so are conflicts, except for those that
    /// `force` names.
    ///
    /// # Errors
    /// When a write fails; everything before it is applied, each file as a whole or not at all.
    pub fn apply(&self, selection: &Selection, force: &Selection) -> Result<Applied, ChangesError> {
        let (lower, upper) = self.open()?;
        let items = list::list(self, &lower, &upper)?;
        apply::apply(&lower, &upper, items, selection, force)
    }

    /// Removes the change set and leaves an empty one.
    ///
    /// # Errors
    /// When something cannot be removed; what was removed before it is gone.
    pub fn discard(&self) -> Result<(), ChangesError> {
        let upper = open(self.upper)?;
        list::empty(&upper).map_err(|source| ChangesError::Discard { path: self.upper.to_path_buf(), source })
    }

    fn open(&self) -> Result<(Root, Root), ChangesError> {
        Ok((open(self.project)?, open(self.upper)?))
    }
}

fn open(path: &Path) -> Result<Root, ChangesError> {
    Root::open(path).map_err(|source| ChangesError::Read { path: path.to_path_buf(), source })
}

/// Lists a change set that is nothing but hostile: for the fuzz target.
#[doc(hidden)]
pub fn fuzz(project: &Path, upper: &Path) {
    let set = ChangeSet { project, upper, began: SystemTime::UNIX_EPOCH, matcher: &|_, _| None };
    let all = Selection::all();
    let _listed = set.list().and_then(|_| set.diff(&all)).and_then(|_| set.apply(&all, &Selection::none()));
}
