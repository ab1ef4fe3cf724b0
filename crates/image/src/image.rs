//! What is known of an image that is here.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{Config, DiffId, Digest, Error, Images, Reference};

/// An image in the store. On disk it is this, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// What it was pulled or imported as.
    pub reference: Reference,
    /// Of its manifest: two images of the same digest are the same.
    pub digest: Digest,
    /// Of the index that named the manifest for this kind of machine, if there was one.
    pub index: Option<Digest>,
    /// How it wants to be started.
    pub config: Config,
    /// Its layers, bottom first.
    pub layers: Vec<DiffId>,
    /// Bytes in the files of all its layers.
    pub size: u64,
    /// When it was made, as its author says (RFC 3339).
    pub created: Option<String>,
}

impl Image {
    /// The folders of its layers, topmost first: what an overlay mount takes as its lower ones.
    ///
    /// # Errors
    /// [`Error::NoLayer`] if one is missing.
    pub fn chain(&self, images: &Images) -> Result<Vec<PathBuf>, Error> {
        let mut chain = Vec::with_capacity(self.layers.len());
        // overlayfs takes each folder once. What a layer says twice, its upper place says already.
        let mut seen = BTreeSet::new();
        for layer in self.layers.iter().rev().filter(|layer| seen.insert(**layer)) {
            let folder = images.layer(*layer).ok_or(Error::NoLayer { layer: *layer })?;
            let hides_all_below = images.is_opaque(&folder)?;
            chain.push(folder);
            // overlayfs does not look for this mark on the root of a layer.
            if hides_all_below {
                break;
            }
        }
        Ok(chain)
    }
}
