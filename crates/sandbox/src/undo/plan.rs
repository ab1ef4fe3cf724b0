//! What an undo would do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::manifest::{Entry, Manifest, Node};
use super::scan::{self, Scope};
use super::store::Store;
use super::{Backup, Limits, UndoError};
use crate::walk::tree::{self, Root};

/// What an undo does with one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is gone and comes back.
    Restore,
    /// It is something else, or has other content, and becomes what it was.
    Replace,
    /// Its mode or owner changes back.
    Mode,
    /// It is new and goes.
    Remove,
}

/// One path of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Relative to the project; empty for the project's own folder.
    pub path: PathBuf,
    /// What happens to it.
    pub action: Action,
    /// It was changed after the session had ended, so by somebody else: what they did is undone, too.
    pub changed_later: bool,
}

/// What an undo would do, in path order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The steps; none if the project is as it was.
    pub steps: Vec<Step>,
    /// Files and folders that git ignores, which stay as they are.
    pub ignored: u64,
}

/// Compares the project with a kept state. Nothing is changed. `ended` is when the session ended, if it has.
///
/// # Errors
/// If the state is kept no more, or the project cannot be read.
pub fn plan(backup: &Backup, ended: Option<SystemTime>) -> Result<Plan, UndoError> {
    let store = Store::open(&backup.store)?;
    let manifest = backup.load(&store)?;
    if !backup.project.exists() {
        let nothing = Manifest::default();
        let steps = compare(None, &manifest, &nothing)?;
        return Ok(Plan { steps: steps.iter().map(|step| step.public(None)).collect(), ignored: 0 });
    }
    let root = super::open(&backup.project)?;
    let scope = Scope::Kept { manifest: &manifest, store: &store, unlock: false };
    let limits = Limits { files: u64::MAX, ..Limits::default() };
    let present = scan::scan(&root, &scope, Some(&manifest), &limits)?;
    let ended = ended.and_then(|ended| ended.duration_since(SystemTime::UNIX_EPOCH).ok());
    let ended = ended.and_then(|ended| i64::try_from(ended.as_nanos()).ok());
    let steps = compare(Some(&root), &manifest, &present)?;
    Ok(Plan { steps: steps.iter().map(|step| step.public(ended)).collect(), ignored: present.ignored })
}

impl Backup {
    pub(super) fn load(&self, store: &Store) -> Result<Manifest, UndoError> {
        let gone = || UndoError::Gone { project: self.project.clone(), generation: self.generation };
        store.load(self.generation).ok_or_else(gone)
    }
}

/// A step with what is kept and what is there.
pub(super) struct Difference<'a> {
    pub(super) action: Action,
    pub(super) kept: Option<&'a Entry>,
    pub(super) present: Option<&'a Entry>,
}

impl Difference<'_> {
    pub(super) fn rel(&self) -> &Path {
        let entry = self.kept.or(self.present);
        entry.map_or(Path::new(""), |entry| tree::as_path(&entry.rel))
    }

    pub(super) fn public(&self, ended: Option<i64>) -> Step {
        let later = |entry: &Entry| ended.is_some_and(|ended| entry.identity.ctime > ended);
        Step {
            path: self.rel().to_path_buf(),
            action: self.action,
            changed_later: self.present.is_some_and(later),
        }
    }
}

/// All differences, in path order. Content whose hash is not known is read, from `root`.
pub(super) fn compare<'a>(
    root: Option<&Root>,
    kept: &'a Manifest,
    present: &'a Manifest,
) -> Result<Vec<Difference<'a>>, UndoError> {
    let mut pairs: BTreeMap<&[u8], (Option<&Entry>, Option<&Entry>)> = BTreeMap::new();
    for entry in &kept.entries {
        pairs.entry(&entry.rel).or_default().0 = Some(entry);
    }
    for entry in &present.entries {
        pairs.entry(&entry.rel).or_default().1 = Some(entry);
    }
    let mut differences = Vec::new();
    for (kept, present) in pairs.into_values() {
        if let Some(action) = action(root, kept, present)? {
            differences.push(Difference { action, kept, present });
        }
    }
    Ok(differences)
}

fn action(
    root: Option<&Root>,
    kept: Option<&Entry>,
    present: Option<&Entry>,
) -> Result<Option<Action>, UndoError> {
    let (kept, present) = match (kept, present) {
        (Some(kept), Some(present)) => (kept, present),
        (Some(_), None) => return Ok(Some(Action::Restore)),
        (None, Some(_)) => return Ok(Some(Action::Remove)),
        (None, None) => return Ok(None),
    };
    if !same_content(root, kept, present)? {
        return Ok(Some(Action::Replace));
    }
    let attributes = |entry: &Entry| (entry.mode, entry.uid, entry.gid);
    // A link's mode means nothing on Linux, and its owner only for who may remove it from a sticky folder.
    let is_link = matches!(kept.node, Node::Link(_));
    Ok((!is_link && attributes(kept) != attributes(present)).then_some(Action::Mode))
}

fn same_content(root: Option<&Root>, kept: &Entry, present: &Entry) -> Result<bool, UndoError> {
    let (Node::File { size, hash }, Node::File { size: size_now, hash: hash_now }) =
        (&kept.node, &present.node)
    else {
        return Ok(kept.node == present.node);
    };
    let (Some(root), None, true) = (root, hash_now, size == size_now) else {
        return Ok(size == size_now && hash == hash_now);
    };
    let path = || root.path().join(tree::as_path(&present.rel));
    let read = scan::hash(root, &present.rel).map_err(|source| UndoError::Keep { path: path(), source })?;
    Ok(read.is_some() && read == *hash)
}
