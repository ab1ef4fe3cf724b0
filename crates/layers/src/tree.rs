//! What a chain of layers shows when it is mounted.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::beneath::as_path;
use crate::layer::{Layer, Marks, is_whiteout};
use crate::xattr::{self, Place};
use crate::{Entry, Error, Kind};

/// Paths of one tree. Nothing is kept of them while they are walked through: this bounds time.
const ENTRIES_MAX: u64 = 50_000_000;

/// What a chain of layers shows: whiteouts and hidden paths are left out, folders are merged.
#[derive(Debug)]
pub struct Tree {
    chain: Parts,
}

/// The layers that a merged folder has a part in, topmost first.
pub(crate) type Parts = Vec<Arc<Layer>>;

/// A merged folder, held open in every layer it has a part in.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    pub(crate) parts: Vec<(Arc<Layer>, OwnedFd)>,
}

/// A path, and its parts if it is a folder.
pub(crate) struct Found {
    pub(crate) entry: Entry,
    pub(crate) parts: Parts,
}

// === impl Tree ===

impl Tree {
    /// The tree of a chain, topmost layer first. Without layers it is empty.
    ///
    /// # Errors
    /// [`Error::Open`] for a layer that is no folder or cannot be read.
    pub fn open(chain: &[PathBuf]) -> Result<Self, Error> {
        let chain = chain.iter().map(|path| Layer::open(path).map(Arc::new)).collect::<Result<_, _>>()?;
        Ok(Self { chain })
    }

    /// The root folder, as the topmost layer has it; nothing without layers.
    ///
    /// # Errors
    /// Those of reading the layer.
    pub fn root(&self) -> Result<Option<Entry>, Error> {
        let Some(layer) = self.chain.first() else { return Ok(None) };
        let mut entry = Entry::of(PathBuf::new(), &layer.root_stat()?, layer);
        let folder = layer.folder(Path::new(""))?;
        entry.has_attributes = layer.marks(&Place::Open(&folder), Path::new(""))?.has_attributes;
        Ok(Some(entry))
    }

    /// What is at `path`, if anything is. No link on the way is followed, and nothing is at a path with `..` in it.
    ///
    /// # Errors
    /// Those of reading the layers.
    pub fn entry(&self, path: &Path) -> Result<Option<Entry>, Error> {
        let mut found = self.root()?.map(|entry| Found { entry, parts: self.chain.clone() });
        for component in path.components() {
            // A descriptor knows its "..", which would be outside of the layer.
            let Component::Normal(name) = component else { return Ok(None) };
            let Some(folder) = found.filter(|found| found.entry.kind == Kind::Folder) else {
                return Ok(None);
            };
            found = Folder::open(&folder.entry.path, &folder.parts)?.find(name)?;
        }
        Ok(found.map(|found| found.entry))
    }

    /// Calls `each` for the root and every path below it; a folder comes before what it holds, and a folder's names come in order.
    ///
    /// # Errors
    /// Those of reading the layers, and whatever `each` returns.
    pub fn walk<E: From<Error>>(&self, mut each: impl FnMut(&Entry) -> Result<(), E>) -> Result<(), E> {
        let Some(root) = self.root()? else { return Ok(()) };
        each(&root)?;
        let mut folders = vec![(PathBuf::new(), self.chain.clone())];
        let mut seen = 0;
        while let Some((path, parts)) = folders.pop() {
            let folder = Folder::open(&path, &parts)?;
            let first = folders.len();
            for (name, part) in folder.names(parts.len())? {
                seen += 1;
                within(&parts, seen)?;
                if let Some(found) = folder.find_from(as_path(&name).as_os_str(), part)? {
                    each(&found.entry)?;
                    if found.entry.kind == Kind::Folder {
                        folders.push((found.entry.path, found.parts));
                    }
                }
            }
            folders[first..].reverse();
        }
        Ok(())
    }

