//! What sessions left behind that no janitor cleared away, say because the machine's power failed or somebody
//! killed keeper and janitor.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::claim::Claim;
use super::group::PREFIX;
use super::hierarchy::Hierarchies;
use super::{Scraps, clear};

/// Something that belongs to no living session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftover {
    /// What it is.
    pub kind: LeftoverKind,
    /// Where.
    pub path: PathBuf,
    /// Whether it was removed now. Never in a dry run.
    pub removed: bool,
}

/// What can be left over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftoverKind {
    /// A cgroup, perhaps with processes.
    Cgroup,
    /// A folder.
    Folder,
    /// What a session made where nothing may be. It is removed to quarantine.
    Planted,
}

/// Finds what is left of dead sessions and, unless `dry_run`, ends and removes it: cgroups, and in each folder of
/// `places` the folders named `redoma-<session>`.
///
/// Only what belongs to the user counts, and nothing that a living process holds by a [`Claim`].
pub fn gc(places: &Scraps, dry_run: bool) -> Vec<Leftover> {
    gc_in(&Hierarchies::of_this_process().unwrap_or_default(), places, dry_run)
}

fn gc_in(hierarchies: &Hierarchies, places: &Scraps, dry_run: bool) -> Vec<Leftover> {
    let mut cgroups = Vec::new();
    hierarchies.mounts().into_iter().for_each(|mount| find(mount, DEEPEST, &mut cgroups));
    let mut folders = Vec::new();
    places.folders.iter().for_each(|place| find(place, 0, &mut folders));
    let all = cgroups.into_iter().map(|path| (LeftoverKind::Cgroup, path));
    all.chain(folders.into_iter().map(|path| (LeftoverKind::Folder, path)))
        .filter_map(|(kind, path)| judge(kind, path, places, dry_run))
        .collect()
}

/// Levels of cgroups that are searched; service managers and containers make about ten.
const DEEPEST: u32 = 32;

/// Folders with our name, `levels` deep, and none within another.
fn find(folder: &Path, levels: u32, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        if entry.file_name().to_str().is_some_and(is_ours) {
            found.push(entry.path());
        } else if let Some(levels) = levels.checked_sub(1) {
            find(&entry.path(), levels, found);
        }
    }
}

/// Sessions are named by ten characters of base32 in lower case; anybody else's `redoma-something` stays.
fn is_ours(name: &str) -> bool {
    const SESSION: usize = 10;
    let base32 = |byte: u8| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(&byte);
    name.strip_prefix(PREFIX).is_some_and(|session| session.len() == SESSION && session.bytes().all(base32))
}

/// None for what is not ours to judge, or lives.
fn judge(kind: LeftoverKind, path: PathBuf, places: &Scraps, dry_run: bool) -> Option<Leftover> {
    let owner = fs::symlink_metadata(&path).ok()?.uid();
    if owner != rustix::process::geteuid().as_raw() {
        return None;
    }
    // Held while it is removed, so that no session takes it for its own meanwhile. What can't be asked may live.
    let _claim = open_or_unlock(&path).ok()?;
    if !dry_run {
        remove(kind, &path, places);
    }
    let removed = !dry_run && fs::symlink_metadata(&path).is_err();
    Some(Leftover { kind, path, removed })
}

/// Commands inside can take the permissions away from a folder that was made for them.
fn open_or_unlock(path: &Path) -> io::Result<Claim> {
    match Claim::existing(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            fs::set_permissions(path, Permissions::from_mode(0o700))?;
            Claim::existing(path)
        }
        claim => claim,
    }
}

fn remove(kind: LeftoverKind, path: &Path, places: &Scraps) {
    match kind {
        LeftoverKind::Cgroup => {
            clear::kill(path);
            clear::remove(path);
        }
        // Whether it worked is seen by looking.
        LeftoverKind::Folder => drop((places.remove)(path)),
        // Not found here.
        LeftoverKind::Planted => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_sessions_are_ours() {
        assert!(is_ours("redoma-abcdefgh27"));
        for other in ["redoma-", "redoma-janitor", "redoma-abcdefgh18", "redoma-abcdefgh277", "abcdefgh27"] {
            assert!(!is_ours(other), "{other}");
        }
    }

    #[test]
    fn a_folder_is_left_over_once_nobody_holds_it() {
        let place = tempfile::tempdir().unwrap();
        let places = Scraps { folders: vec![place.path().into()], remove: |path| fs::remove_dir_all(path) };
        let of_place = |dry| {
            let found = gc_in(&Hierarchies::default(), &places, dry).into_iter();
            found.map(|one| one.removed).collect::<Vec<_>>()
        };
        fs::create_dir(place.path().join("redoma-unrelated")).unwrap();
        let claim = Claim::make(place.path().join("redoma-abcdefgh27")).unwrap();
        fs::write(claim.path().join("file"), "").unwrap();
        assert!(of_place(true).is_empty());
        drop(claim);
        assert_eq!(of_place(true), [false]);
        assert_eq!(of_place(false), [true]);
        assert!(of_place(false).is_empty() && place.path().join("redoma-unrelated").exists());
    }
}
