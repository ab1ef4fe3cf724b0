//! Images that are here already: a root file system as a tarball or a folder, what `docker save` writes, an OCI layout.

mod folder;
mod layout;
mod scan;

use std::fs::File;
use std::io;
use std::path::Path;

use crate::blob::{Blob, Fetched};
use crate::decompress::decompress;
use crate::digest::HashingReader;
use crate::manifest::{Descriptor, Manifest, Plan, architecture};
use crate::store::{Staging, make_folder};
use crate::{DiffId, Digest, Error, Images, Limits, Ownership, Reference, unpack};
use scan::Content;

/// Where programs are looked for in an image that does not say.
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Images {
    /// Takes the image at `path` in: its layers as verified blobs, which then have to be unpacked and published.
    ///
    /// `path` is a folder (a root file system, or an OCI layout) or a file (either of them as an archive, or what `docker save`
    /// writes; plain, gzip or zstd). It is called `name`, or as it says itself. Of several images in one archive, `name` picks one.
    ///
    /// # Errors
    /// [`Error::Naming`] without a name, and those of reading and of hostile content.
    pub fn import(&self, path: &Path, name: Option<&Reference>, limits: &Limits) -> Result<Fetched, Error> {
        let staging = Staging::new(self)?;
        let import = Import { images: self, path, name, limits };
        if path.is_dir() {
            return if layout::is_layout(path) {
                import.layout(path, staging)
            } else {
                import.folder(staging)
            };
        }
        import.archive(staging)
    }
}

/// One import.
struct Import<'a> {
    images: &'a Images,
    path: &'a Path,
    name: Option<&'a Reference>,
    limits: &'a Limits,
}

// === impl Import ===

impl Import<'_> {
    fn archive(&self, staging: Staging) -> Result<Fetched, Error> {
        // What is looked at first and unpacked later must be the same: nobody writes to a copy.
        let copy = staging.path("archive");
        let failed = |source| Error::Read { path: self.path.into(), source };
        let mut from =
            File::open(self.path).map_err(|source| Error::Open { path: self.path.into(), source })?;
        let mut to = File::create(&copy).map_err(|source| Error::Create { path: copy.clone(), source })?;
        io::copy(&mut from, &mut to).map_err(failed)?;
        let open = || File::open(&copy).map_err(|source| Error::Open { path: copy.clone(), source });
        let mut stream = HashingReader::new(decompress(open()?, self.limits)?);
        match scan::scan(&mut stream, self.limits)? {
            Content::RootFs => self.root_fs(Blob { file: copy, diff_id: stream.finish().into() }, staging),
            Content::Images => {
                let folder = staging.path("images");
                make_folder(&folder)?;
                unpack(decompress(open()?, self.limits)?, &folder, Ownership::Mine, self.limits)?;
                self.layout(&folder, staging)
            }
        }
    }

    fn folder(&self, staging: Staging) -> Result<Fetched, Error> {
        let file = staging.path("archive");
        let diff_id = DiffId::from(folder::pack(self.path, &file)?);
        self.root_fs(Blob { file, diff_id }, staging)
    }

    /// An image of one layer that says nothing of how it is started.
    fn root_fs(&self, blob: Blob, staging: Staging) -> Result<Fetched, Error> {
        let unnamed =
            || Error::Naming { path: self.path.into(), why: "says no name to call the image by".into() };
        let reference = self.name.cloned().ok_or_else(unnamed)?;
        let config = serde_json::json!({
            "architecture": architecture(), "os": "linux", "config": { "Env": [PATH] },
            "rootfs": { "type": "layers", "diff_ids": [blob.diff_id] },
        });
        let config = config.to_string().into_bytes();
        let manifest = manifest(&config, &[blob.diff_id]);
        let digest = digest_of(&manifest)?;
        let plan = Plan::new(reference, digest, &manifest, &config, self.limits)?;
        let is_here = self.images.layer(blob.diff_id).is_some();
        Ok(Fetched { image: plan.image, blobs: if is_here { Vec::new() } else { vec![blob] }, staging })
    }

    fn layout(&self, folder: &Path, staging: Staging) -> Result<Fetched, Error> {
        let layout = layout::Layout::open(folder, self.limits)?;
        let found = layout.pick(self.name, self.path)?;
        let layers = found.plan.missing(self.images);
        let mut blobs = Vec::with_capacity(layers.len());
        for (diff_id, descriptor) in layers {
            let file = staging.path(&format!("{}.blob", diff_id.hex()));
            found.copy(&layout, diff_id, &descriptor, &file)?;
            blobs.push(Blob { file, diff_id });
        }
        Ok(Fetched { image: found.plan.image, blobs, staging })
    }
}

/// The manifest of an image that came without one, so that it has a digest as others have: layers stand for themselves.
fn manifest(config: &[u8], layers: &[DiffId]) -> Manifest {
    let descriptor = |media_type: &str, digest, size| Descriptor::plain(media_type, digest, size);
    let layer = |id: &DiffId| descriptor("application/vnd.oci.image.layer.v1.tar", Digest::from(*id), 0);
    Manifest {
        schema_version: 2,
        media_type: "application/vnd.oci.image.manifest.v1+json".into(),
        config: descriptor(
            "application/vnd.oci.image.config.v1+json",
            Digest::of(config),
            config.len() as u64,
        ),
        layers: layers.iter().map(layer).collect(),
    }
}

fn digest_of(manifest: &Manifest) -> Result<Digest, Error> {
    let text = serde_json::to_vec(manifest);
    let text = text.map_err(|error| Error::Document { document: "manifest", why: error.to_string() })?;
    Ok(Digest::of(&text))
}

#[cfg(test)]
mod tests;
