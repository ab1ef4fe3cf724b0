//! Redoma's own folders: for their owner only.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

/// Makes a folder and its parents, closed to everybody else.
///
/// # Errors
/// One that exists must be a folder, not a link to one, and belong to the user: root with somebody else's home would
/// write where that user's links lead.
pub(crate) fn private(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(stat) if !stat.is_dir() => Err(io::Error::new(io::ErrorKind::NotADirectory, "it is no folder")),
        Ok(stat) if stat.uid() != rustix::process::geteuid().as_raw() => Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "it belongs to another user; set REDOMA_HOME to a folder of your own",
        )),
        Ok(_) => Ok(()),
        Err(_) => fs::DirBuilder::new().recursive(true).mode(0o700).create(path),
    }
}
