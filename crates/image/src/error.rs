//! What can go wrong, a variant for each step.

use std::io;
use std::path::{Path, PathBuf};

use crate::{DiffId, Digest};

/// A step that failed. Whatever had been begun is not visible: an image is there whole or not at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not the shape of a digest.
    #[error("{text:?} is not a digest: sha256: and 64 lower-case hexadecimal digits are expected")]
    Digest {
        /// What was given.
        text: String,
    },
    /// Not the shape of an image's name.
    #[error("{text:?} is not the name of an image: {why}")]
    Reference {
        /// What was given.
        text: String,
        /// What does not fit.
        why: &'static str,
    },
    /// No such image here.
    #[error("no image {reference} here")]
    NoImage {
        /// What was looked for.
        reference: String,
    },
    /// A layer that an image or a sandbox needs is not in the store.
    #[error("layer {layer} is not in the store")]
    NoLayer {
        /// Which.
        layer: DiffId,
    },
    /// Somebody pulls or imports, so that nothing may be removed now.
    #[error("an image is being pulled or imported in {}", path.display())]
    Busy {
        /// The lock that is held.
        path: PathBuf,
    },
    /// A file or folder could not be made.
    #[error("cannot make {}: {source}", path.display())]
    Create {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file or folder could not be opened.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file or folder could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A finished file or layer could not be put in its place.
    #[error("cannot put {} in its place: {source}", path.display())]
    Publish {
        /// The place.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file or folder could not be removed.
    #[error("cannot remove {}: {source}", path.display())]
    Remove {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Text of the store that is not what was written there.
    #[error("{} is damaged: {source}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What does not fit.
        source: serde_json::Error,
    },
    /// More than an image may have.
    #[error("{what} above the limit of {limit}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much there may be.
        limit: u64,
    },
    /// A tar stream that cannot be read.
    #[error("the archive is malformed: {what}")]
    Archive {
        /// What does not fit.
        what: String,
    },
    /// The archive's bytes could not be read or decompressed.
    #[error("the archive cannot be read: {source}")]
    Stream {
        /// Why.
        source: io::Error,
    },
    /// An entry of an archive that would reach out of its layer, or makes no sense in it.
    #[error("the archive's entry {entry:?} is refused: {why}")]
    Entry {
        /// Its name.
        entry: String,
        /// Why.
        why: &'static str,
    },
    /// An entry of an archive could not be made.
    #[error("cannot unpack {entry:?}: {step}: {source}")]
    Unpack {
        /// Its name.
        entry: String,
        /// The system call.
        step: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The content of a layer is not what the image's configuration says.
    #[error("the layer's content is {actual}, but the image says {expected}")]
    DiffId {
        /// What the configuration says.
        expected: DiffId,
        /// What it is.
        actual: DiffId,
    },
    /// A blob is not what its digest says.
    #[error("{what} is {actual}, but {expected} was asked for")]
    Content {
        /// What was fetched.
        what: &'static str,
        /// What was asked for.
        expected: Digest,
        /// What came.
        actual: Digest,
    },
    /// A blob has another size than its manifest says.
    #[error("{what} {digest} has {actual} bytes, but the manifest says {expected}")]
    Size {
        /// What was fetched.
        what: &'static str,
        /// Which.
        digest: Digest,
        /// The manifest's number.
        expected: u64,
        /// What came, or how much of it until it was too much.
        actual: u64,
    },
    /// A manifest, index or configuration that cannot be used.
    #[error("the image's {document} cannot be used: {why}")]
    Document {
        /// Which of them.
        document: &'static str,
        /// What does not fit.
        why: String,
    },
    /// The image is for another kind of machine.
    #[error("the image is for {found}; this machine runs {wanted}")]
    Platform {
        /// What there is.
        found: String,
        /// What was looked for.
        wanted: String,
    },
    /// A file with passwords for registries that cannot be used.
    #[error("{} cannot be used: {why}", path.display())]
    AuthFile {
        /// Which.
        path: PathBuf,
        /// What does not fit.
        why: String,
    },
    /// No connection that can be trusted could be prepared.
    #[error("cannot prepare TLS: {why}")]
    Tls {
        /// Why.
        why: String,
    },
    /// The registry, or what stands in its place, did not answer.
    #[error("{host} cannot be reached: {why}")]
    Unreachable {
        /// Whom.
        host: String,
        /// Why.
        why: String,
    },
    /// The registry wants somebody it knows.
    #[error("{host} does not let {who} read {repository}")]
    Unauthorized {
        /// The registry.
        host: String,
        /// Who asked.
        who: String,
        /// What for.
        repository: String,
    },
    /// The registry has no such image.
    #[error("{host} has no {reference}")]
    NotFound {
        /// The registry.
        host: String,
        /// What was asked for.
        reference: String,
    },
    /// The registry refused for a reason of its own.
    #[error("{host} answered {status}: {message}")]
    Refused {
        /// The registry.
        host: String,
        /// The HTTP status.
        status: u16,
        /// What it said, shortened.
        message: String,
    },
    /// The registry sends clients to a place where others could listen.
    #[error("{host} wants {what} at {url}, which is not encrypted")]
    Insecure {
        /// The registry.
        host: String,
        /// What would have gone there.
        what: &'static str,
        /// Where.
        url: String,
    },
    /// Somebody asked to stop.
    #[error("stopped")]
    Cancelled,
    /// What is to be imported has no name, or more than one.
    #[error("{} {why}", path.display())]
    Naming {
        /// What was to be imported.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
    /// The runtime that pulling needs could not be started.
    #[error("cannot start fetching: {source}")]
    Runtime {
        /// Why.
        source: io::Error,
    },
}

impl Error {
    /// One line that helps when pasted, where there is one.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Reference { .. } => "redoma image pull docker.io/library/debian:12".into(),
            Self::NoImage { reference } if !reference.contains("sha256:") => {
                format!("redoma image pull {reference}")
            }
            Self::NoImage { .. } | Self::Busy { .. } => "redoma image ls".into(),
            Self::Create { path, source } | Self::Write { path, source } if is_full(source) => full(path),
            Self::Unpack { source, .. } if is_full(source) => "redoma image prune".into(),
            // The ranges have no such user.
            Self::Unpack { step: "chown", .. } => "grep \"^$(id -un):\" /etc/subuid /etc/subgid".into(),
            Self::Damaged { path, .. } => format!("mv {0} {0}.broken", quoted(path)),
            Self::Unauthorized { host, .. } => format!("podman login {host}"),
            Self::AuthFile { path, .. } => format!("cat {}", quoted(path)),
            Self::Naming { path, .. } => format!("redoma image import {} NAME", quoted(path)),
            _ => return None,
        })
    }

    /// The error that a reader of ours put into an [`io::Error`], or a broken stream.
    pub(crate) fn from_stream(source: io::Error) -> Self {
        match source.downcast::<Self>() {
            Ok(own) => own,
            Err(source) => Self::Stream { source },
        }
    }
}

/// For readers that can only say [`io::Error`]; [`Error::from_stream`] takes it out again.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::other(error)
    }
}

fn is_full(source: &io::Error) -> bool {
    matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

fn full(path: &Path) -> String {
    format!("df -h {}", quoted(path))
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}
