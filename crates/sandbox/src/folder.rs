//! Redoma's own folders: for their owner only.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// Makes a folder and its parents, closed to everybody else. One that exists stays as it is.
pub(crate) fn private(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Removes a folder that commands could write into, with all that is in it. No link is followed, and a folder that was
/// closed to its owner is opened first.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            open_up(path)?;
            fs::remove_dir_all(path)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn open_up(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            open_up(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_closed_to_its_owner_goes_and_what_a_link_leads_to_stays() {
        let place = tempfile::tempdir().unwrap();
        let (outside, scraps) = (place.path().join("outside"), place.path().join("scraps"));
        fs::create_dir(&outside).unwrap();
        fs::create_dir_all(scraps.join("a/closed/b")).unwrap();
        std::os::unix::fs::symlink(&outside, scraps.join("link")).unwrap();
        fs::set_permissions(scraps.join("a/closed"), fs::Permissions::from_mode(0o000)).unwrap();
        remove(&scraps).unwrap();
        assert!(outside.exists() && !scraps.exists());
        remove(&scraps).unwrap();
    }
}
