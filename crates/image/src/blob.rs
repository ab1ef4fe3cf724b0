//! Blobs that were fetched and verified, and the step that makes layers of them.

use std::fs::File;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::decompress::decompress;
use crate::digest::HashingReader;
use crate::store::{Staging, make_folder, remove_folder, write_json};
use crate::{About, DiffId, Error, Image, Images, Limits, Ownership, unpack};

/// A layer's tar stream on disk, plain or compressed. It can be sent to another process that unpacks it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    /// Where it is.
    pub file: PathBuf,
    /// What its content has to be.
    pub diff_id: DiffId,
}

/// An image whose layers are all here, in the store or as blobs. Dropping it forgets it.
#[derive(Debug)]
pub struct Fetched {
    /// What [`Fetched::publish`] will put into the store; its size is not known yet.
    pub image: Image,
    /// What has to be unpacked before.
    pub blobs: Vec<Blob>,
    pub(crate) staging: Staging,
}

// === impl Blob ===

impl Blob {
    /// Unpacks the layer beside the blob, which is removed then. Nothing is visible in the store yet.
    ///
    /// This may be called in another process than [`Images::fetch`], with other rights.
    ///
    /// # Errors
    /// As [`unpack`]; [`Error::DiffId`] if the content is not what it has to be.
    pub fn unpack(&self, ownership: Ownership, limits: &Limits) -> Result<About, Error> {
        let folder = self.file.parent().unwrap_or(Path::new("/"));
        let (layer, about) = Staging::layer(folder, self.diff_id);
        make_folder(&layer)?;
        // Whoever could make files of others can remove them as well; whoever comes later may not.
        let known = self.unpack_in(&layer, ownership, limits).inspect_err(|_| self.discard())?;
        write_json(&about, &known)?;
        // Both together would take twice the room.
        std::fs::remove_file(&self.file)
            .map_err(|source| Error::Remove { path: self.file.clone(), source })?;
        Ok(known)
    }

    /// Removes what was unpacked, as whoever unpacked it.
    fn discard(&self) {
        let folder = self.file.parent().unwrap_or(Path::new("/"));
        // What stays waits for `prune`.
        drop(remove_folder(&Staging::layer(folder, self.diff_id).0));
    }

    fn unpack_in(&self, layer: &Path, ownership: Ownership, limits: &Limits) -> Result<About, Error> {
        let file = File::open(&self.file);
        let file = file.map_err(|source| Error::Open { path: self.file.clone(), source })?;
        let mut stream = HashingReader::new(decompress(file, limits)?);
        let unpacked = unpack(&mut stream, layer, ownership, limits)?;
        let actual = DiffId::from(stream.finish());
        if actual != self.diff_id {
            return Err(Error::DiffId { expected: self.diff_id, actual });
        }
        Ok(About { entries: unpacked.entries, bytes: unpacked.bytes, ownership, notes: unpacked.notes })
    }
}

// === impl Fetched ===

impl Fetched {
    /// Unpacks all blobs here and now; if one fails, none stays.
    ///
    /// # Errors
    /// As [`Blob::unpack`].
    pub fn unpack(&self, ownership: Ownership, limits: &Limits) -> Result<Vec<About>, Error> {
        let unpacked: Result<_, _> = self.blobs.iter().map(|blob| blob.unpack(ownership, limits)).collect();
        unpacked.inspect_err(|_| self.blobs.iter().for_each(Blob::discard))
    }

    /// Puts the image into the store. Every blob has been unpacked before, here or elsewhere.
    ///
    /// # Errors
    /// [`Error::NoLayer`] if one has not; [`Error::Publish`], [`Error::Write`].
    pub fn publish(self, images: &Images) -> Result<Image, Error> {
        let Self { mut image, staging, .. } = self;
        image.size = size(images, &image.layers, staging.folder())?;
        staging.publish(images, &image)?;
        Ok(image)
    }
}

/// Bytes in the files of all layers, each counted once.
fn size(images: &Images, layers: &[DiffId], staging: &Path) -> Result<u64, Error> {
    let layers: std::collections::BTreeSet<_> = layers.iter().copied().collect();
    let mut size = 0;
    for layer in layers {
        let staged = || crate::store::read_json::<About>(&Staging::layer(staging, layer).1);
        let about = images.about(layer)?.map_or_else(staged, |about| Ok(Some(about)))?;
        size += about.map_or(0, |about| about.bytes);
    }
    Ok(size)
}
