//! What differs between two chains.

use std::path::{Path, PathBuf};

use crate::beneath::as_path;
use crate::compare::{same_attributes, same_content};
use crate::text::{self, Body};
use crate::tree::{Folder, Found, Parts, Tree, within};
use crate::{Entry, Error, Kind};

/// More changes than anybody can look through.
const CHANGES_MAX: usize = 1_000_000;

/// Bytes of all unified diffs together; what comes after is summed up like binary files.
const TEXT_MAX: usize = 64 << 20;

/// How a path differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It is in the second chain only.
    Added,
    /// It is in the first chain only.
    Removed,
    /// Its content differs: bytes of a file, target of a link, numbers of a device. Its mode may differ as well.
    Modified,
    /// Mode, owner or attributes differ, and nothing else.
    Attributes,
    /// It is another kind of thing.
    Type,
}

/// What a path is on one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Its kind.
    pub kind: Kind,
    /// Permission bits with set-id and sticky bits.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// Bytes, of files and links.
    pub size: u64,
}

/// One path that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Relative to the root; empty for the root itself. Bytes that a sandbox chose: escape it before a terminal sees it.
    pub path: PathBuf,
    /// How it differs.
    pub kind: ChangeKind,
    /// What it is in the first chain.
    pub before: Option<Facts>,
    /// What it is in the second chain.
    pub after: Option<Facts>,
    /// What differs, if that was asked for.
    pub body: Body,
}

/// All paths that differ between what two chains show, in order; with `content`, also how their text does.
///
/// Layers that both chains have below all others are not read, but for names that layers above them have too. Everything below a
/// folder that is added or removed is listed.
///
/// # Errors
/// Those of reading the layers; [`Error::TooMany`] beyond a million changes.
pub fn diff(a: &[PathBuf], b: &[PathBuf], content: bool) -> Result<Vec<Change>, Error> {
    let (a, b) = (Tree::open(a)?, Tree::open(b)?);
    let mut comparison = Comparison { content, changes: Vec::new(), text: 0, seen: 0, folders: Vec::new() };
    let whole =
        |tree: &Tree| Ok::<_, Error>(tree.root()?.map(|entry| Found { entry, parts: tree.chain().clone() }));
    comparison.pair(whole(&a)?, whole(&b)?)?;
    comparison.run()?;
    comparison.changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(comparison.changes)
}

struct Comparison {
    content: bool,
    changes: Vec<Change>,
    text: usize,
    seen: u64,
    /// Folders to look into, with their parts on both sides.
    folders: Vec<(PathBuf, Parts, Parts)>,
}

/// How many layers at the end of both lists are the same.
fn common(a: &Parts, b: &Parts) -> usize {
    a.iter().rev().zip(b.iter().rev()).take_while(|(one, other)| one.id == other.id).count()
}

impl Comparison {
    fn run(&mut self) -> Result<(), Error> {
        while let Some((path, a, b)) = self.folders.pop() {
            self.folder(&path, &a, &b)?;
        }
        Ok(())
    }

    /// Names that only the parts common to both sides have lead to the same on both.
    fn folder(&mut self, path: &Path, a: &Parts, b: &Parts) -> Result<(), Error> {
        let common = common(a, b);
        let (before, after) = (Folder::open(path, a)?, Folder::open(path, b)?);
        let mut names = before.names(a.len() - common)?;
        names.extend(after.names(b.len() - common)?);
        for name in names.keys() {
            self.seen += 1;
            within(if a.is_empty() { b } else { a }, self.seen)?;
            let name = as_path(name).as_os_str();
            self.pair(before.find(name)?, after.find(name)?)?;
        }
        Ok(())
    }

    fn pair(&mut self, before: Option<Found>, after: Option<Found>) -> Result<(), Error> {
        let kind = match (&before, &after) {
            (None, None) => return Ok(()),
            (None, Some(_)) => Some(ChangeKind::Added),
            (Some(_), None) => Some(ChangeKind::Removed),
            (Some(before), Some(after)) => compare(&before.entry, &after.entry)?,
        };
        let entries = (before.as_ref().map(|found| &found.entry), after.as_ref().map(|found| &found.entry));
        if let Some(kind) = kind {
            self.report(kind, entries.0, entries.1)?;
        }
        let path = entries.0.or(entries.1).map(|entry| entry.path.clone()).unwrap_or_default();
        let parts = |found: Option<Found>| found.map(|found| found.parts).unwrap_or_default();
        let (a, b) = (parts(before), parts(after));
        if common(&a, &b) < a.len().max(b.len()) {
            self.folders.push((path, a, b));
        }
        Ok(())
    }

    fn report(
        &mut self,
        kind: ChangeKind,
        before: Option<&Entry>,
        after: Option<&Entry>,
    ) -> Result<(), Error> {
        let Some(one) = before.or(after) else { return Ok(()) };
        if self.changes.len() == CHANGES_MAX {
            let path = one.layer.path().to_path_buf();
            return Err(Error::TooMany { path, what: "changes", limit: CHANGES_MAX as u64 });
        }
        let shown = self.content && kind != ChangeKind::Attributes;
        let body = if shown { self.body(before, after)? } else { Body::None };
        self.changes.push(Change {
            path: one.path.clone(),
            kind,
            before: before.map(Facts::of),
            after: after.map(Facts::of),
            body,
        });
        Ok(())
    }

    fn body(&mut self, before: Option<&Entry>, after: Option<&Entry>) -> Result<Body, Error> {
        let of = |kind| (before.filter(|entry| entry.kind == kind), after.filter(|entry| entry.kind == kind));
        let target = |entry: Option<&Entry>| entry.map(|entry| entry.layer.target(&entry.path)).transpose();
        if let (old, new) = of(Kind::Link)
            && old.or(new).is_some()
        {
            return Ok(Body::Link { old: target(old)?, new: target(new)? });
        }
        match of(Kind::File) {
            (None, None) => Ok(Body::None),
            (old, new) => self.file_body(old, new),
        }
    }

    fn file_body(&mut self, old: Option<&Entry>, new: Option<&Entry>) -> Result<Body, Error> {
        let size = |entry: Option<&Entry>| entry.map(|entry| entry.size);
        let binary = Body::Binary { old: size(old), new: size(new) };
        if self.text >= TEXT_MAX {
            return Ok(binary);
        }
        let path = old.or(new).map_or(Path::new(""), |entry| entry.path.as_path());
        let (Some(before), Some(after)) = (text_of(old)?, text_of(new)?) else { return Ok(binary) };
        let text = text::unified(path, old.is_some(), new.is_some(), &before, &after);
        self.text += text.len();
        Ok(Body::Text(text))
    }
}

/// The text of a file, which is empty where there is none; nothing for binary files.
fn text_of(entry: Option<&Entry>) -> Result<Option<String>, Error> {
    let Some(entry) = entry else { return Ok(Some(String::new())) };
    Ok(text::of(entry.layer.file(&entry.path)?))
}

fn compare(before: &Entry, after: &Entry) -> Result<Option<ChangeKind>, Error> {
    Ok(if before.kind != after.kind {
        Some(ChangeKind::Type)
    } else if !same_content(before, after)? {
        Some(ChangeKind::Modified)
    } else if !same_attributes(before, after)? {
        Some(ChangeKind::Attributes)
    } else {
        None
    })
}

// === impl Facts ===

impl Facts {
    fn of(entry: &Entry) -> Self {
        Self { kind: entry.kind, mode: entry.mode, uid: entry.uid, gid: entry.gid, size: entry.size }
    }
}
