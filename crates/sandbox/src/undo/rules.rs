//! What git ignores, as far as files inside the tree say so. Configuration is not asked: a sandbox may have written it.

use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::walk::tree::{as_path, join};

/// Larger ignore files are taken as empty: more is kept then, not less.
pub(super) const SIZE_MAX: u64 = 1 << 20;

/// The rules that hold in one folder: its own, then those of the folders above.
#[derive(Default)]
pub(super) struct Rules {
    own: Vec<Gitignore>,
    above: Option<Arc<Rules>>,
}

impl Rules {
    /// The rules of `folder` (relative), the more binding text first.
    pub(super) fn below(above: &Arc<Self>, folder: &[u8], texts: &[Vec<u8>]) -> Arc<Self> {
        if texts.is_empty() {
            return Arc::clone(above);
        }
        let own = texts.iter().map(|text| parse(folder, text)).collect();
        Arc::new(Self { own, above: Some(Arc::clone(above)) })
    }

    /// Whether git would ignore `rel`, given that it does not ignore the folder it lies in.
    pub(super) fn ignore(&self, rel: &[u8], is_dir: bool) -> bool {
        let path = absolute(rel);
        let mut rules = Some(self);
        while let Some(here) = rules {
            for own in &here.own {
                match own.matched(as_path(&path), is_dir) {
                    Match::Ignore(_) => return true,
                    Match::Whitelist(_) => return false,
                    Match::None => {}
                }
            }
            rules = here.above.as_deref();
        }
        false
    }
}

/// The builder strips its root from what it is asked, byte by byte; a leading slash keeps that exact.
fn absolute(rel: &[u8]) -> Vec<u8> {
    [b"/", rel].concat()
}

/// A line that is no pattern is skipped, as git does.
fn parse(folder: &[u8], text: &[u8]) -> Gitignore {
    let mut builder = GitignoreBuilder::new(as_path(&absolute(folder)));
    for line in String::from_utf8_lossy(text).lines() {
        let _skipped = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// Where the rules of a folder are written, below the project: its own, and for the top git's private list as well.
pub(super) fn sources(folder: &[u8]) -> Vec<Vec<u8>> {
    let mut sources = vec![join(folder, b".gitignore")];
    if folder.is_empty() {
        sources.push(b".git/info/exclude".to_vec());
    }
    sources
}

/// Whether a name holds rules. Such a file is kept even where it ignores itself, as the `*` that tools write into `.venv`
/// and their caches does: an undo that does not know the rules of before takes what they ignored for new, and removes it.
pub(super) fn is_rules(name: &[u8]) -> bool {
    name == b".gitignore"
}

/// Whether a name is git's own folder or file, which no rule ignores.
pub(super) fn is_git(name: &[u8]) -> bool {
    Path::new(".git") == as_path(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearer_rules_win_and_anchors_hold() {
        let top = Rules::below(
            &Arc::default(),
            b"",
            &[b"*.log\n/target\nbuild/\n\\\n".to_vec(), b"private\n".to_vec()],
        );
        let inner = Rules::below(&top, b"a", &[b"!keep.log\n/only-here\n".to_vec()]);
        for ignored in ["x.log", "target", "private", "b/x.log"] {
            assert!(top.ignore(ignored.as_bytes(), true), "{ignored}");
        }
        assert!(!top.ignore(b"a/target", true) && !top.ignore(b"build", false) && top.ignore(b"build", true));
        assert!(inner.ignore(b"a/x.log", false) && !inner.ignore(b"a/keep.log", false));
        assert!(inner.ignore(b"a/only-here", false) && !inner.ignore(b"a/b/only-here", false));
    }
}
