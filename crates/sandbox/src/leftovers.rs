//! What dead sessions left on this machine, for `redoma doctor --gc`.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use redoma_audit::{SessionId, SessionState, Store};
use redoma_jail::limits::{self, Leftover, LeftoverKind, Scraps};
use rustix::fs::{Mode, OFlags};

use crate::disposable::Native;
use crate::error::RunError;
use crate::homes::Homes;
use crate::quarantine::{Outcome, Quarantined};
use crate::unfinished;
use crate::walk::remove::remove;

/// Folders of a session that only its running processes need; what else is there is kept for `undo` and `changes`.
const SCRAPS: [&str; 1] = ["overlay/work"];

/// Finds what belongs to no running session and, unless `dry_run`, removes it: cgroups with their processes, the
/// folders that only a running session needs, and what a session left where nothing may be, which goes to quarantine.
///
/// # Errors
/// When the record cannot be read: then nobody knows which sessions run, and nothing is removed.
pub fn gc(homes: &Homes, dry_run: bool) -> Result<Vec<Leftover>, RunError> {
    let running = running(homes)?;
    let places = Scraps { folders: vec![homes.run().to_owned()], remove: remove_path };
    let mut all = limits::gc(&places, dry_run);
    for folder in dead_folders(homes, &running) {
        for path in SCRAPS.map(|name| folder.join(name)) {
            if path.symlink_metadata().is_ok() {
                let removed = !dry_run && remove_path(&path).is_ok();
                all.push(Leftover { kind: LeftoverKind::Folder, path, removed });
            }
        }
    }
    let native = Native::new(homes.clone());
    for path in native.torn() {
        let removed = !dry_run && native.remove_torn(&path);
        all.push(Leftover { kind: LeftoverKind::Folder, path, removed });
    }
    all.extend(native.unfinished_images(dry_run));
    if !dry_run {
        // When the processes that could make it anew are gone.
        all.extend(unfinished::finish_all(homes)?.iter().flat_map(|one| &one.quarantined).map(planted));
    }
    Ok(all)
}

fn planted(found: &Quarantined) -> Leftover {
    let removed = !matches!(found.outcome, Outcome::Failed(_));
    Leftover { kind: LeftoverKind::Planted, path: found.path.clone(), removed }
}

fn running(homes: &Homes) -> Result<Vec<SessionId>, redoma_audit::Error> {
    let mut running = Vec::new();
    for summary in Store::open(homes.state(), &homes.keys())?.sessions()? {
        let summary = summary?;
        if summary.state == SessionState::Running {
            running.push(summary.session);
        }
    }
    Ok(running)
}

fn dead_folders(homes: &Homes, running: &[SessionId]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(homes.sessions()).into_iter().flatten().flatten();
    let dead = entries.filter(|entry| {
        let session = entry.file_name().to_str().and_then(|name| name.parse::<SessionId>().ok());
        session.is_some_and(|session| !running.contains(&session))
    });
    dead.map(|entry| entry.path()).collect()
}

/// Removes what commands could write into, following nothing. What is not there is removed.
pub(crate) fn remove_path(path: &Path) -> std::io::Result<()> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    let folder: OwnedFd =
        rustix::fs::open(parent, OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())?;
    Ok(remove(&folder, name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_dead_sessions_go_and_what_is_kept_stays() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_owned();
        let homes = Homes::from_vars(&|name| match name {
            "HOME" | "REDOMA_HOME" => Some(root.clone().into_os_string()),
            _ => None,
        })
        .unwrap();
        let session = homes.sessions().join("abcdefghij");
        for folder in ["overlay/work/work", "overlay/upper", "quarantine"] {
            std::fs::create_dir_all(session.join(folder)).unwrap();
        }
        std::fs::create_dir_all(homes.sessions().join("not-a-session/overlay/work")).unwrap();
        for folder in [root.join("state"), homes.config().to_owned()] {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        }
        let ours = |all: Vec<Leftover>| all.into_iter().filter(|one| one.path.starts_with(&session)).count();
        assert_eq!(ours(gc(&homes, true).unwrap()), 1);
        assert!(session.join("overlay/work").exists(), "a dry run removes nothing");
        let all = gc(&homes, false).unwrap();
        assert!(all.iter().filter(|one| one.path.starts_with(&session)).all(|one| one.removed));
        assert_eq!(ours(all), 1);
        assert!(!session.join("overlay/work").exists() && session.join("overlay/upper").exists());
        assert!(
            session.join("quarantine").exists()
                && homes.sessions().join("not-a-session/overlay/work").exists()
        );
        assert_eq!(ours(gc(&homes, false).unwrap()), 0);
    }
}
