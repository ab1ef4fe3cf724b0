//! Where things are while they are not whole.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::lock::Lock;
use super::{Images, sync_folder, write_json};
use crate::{DiffId, Error, Image};

/// A folder of one pull or import, and the lock that keeps it and the layers that it relies on from being removed.
#[derive(Debug)]
pub(crate) struct Staging {
    folder: PathBuf,
    _lock: Lock,
}

// === impl Staging ===

impl Staging {
    /// A new folder; what killed processes left is removed first, if nobody is at work.
    pub(crate) fn new(images: &Images) -> Result<Self, Error> {
        if let Some(_lock) = Lock::exclusive(images.folder())? {
            // What only a process with other rights can remove waits for `prune`.
            drop(sweep(images));
        }
        let lock = Lock::shared(images.folder())?;
        let mut number = 0_u64;
        loop {
            let folder = images.folder().join("staging").join(format!("{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&folder) {
                Ok(()) => return Ok(Self { folder, _lock: lock }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(source) => return Err(Error::Create { path: folder, source }),
            }
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Where the layer `id` is unpacked, and where what is known of it is written.
    pub(crate) fn layer(folder: &Path, id: DiffId) -> (PathBuf, PathBuf) {
        (folder.join(id.hex()), folder.join(id.hex() + ".json"))
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Puts the layers that were unpacked here in their places, then the image's name.
    ///
    /// # Errors
    /// [`Error::NoLayer`] if a layer is neither here nor in the store, [`Error::Publish`].
    pub(crate) fn publish(self, images: &Images, image: &Image) -> Result<(), Error> {
        // One call for everything that was unpacked: what a name leads to must outlive a power failure as well.
        let store = std::fs::File::open(images.folder());
        let synced = store.and_then(|store| Ok(rustix::fs::syncfs(store)?));
        synced.map_err(|source| Error::Write { path: images.folder().into(), source })?;
        for layer in &image.layers {
            self.publish_layer(images, *layer)?;
        }
        sync_folder(&images.folder().join("layers"))?;
        let (record, place) = (self.path("image.json"), images.name(&image.reference));
        write_json(&record, image)?;
        std::fs::rename(&record, &place).map_err(|source| Error::Publish { path: place, source })?;
        sync_folder(&images.folder().join("names"))
    }

    fn publish_layer(&self, images: &Images, id: DiffId) -> Result<(), Error> {
        if images.layer(id).is_some() {
            return Ok(());
        }
        let (layer, about) = Self::layer(&self.folder, id);
        if !layer.is_dir() {
            return Err(Error::NoLayer { layer: id });
        }
        let place = images.about_path(id);
        std::fs::rename(about, &place).map_err(|source| Error::Publish { path: place, source })?;
        let place = images.layer_path(id);
        match rename_folder(&layer, &place) {
            // Somebody else has put the same content there meanwhile.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists
                ) =>
            {
                Ok(())
            }
            other => other.map_err(|source| Error::Publish { path: place, source }),
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What cannot be removed now is removed by the next sweep.
        let _ = remove_folder(&self.folder);
    }
}

/// Moves a layer. A folder that its owner may not write to cannot be moved, since `..` in it changes: rename(2).
pub(super) fn rename_folder(from: &Path, to: &Path) -> io::Result<()> {
    let rights = std::fs::metadata(from)?.permissions();
    if rights.mode() & 0o200 != 0 {
        return std::fs::rename(from, to);
    }
    std::fs::set_permissions(from, Permissions::from_mode(rights.mode() | 0o700))?;
    std::fs::rename(from, to)?;
    std::fs::set_permissions(to, rights)
}

/// Removes what is in no use any more. Only under the exclusive lock.
pub(super) fn sweep(images: &Images) -> Result<usize, Error> {
    let left = images.files("staging")?;
    // One that cannot be removed keeps none of the others.
    let failed = left.iter().filter_map(|path| remove_folder(path).err()).next_back();
    failed.map_or(Ok(left.len()), Err)
}

/// Removes a file or a tree that a stranger has filled.
pub(crate) fn remove_folder(path: &Path) -> Result<(), Error> {
    let failed = |errno: Errno| Error::Remove { path: path.into(), source: errno.into() };
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Ok(()) };
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let parent = rustix::fs::open(parent, flags, rustix::fs::Mode::empty()).map_err(failed)?;
    redoma_layers::remove::remove(&parent, name).map_err(failed)
}