    /// Opens a file for reading. It may have changed since the entry was made, but it is a regular file.
    ///
    /// # Errors
    /// [`Error::Read`]; [`Error::Changed`] if it is no file (any more).
    pub fn read(&self, entry: &Entry) -> Result<File, Error> {
        entry.layer.file(&entry.path)
    }

    /// Where a link leads.
    ///
    /// # Errors
    /// [`Error::Read`], also for what is no link.
    pub fn target(&self, entry: &Entry) -> Result<Vec<u8>, Error> {
        entry.layer.target(&entry.path)
    }

    /// The attributes of a file or folder, as a mount would show them: `user.*`, access lists, capabilities.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn attributes(&self, entry: &Entry) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, Error> {
        attributes(entry)
    }

    pub(crate) fn chain(&self) -> &Parts {
        &self.chain
    }
}

/// As [`Tree::attributes`].
pub(crate) fn attributes(entry: &Entry) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, Error> {
    if !entry.has_attributes || !matches!(entry.kind, Kind::File | Kind::Folder) {
        return Ok(BTreeMap::new());
    }
    let handle = entry.layer.handle(&entry.path)?;
    let all = Place::Open(&handle).all(|name| xattr::shown(name).is_some());
    let all = all.map_err(entry.layer.failed(&entry.path, "getxattr"))?;
    Ok(all.into_iter().filter_map(|(name, value)| Some((xattr::shown(&name)?, value))).collect())
}

/// Whether so many paths may be looked at.
pub(crate) fn within(parts: &Parts, seen: u64) -> Result<(), Error> {
    if seen <= ENTRIES_MAX {
        return Ok(());
    }
    let path = parts.first().map(|layer| layer.path().to_path_buf()).unwrap_or_default();
    Err(Error::TooMany { path, what: "paths", limit: ENTRIES_MAX })
}

// === impl Folder ===

impl Folder {
    /// Opens the merged folder `path` in every layer that has a part in it.
    pub(crate) fn open(path: &Path, parts: &Parts) -> Result<Self, Error> {
        let open = |layer: &Arc<Layer>| Ok((Arc::clone(layer), layer.folder(path)?));
        Ok(Self { path: path.to_path_buf(), parts: parts.iter().map(open).collect::<Result<_, Error>>()? })
    }

    /// The names that the topmost `count` parts have, each with the first part that has it. Some stand for whiteouts.
    pub(crate) fn names(&self, count: usize) -> Result<BTreeMap<Vec<u8>, usize>, Error> {
        let mut names = BTreeMap::new();
        for (part, (layer, dir)) in self.parts.iter().enumerate().take(count) {
            for name in layer.names(dir, &self.path)? {
                names.entry(name).or_insert(part);
            }
        }
        Ok(names)
    }

    /// What `name` is, if it is shown.
    pub(crate) fn find(&self, name: &OsStr) -> Result<Option<Found>, Error> {
        self.find_from(name, 0)
    }

    /// As [`Folder::find`], where the parts before `first` are known not to have the name.
    pub(crate) fn find_from(&self, name: &OsStr, first: usize) -> Result<Option<Found>, Error> {
        let path = self.path.join(name);
        let mut found: Option<Found> = None;
        for (layer, dir) in self.parts.iter().skip(first) {
            let Some(stat) = layer.stat(dir, name, &path)? else { continue };
            // A whiteout, and a file below a folder, end what shines through.
            if is_whiteout(&stat) || (found.is_some() && Kind::of(&stat) != Kind::Folder) {
                break;
            }
            let marks = match Kind::of(&stat) {
                Kind::File | Kind::Folder => layer.marks(&Place::within(dir, name), &path)?,
                _ => Marks::default(),
            };
            let found = found.get_or_insert_with(|| Found {
                entry: Entry {
                    has_attributes: marks.has_attributes,
                    ..Entry::of(path.clone(), &stat, layer)
                },
                parts: Vec::new(),
            });
            if found.entry.kind != Kind::Folder {
                break;
            }
            found.parts.push(Arc::clone(layer));
            if marks.is_opaque {
                break;
            }
        }
        Ok(found)
    }
}
