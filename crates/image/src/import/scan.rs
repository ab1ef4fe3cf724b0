//! What an archive holds: images, or a root file system.

use std::io::Read;

use super::layout::Saved;
use crate::Error;
use crate::archive::{Archive, Kind, malformed};
use crate::limits::Limits;

/// What is in an archive.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// What `docker save` writes, or an OCI layout.
    Images,
    /// The files of one root file system.
    RootFs,
}

/// Reads the whole of `stream`.
///
/// # Errors
/// [`Error::Archive`] for a root file system that has no end mark: it may have been cut, and nothing else would tell.
pub(super) fn scan(stream: impl Read, limits: &Limits) -> Result<Content, Error> {
    let mut archive = Archive::new(stream, limits);
    let (mut has_layout, mut has_index, mut is_saved, mut is_empty) = (false, false, false, true);
    while let Some(entry) = archive.next()? {
        is_empty = false;
        let name = entry.path.strip_prefix(b"./").unwrap_or(&entry.path);
        match (entry.kind, name) {
            (Kind::File, b"oci-layout") => has_layout = true,
            (Kind::File, b"index.json") => has_index = true,
            (Kind::File, b"manifest.json") if entry.size <= limits.document => {
                let mut text = Vec::new();
                archive.read_to_end(&mut text).map_err(Error::from_stream)?;
                is_saved = serde_json::from_slice::<Vec<Saved>>(&text).is_ok_and(|images| !images.is_empty());
            }
            _ => {}
        }
    }
    let has_end = archive.finish()?;
    if is_saved || has_layout && has_index {
        return Ok(Content::Images);
    }
    match (is_empty, has_end) {
        (true, _) => Err(malformed("there is nothing in it")),
        (false, false) => Err(malformed("it has no end mark; it may have been cut")),
        (false, true) => Ok(Content::RootFs),
    }
}
