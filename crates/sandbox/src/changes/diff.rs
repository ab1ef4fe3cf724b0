//! What a change changes, for reading.

use std::path::Path;

use redoma_layers::text::{self, Body};
use rustix::fs::{FileType, Stat};

use super::list::{Item, file_type, mode};
use super::{Change, ChangeKind};
use crate::walk::tree::Root;

/// A change with what it changes. Text and link targets come from inside: escape them before a terminal sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileDiff {
    /// The change.
    pub change: Change,
    /// Permission bits before, if there was something.
    pub old_mode: Option<u32>,
    /// Permission bits after, if there is something.
    pub new_mode: Option<u32>,
    /// The content.
    pub body: Body,
}

pub(super) fn diff(lower: &Root, upper: &Root, item: Item) -> FileDiff {
    // A whiteout is the absence of something, not something with a mode.
    let new = item.upper.filter(|_| item.change.kind != ChangeKind::Deleted);
    let body = body(lower, upper, &item.change, item.lower.as_ref(), new.as_ref());
    FileDiff {
        old_mode: item.lower.as_ref().map(mode),
        new_mode: new.as_ref().map(mode),
        change: item.change,
        body,
    }
}

fn body(lower: &Root, upper: &Root, change: &Change, old: Option<&Stat>, new: Option<&Stat>) -> Body {
    let is = |stat: Option<&Stat>, kind| stat.is_some_and(|stat| file_type(stat) == kind);
    let path = &change.path;
    if is(old, FileType::Symlink) || is(new, FileType::Symlink) {
        return Body::Link { old: target(lower, path), new: target(upper, path).filter(|_| new.is_some()) };
    }
    let file = FileType::RegularFile;
    if change.kind == ChangeKind::Mode || !(is(old, file) || is(new, file)) {
        return Body::None;
    }
    let size = |stat: Option<&Stat>| {
        stat.filter(|stat| file_type(stat) == file).map(|stat| u64::try_from(stat.st_size).unwrap_or(0))
    };
    let binary = Body::Binary { old: size(old), new: size(new) };
    let text = |root: &Root, stat| if is(stat, file) { text(root, path) } else { Some(String::new()) };
    match (text(lower, old), text(upper, new)) {
        (Some(before), Some(after)) => {
            Body::Text(text::unified(path, is(old, file), is(new, file), &before, &after))
        }
        _ => binary,
    }
}

fn target(root: &Root, path: &Path) -> Option<Vec<u8>> {
    let (parent, name) = root.parent(path).ok()?;
    rustix::fs::readlinkat(parent, name, Vec::new()).ok().map(std::ffi::CString::into_bytes)
}

fn text(root: &Root, path: &Path) -> Option<String> {
    text::of(std::fs::File::from(root.file(path).ok()?))
}
