//! Folders with images: OCI layouts, and what `docker save` writes.
//!
//! <https://github.com/opencontainers/image-spec/blob/main/image-layout.md>. Their files are reached by descriptors that cannot
//! leave the folder; links inside it are followed, since `docker save` makes them.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use redoma_layers::beneath::in_root;
use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;
use serde::Deserialize;

use super::{digest_of, manifest};
use crate::decompress::decompress;
use crate::digest::{Hasher, HashingReader};
use crate::limits::{Limits, within};
use crate::manifest::{Descriptor, Document, Plan};
use crate::{DiffId, Digest, Error, Reference};

/// One image in the `manifest.json` of `docker save`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Saved {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

/// A folder with images.
pub(super) struct Layout<'a> {
    fd: OwnedFd,
    path: PathBuf,
    limits: &'a Limits,
}

/// An image of a layout.
pub(super) struct Found {
    pub(super) plan: Plan,
    /// Its layers' files where they have names and no digests.
    files: Option<Vec<(DiffId, String)>>,
}

/// An image that could be meant.
struct Candidate {
    names: Vec<String>,
    kind: Format,
}

enum Format {
    Oci(Descriptor),
    Docker(Saved),
}

/// Whether this folder is an OCI layout, and not a root file system.
pub(super) fn is_layout(folder: &Path) -> bool {
    folder.join("oci-layout").is_file() && folder.join("index.json").is_file()
}

// === impl Layout ===

impl<'a> Layout<'a> {
    pub(super) fn open(path: &Path, limits: &'a Limits) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = fs::open(path, flags, Mode::empty());
        let fd = fd.map_err(|errno| Error::Open { path: path.into(), source: errno.into() })?;
        Ok(Self { fd, path: path.into(), limits })
    }

    /// The image that is meant by `name`, or the only one. `shown` is what the user calls the archive.
    pub(super) fn pick(&self, name: Option<&Reference>, shown: &Path) -> Result<Found, Error> {
        let unclear = |why: String| Error::Naming { path: shown.into(), why };
        let mut candidates = self.candidates()?;
        let is_meant = |candidate: &Candidate| candidate.references().any(|found| Some(&found) == name);
        let chosen = match candidates.iter().position(is_meant) {
            Some(index) => candidates.swap_remove(index),
            None if candidates.len() == 1 => candidates.remove(0),
            None if candidates.is_empty() => return Err(unclear("holds no image".into())),
            None => {
                let names: Vec<_> = candidates.into_iter().flat_map(|candidate| candidate.names).collect();
                return Err(unclear(format!("holds several images: {}", names.join(", "))));
            }
        };
        let own = chosen.references().next();
        let reference = name.cloned().or(own);
        let reference = reference.ok_or_else(|| unclear("says no name to call the image by".into()))?;
        match chosen.kind {
            Format::Oci(descriptor) => self.oci(reference, &descriptor, None, 0),
            Format::Docker(saved) => self.docker(reference, &saved),
        }
    }

    /// An OCI layout says more, and is there beside the older form in what new versions of Docker save.
    fn candidates(&self) -> Result<Vec<Candidate>, Error> {
        let saved: Vec<Saved> = match self.document("manifest.json")? {
            Some(text) => parse("manifest.json", &text)?,
            None => Vec::new(),
        };
        let Some(text) = self.document("index.json")? else {
            let candidate = |saved: Saved| Candidate {
                names: saved.repo_tags.clone().unwrap_or_default(),
                kind: Format::Docker(saved),
            };
            return Ok(saved.into_iter().map(candidate).collect());
        };
        let Document::Index(index) = Document::parse(&text)? else {
            return Err(Error::Document { document: "index", why: "it is not one".into() });
        };
        let only =
            (index.manifests.len() == 1 && saved.len() == 1).then(|| saved[0].repo_tags.clone()).flatten();
        let candidate = |entry: Descriptor| {
            let names = NAMES.iter().filter_map(|key| entry.annotations.get(*key).cloned());
            Candidate {
                names: names.chain(only.clone().unwrap_or_default()).collect(),
                kind: Format::Oci(entry),
            }
        };
        Ok(index.manifests.into_iter().map(candidate).collect())
    }

    fn oci(
        &self,
        reference: Reference,
        descriptor: &Descriptor,
        index: Option<Digest>,
        depth: u8,
    ) -> Result<Found, Error> {
        let text = self.verified("manifest", descriptor)?;
        match Document::parse(&text)? {
            Document::Index(found) if depth < 2 => {
                let entry = found.pick()?.clone();
                self.oci(reference, &entry, Some(index.unwrap_or(descriptor.digest)), depth + 1)
            }
            Document::Index(_) => {
                Err(Error::Document { document: "index", why: "indexes lie in each other too deeply".into() })
            }
            Document::Image(manifest) => {
                let config = self.verified("configuration", &manifest.config)?;
                let mut plan = Plan::new(reference, descriptor.digest, &manifest, &config, self.limits)?;
                plan.image.index = index;
                Ok(Found { plan, files: None })
            }
        }
    }

