//! The store: layers and names on disk.
//!
//! ```text
//! lock              shared while an image comes in, exclusive while something is removed
//! layers/<hex>/     one unpacked layer, named by the digest of its content
//! about/<hex>.json  what is known of it
//! names/<hex>.json  one image, in a file named by the digest of its name
//! staging/<n>/      what is on its way in or out; nothing of a killed process outlives the next look
//! ```

mod lock;
mod prune;
mod staging;

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::unpack::OPAQUE;
use crate::{DiffId, Digest, Error, Image, Ownership, Reference};
pub use prune::{Exclusive, Held, Pruned};
pub(crate) use staging::{Staging, remove_folder};

/// Longest file of our own that is read.
const RECORD: u64 = 16 << 20;

/// The images in one folder.
#[derive(Debug, Clone)]
pub struct Images {
    folder: PathBuf,
}

/// What is known of a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Files, folders and links.
    pub entries: u64,
    /// Bytes in files.
    pub bytes: u64,
    /// Whose its files are.
    pub ownership: Ownership,
    /// What its archive had that it has not.
    pub notes: Vec<String>,
}

// === impl Images ===

impl Images {
    /// The store in `folder`, which is made (0700) if it is missing.
    ///
    /// # Errors
    /// [`Error::Create`].
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let images = Self { folder: folder.into() };
        for part in ["layers", "about", "names", "staging"] {
            make_folder(&folder.join(part))?;
        }
        Ok(images)
    }

    /// The folder of the store.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The image of this name. A name with a digest also finds what was pulled under a tag.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Damaged`].
    pub fn get(&self, reference: &Reference) -> Result<Option<Image>, Error> {
        if let Some(image) = read_json(&self.name(reference))? {
            return Ok(Some(image));
        }
        let Some(digest) = reference.digest() else { return Ok(None) };
        let is_same = |image: &Image| {
            let pinned = image.digest == digest || image.index == Some(digest);
            let (found, wanted) = (&image.reference, reference);
            pinned && found.registry() == wanted.registry() && found.repository() == wanted.repository()
        };
        Ok(self.list()?.into_iter().find(is_same))
    }

    /// All images, by name.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Damaged`].
    pub fn list(&self) -> Result<Vec<Image>, Error> {
        let mut images = Vec::new();
        for file in self.files("names")? {
            // One that is gone was removed just now.
            images.extend(read_json::<Image>(&file)?);
        }
        images.sort_by(|a, b| a.reference.cmp(&b.reference));
        Ok(images)
    }

    /// Forgets the name. Its layers stay until [`Exclusive::prune`], since sandboxes may be made of them.
    ///
    /// # Errors
    /// [`Error::NoImage`], [`Error::Remove`].
    pub fn remove(&self, reference: &Reference) -> Result<Image, Error> {
        let missing = || Error::NoImage { reference: reference.to_string() };
        let image = self.get(reference)?.ok_or_else(missing)?;
        let path = self.name(&image.reference);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(missing()),
            other => other.map_err(|source| Error::Remove { path, source }).map(|()| image),
        }
    }

    /// The folder of a layer, if it is here.
    #[must_use]
    pub fn layer(&self, id: DiffId) -> Option<PathBuf> {
        Some(self.layer_path(id)).filter(|path| path.is_dir())
    }

    /// What is known of a layer, if it is here.
    ///
    /// # Errors
    /// [`Error::Read`], [`Error::Damaged`].
    pub fn about(&self, id: DiffId) -> Result<Option<About>, Error> {
        if self.layer(id).is_none() { Ok(None) } else { read_json(&self.about_path(id)) }
    }

    /// Whether the layer's own root hides all layers below.
    pub(crate) fn is_opaque(&self, layer: &Path) -> Result<bool, Error> {
        let mut value = [0; 2];
        match rustix::fs::lgetxattr(layer, OPAQUE, &mut value[..]) {
            Ok(length) => Ok(value[..length] == *b"y"),
            Err(rustix::io::Errno::NODATA | rustix::io::Errno::NOTSUP) => Ok(false),
            Err(errno) => Err(Error::Read { path: layer.into(), source: errno.into() }),
        }
    }

    pub(crate) fn layer_path(&self, id: DiffId) -> PathBuf {
        self.folder.join("layers").join(id.hex())
    }

    pub(crate) fn about_path(&self, id: DiffId) -> PathBuf {
        self.folder.join("about").join(id.hex() + ".json")
    }

    /// Names have slashes and colons, and may be longer than a file's name may be.
    pub(crate) fn name(&self, reference: &Reference) -> PathBuf {
        self.folder.join("names").join(Digest::of(reference.full().as_bytes()).hex() + ".json")
    }

    /// What is in one of the store's folders.
    pub(crate) fn files(&self, part: &str) -> Result<Vec<PathBuf>, Error> {
        let path = self.folder.join(part);
        let read =
            || std::fs::read_dir(&path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
        read().map_err(|source| Error::Read { path: path.clone(), source })
    }
}

/// Makes a folder that only its owner can reach.
pub(crate) fn make_folder(path: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| Error::Create { path: path.into(), source })
}

/// Reads a file of our own; `None` if there is none.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    let failed = |source| Error::Read { path: path.into(), source };
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(failed)?,
    };
    let mut text = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, RECORD), &mut text).map_err(failed)?;
    serde_json::from_slice(&text).map(Some).map_err(|source| Error::Damaged { path: path.into(), source })
}

/// Writes a file that will be whole when it is renamed.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Error> {
    let failed = |source| Error::Write { path: path.into(), source };
    let mut text = serde_json::to_vec(value).map_err(|error| failed(error.into()))?;
    text.push(b'\n');
    let mut file = File::create(path).map_err(failed)?;
    file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)
}

/// Makes sure that what was renamed in `folder` stays so when the power fails.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), Error> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|source| Error::Write { path: folder.into(), source })
}

#[cfg(test)]
mod tests;
