//! Removes layers that nothing refers to.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::lock::Lock;
use super::staging::{remove_folder, rename_folder, sweep};
use super::{Images, read_json};
use crate::{About, DiffId, Error};

/// The right to remove: nobody pulls, imports or prunes meanwhile.
///
/// Whoever makes sandboxes should hold [`Images::hold`] from looking an image up until the sandbox is on record, and say which
/// layers are in use only after this was got.
#[derive(Debug)]
pub struct Exclusive<'a> {
    images: &'a Images,
    _lock: Lock,
}

/// Keeps layers from being removed, until it is dropped.
#[derive(Debug)]
pub struct Held {
    _lock: Lock,
}

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pruned {
    /// How many layers.
    pub layers: usize,
    /// How many bytes were in their files.
    pub bytes: u64,
    /// How many unfinished pulls and imports of killed processes.
    pub unfinished: usize,
}

impl Images {
    /// Gets the right to remove.
    ///
    /// # Errors
    /// [`Error::Busy`] while somebody pulls, imports or prunes.
    pub fn exclusive(&self) -> Result<Exclusive<'_>, Error> {
        let lock = Lock::exclusive(&self.folder)?;
        let lock = lock.ok_or_else(|| Error::Busy { path: self.folder.join("lock") })?;
        Ok(Exclusive { images: self, _lock: lock })
    }

    /// Keeps every layer where it is.
    ///
    /// # Errors
    /// [`Error::Open`].
    pub fn hold(&self) -> Result<Held, Error> {
        Ok(Held { _lock: Lock::shared(&self.folder)? })
    }
}

impl Exclusive<'_> {
    /// Removes layers that neither an image nor anything in `in_use` refers to, and what killed processes left.
    ///
    /// # Errors
    /// [`Error::Damaged`] before anything is removed, if what an image refers to cannot be told; [`Error::Remove`].
    pub fn prune(&self, in_use: &BTreeSet<DiffId>) -> Result<Pruned, Error> {
        let images = self.images;
        let mut keep = in_use.clone();
        keep.extend(images.list()?.into_iter().flat_map(|image| image.layers));
        let mut pruned = Pruned { unfinished: sweep(images)?, ..Pruned::default() };
        for path in images.files("layers")? {
            if id(&path).is_some_and(|id| !keep.contains(&id)) {
                pruned.bytes += remove_layer(images, &path)?;
                pruned.layers += 1;
            }
        }
        for path in images.files("about")? {
            if id(&path).is_some_and(|id| images.layer(id).is_none()) {
                remove_folder(&path)?;
            }
        }
        Ok(pruned)
    }
}

impl Exclusive<'_> {
    /// What killed pulls, imports and prunes left: whoever has the right to remove knows that nobody is at work on it.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn unfinished(&self) -> Result<Vec<PathBuf>, Error> {
        self.images.files("staging")
    }

    /// Removes that; how much it was.
    ///
    /// # Errors
    /// [`Error::Remove`], once everything else is gone.
    pub fn sweep(&self) -> Result<usize, Error> {
        sweep(self.images)
    }
}

/// Takes the layer out of sight first, so that half of one is never seen.
fn remove_layer(images: &Images, path: &Path) -> Result<u64, Error> {
    let about: Option<About> =
        id(path).and_then(|id| read_json(&images.about_path(id)).transpose()).transpose()?;
    let aside = images.folder().join("staging").join(path.file_name().unwrap_or_default());
    rename_folder(path, &aside).map_err(|source| Error::Remove { path: path.into(), source })?;
    remove_folder(&aside)?;
    Ok(about.map_or(0, |about| about.bytes))
}

fn id(path: &Path) -> Option<DiffId> {
    path.file_stem().and_then(OsStr::to_str).and_then(DiffId::from_hex)
}