    fn docker(&self, reference: Reference, saved: &Saved) -> Result<Found, Error> {
        let missing =
            || Error::Document { document: "configuration", why: format!("{:?} is missing", saved.config) };
        let config = self.document(&saved.config)?.ok_or_else(missing)?;
        let parsed: crate::config::ConfigFile = parse("configuration", &config)?;
        let ids = parsed.rootfs.diff_ids;
        let manifest = manifest(&config, &ids);
        let plan = Plan::new(reference, digest_of(&manifest)?, &manifest, &config, self.limits)?;
        if ids.len() != saved.layers.len() {
            let why = format!("it names {} layers, and the archive has {}", ids.len(), saved.layers.len());
            return Err(Error::Document { document: "configuration", why });
        }
        Ok(Found { plan, files: Some(ids.into_iter().zip(saved.layers.clone()).collect()) })
    }

    /// A small file; `None` if there is none.
    fn document(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let failed = |source| Error::Read { path: self.path.join(name), source };
        let file = match self.file(name) {
            Err(Error::Open { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other?,
        };
        let mut text = Vec::new();
        file.take(self.limits.document + 1).read_to_end(&mut text).map_err(failed)?;
        within("the size of a document", text.len() as u64, self.limits.document)?;
        Ok(Some(text))
    }

    /// The document that `descriptor` means, and no other.
    fn verified(&self, what: &'static str, descriptor: &Descriptor) -> Result<Vec<u8>, Error> {
        within("the size of a document", descriptor.size, self.limits.document)?;
        let missing = || Error::Document { document: what, why: format!("{} is missing", descriptor.digest) };
        let text = self.document(&blob(descriptor.digest))?.ok_or_else(missing)?;
        descriptor.check(what, text.len() as u64, Digest::of(&text))?;
        Ok(text)
    }

    fn file(&self, name: &str) -> Result<File, Error> {
        let failed = |errno: Errno| Error::Open { path: self.path.join(name), source: errno.into() };
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = File::from(in_root(&self.fd, name, flags).map_err(failed)?);
        // A FIFO would be waited for without end.
        match file.metadata() {
            Ok(metadata) if metadata.is_file() => Ok(file),
            _ => Err(failed(Errno::INVAL)),
        }
    }
}

/// Annotations that name an image.
const NAMES: [&str; 2] = ["io.containerd.image.name", "org.opencontainers.image.ref.name"];

fn blob(digest: Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

fn parse<'a, T: Deserialize<'a>>(document: &'static str, text: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(text).map_err(|error| Error::Document { document, why: error.to_string() })
}

// === impl Candidate ===

impl Candidate {
    /// Its names, as far as they are ones. umoci and skopeo often write the tag alone, which names nothing.
    fn references(&self) -> impl Iterator<Item = Reference> {
        let is_full = |name: &&String| name.contains(['/', ':']);
        self.names.iter().filter(is_full).filter_map(|name| name.parse().ok())
    }
}

// === impl Found ===

impl Found {
    /// Copies a layer's blob to `to`, verified: by its own digest, or by its content where it has none.
    pub(super) fn copy(
        &self,
        layout: &Layout,
        id: DiffId,
        descriptor: &Descriptor,
        to: &Path,
    ) -> Result<(), Error> {
        let failed = |source| Error::Write { path: to.into(), source };
        let named = self.files.as_ref().and_then(|files| files.iter().find(|(found, _)| *found == id));
        let name = named.map_or_else(|| blob(descriptor.digest), |(_, name)| name.clone());
        let mut from = layout.file(&name)?.take(layout.limits.blob + 1);
        let mut file = File::create(to).map_err(failed)?;
        let mut hasher = Hasher::new();
        let mut tee = Tee(&mut file, &mut hasher);
        let size = io::copy(&mut from, &mut tee).map_err(failed)?;
        within("the size of a blob", size, layout.limits.blob)?;
        if named.is_none() {
            return descriptor.check("the blob", size, hasher.finish());
        }
        let copied = File::open(to).map_err(failed)?;
        let mut content = HashingReader::new(decompress(copied, layout.limits)?);
        io::copy(&mut content, &mut io::sink()).map_err(Error::from_stream)?;
        let actual = DiffId::from(content.finish());
        if actual == id { Ok(()) } else { Err(Error::DiffId { expected: id, actual }) }
    }
}

/// Writes to both.
struct Tee<'a>(&'a mut File, &'a mut Hasher);

impl io::Write for Tee<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.0.write(bytes)?;
        self.1.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
