use std::fs;
use std::path::{Path, PathBuf};

use redoma_jail::{Grant, Rights};
use redoma_policy::{Access, ResolvedPolicy, Tier, Workspace};

use super::View;
use super::findings::Findings;
use crate::error::RunError;

/// Landlock grants whole trees and takes nothing back below them: what would need that is refused by name. `temporary`
/// is the session's own folder for temporary files.
pub(crate) fn landlock(
    policy: &ResolvedPolicy,
    findings: &Findings,
    temporary: &Path,
) -> Result<View, RunError> {
    if policy.filesystem.workspace == Workspace::Overlay {
        return Err(refused("keep changes aside (workspace = \"overlay\")", "use `--workspace direct`"));
    }
    let hidden: Vec<&Path> = hidden(findings).collect();
    let mut view = View::default();
    let files = &policy.filesystem;
    for grant in files.grants.iter().filter(|grant| files.denied(&grant.path).is_none()) {
        match grant.access {
            Access::Write => view.access.push(whole(policy, findings, &hidden, &grant.path)?),
            Access::Read => carve(&mut view.access, &grant.path, &hidden)?,
        }
    }
    for path in redoma_policy::devices(Tier::Landlock).iter().map(Path::new).filter(|path| path.exists()) {
        view.access.push(Grant { path: path.to_owned(), rights: Rights::Write });
    }
    view.access.push(Grant { path: "/proc".into(), rights: Rights::Read });
    view.access.push(Grant { path: temporary.to_owned(), rights: Rights::Write });
    view.absent.clone_from(&findings.absent);
    view.git.clone_from(&findings.git);
    view.covered = findings
        .denied
        .iter()
        .filter(|finding| files.grant_for(&finding.path).is_some())
        .map(|finding| (finding.path.clone(), finding.origin.clone()))
        .collect();
    Ok(view)
}

/// A host's socket or FIFO is hidden like a denied file.
fn hidden(findings: &Findings) -> impl Iterator<Item = &Path> {
    let denied = findings.denied.iter().map(|finding| finding.path.as_path());
    let others = findings.specials.iter().chain(&findings.unreadable).map(PathBuf::as_path);
    denied.chain(others)
}

fn whole(
    policy: &ResolvedPolicy,
    findings: &Findings,
    hidden: &[&Path],
    grant: &Path,
) -> Result<Grant, RunError> {
    let below = |path: &&&Path| path.starts_with(grant);
    if let Some(path) = hidden.iter().find(below) {
        return Err(refused(
            &format!("hide {path:?} below {grant:?}, which is granted for writing"),
            "grant folders beside it one by one (`--profile strict --write src`)",
        ));
    }
    if let Some(finding) = findings.protected.iter().find(|finding| finding.path.starts_with(grant)) {
        return Err(refused(
            &format!("protect {:?} below {grant:?}, which is granted for writing", finding.path),
            "make the project read-only and grant single folders (`--profile strict --write src`)",
        ));
    }
    let rights = if policy.filesystem.protected(grant).is_some() { Rights::Read } else { Rights::Write };
    Ok(Grant { path: grant.to_owned(), rights })
}

/// Grants a folder for reading, but for what is hidden: then each of its other entries by itself, and the names.
fn carve(access: &mut Vec<Grant>, folder: &Path, hidden: &[&Path]) -> Result<(), RunError> {
    const MOST: usize = 20_000;
    if hidden.iter().any(|path| folder.starts_with(path)) {
        return Ok(());
    }
    if !hidden.iter().any(|path| path.starts_with(folder)) {
        access.push(Grant { path: folder.to_owned(), rights: Rights::Read });
        return Ok(());
    }
    let unreadable = |source| RunError::Prepare { what: "the folder", path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        // What a link leads to is granted where it lies, or not at all.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            carve(access, &entry.path(), hidden)?;
        }
        if access.len() > MOST {
            return Err(refused(
                &format!(
                    "grant {folder:?} file by file: it has more than {MOST} entries beside what is denied"
                ),
                "grant a smaller folder",
            ));
        }
    }
    // The right to list holds for everything below: not where that would tell the names in a hidden folder.
    if !hidden.iter().any(|path| path.starts_with(folder) && path.is_dir()) {
        access.push(Grant { path: folder.to_owned(), rights: Rights::List });
    }
    Ok(())
}

fn refused(what: &str, hint: &str) -> RunError {
    RunError::Jail(redoma_jail::JailError::Tier {
        tier: "landlock",
        what: what.to_owned(),
        hint: hint.to_owned(),
    })
}
