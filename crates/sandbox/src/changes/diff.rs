//! What a change changes, for reading.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FileType, Stat};
use similar::{Algorithm, TextDiff};

use super::list::{Item, file_type, mode};
use super::{Change, ChangeKind};
use crate::walk::tree::Root;

/// Larger files are summed up like binary ones: nobody reads such a diff.
const TEXT_MAX: u64 = 1 << 20;

/// After this long the rest of a file is shown as replaced: some texts are made to be slow.
const TIME_MAX: Duration = Duration::from_secs(2);

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

/// How content differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Only names, modes or kinds differ.
    None,
    /// A unified diff, with `---` and `+++` lines.
    Text(String),
    /// Sizes in bytes, of what there was and what there is: not text, or too large to be shown.
    Binary {
        /// Before.
        old: Option<u64>,
        /// After.
        new: Option<u64>,
    },
    /// Where a link led and leads; what was no link is missing.
    Link {
        /// Before.
        old: Option<Vec<u8>>,
        /// After.
        new: Option<Vec<u8>>,
    },
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
            Body::Text(unified(path, is(old, file), is(new, file), &before, &after))
        }
        _ => binary,
    }
}

fn unified(path: &Path, had: bool, has: bool, before: &str, after: &str) -> String {
    let name =
        |side, exists| if exists { format!("{side}/{}", path.display()) } else { "/dev/null".to_owned() };
    let diff = TextDiff::configure().algorithm(Algorithm::Myers).timeout(TIME_MAX).diff_lines(before, after);
    diff.unified_diff().header(&name("a", had), &name("b", has)).to_string()
}

fn target(root: &Root, path: &Path) -> Option<Vec<u8>> {
    let (parent, name) = root.parent(path).ok()?;
    rustix::fs::readlinkat(parent, name, Vec::new()).ok().map(std::ffi::CString::into_bytes)
}

/// A file's text: UTF-8 without NUL, of bounded size.
fn text(root: &Root, path: &Path) -> Option<String> {
    let mut content = Vec::new();
    std::fs::File::from(root.file(path).ok()?).take(TEXT_MAX + 1).read_to_end(&mut content).ok()?;
    let is_text = content.len() as u64 <= TEXT_MAX && !content.contains(&0);
    String::from_utf8(content).ok().filter(|_| is_text)
}
