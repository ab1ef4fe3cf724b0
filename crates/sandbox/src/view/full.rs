use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use redoma_jail::{Cover, Grant, Layers, Piece, Rights};
use redoma_policy::{PRIVATE_FOLDERS, ResolvedPolicy, Workspace};

use super::findings::{Finding, Findings};
use super::{OWN_WRITABLE, View, is_write};
use crate::decoy::{self, Content, Seed, Shape, dotenv};
use crate::error::RunError;
use crate::small_file::{Links, SmallFile};
use crate::walk::FileKind;

/// Where an overlay keeps what it needs, in the session's folder.
pub(crate) struct OverlayFolders {
    pub(crate) upper: PathBuf,
    pub(crate) work: PathBuf,
}

/// Draws the full tier's root file system. Deny beats protect beats write beats read.
pub(crate) fn full(
    policy: &ResolvedPolicy,
    findings: &Findings,
    seed: &Seed,
    overlay: Option<&OverlayFolders>,
) -> Result<View, RunError> {
    let files = &policy.filesystem;
    let hidden = files.grants.iter().map(|grant| grant.path.as_path());
    let hidden = hidden.filter(|path| files.denied(path).is_some()).collect();
    let mut drawing = Drawing { policy, seed, hidden, view: View::default(), pieces: BTreeMap::new() };
    drawing.private_folders();
    drawing.grants();
    if let Some(folders) = overlay {
        drawing.overlay(folders)?;
    }
    drawing.protect(findings)?;
    drawing.cover(findings)?;
    let waits = |path: &Path| overlay.is_some() && path.starts_with(&policy.project);
    drawing.view.git = findings.git.clone();
    drawing.view.absent = findings.absent.iter().filter(|path| !waits(path)).cloned().collect();
    Ok(drawing.finish())
}

/// Pieces by depth and order of placing: whatever lies deeper is placed on top of what carries it.
type Place = (usize, u8, PathBuf);

struct Drawing<'a> {
    policy: &'a ResolvedPolicy,
    seed: &'a Seed,
    /// Grants that are denied as a whole: nothing of them is there. Asked for every path, and there are many rules.
    hidden: Vec<&'a Path>,
    view: View,
    pieces: BTreeMap<Place, Piece>,
}

impl Drawing<'_> {
    fn add(&mut self, piece: Piece) {
        let order = match &piece {
            Piece::Private { .. } => 0,
            Piece::Host { .. } | Piece::Bind { .. } => 1,
            Piece::Overlay { .. } => 2,
            Piece::Link { .. } => 3,
            Piece::Pin { .. } => 4,
            Piece::Cover { .. } | Piece::Replace { .. } => 5,
        };
        let at = piece.at().clone();
        self.pieces.insert((at.components().count(), order, at), piece);
    }

    fn pinned_read_only(&self, path: &Path) -> bool {
        let place = (path.components().count(), 4, path.to_owned());
        matches!(self.pieces.get(&place), Some(Piece::Pin { read_only: true, .. }))
    }

    /// Empty folders of the sandbox's own, except where the host's are granted.
    fn private_folders(&mut self) {
        let modes = |path: &str| if path == "/run" { 0o755 } else { 0o1777 };
        let fixed = PRIVATE_FOLDERS.iter().map(|path| (PathBuf::from(path), modes(path)));
        for (at, mode) in fixed.chain([(self.policy.home.clone(), 0o700)]) {
            if self.policy.filesystem.grant_for(&at).is_none() {
                self.view.access.push(Grant { path: at.clone(), rights: Rights::Write });
                self.add(Piece::Private { at, mode });
            }
        }
    }

    fn grants(&mut self) {
        let files = &self.policy.filesystem;
        for grant in &files.grants {
            if self.hidden.contains(&grant.path.as_path()) {
                continue;
            }
            let writable = is_write(grant.access) && files.protected(&grant.path).is_none();
            if writable {
                self.view.access.push(Grant { path: grant.path.clone(), rights: Rights::Write });
            }
            self.add(Piece::Host { at: grant.path.clone(), writable });
        }
        for alias in &files.aliases {
            self.add(Piece::Link { at: alias.link.clone(), target: alias.target.clone() });
        }
    }

    /// Lays the change set over the project. What must not appear there can be made in the change set, and stays in it:
    /// applying refuses it. A stand-in would be read by the very programs that it is to be kept from.
    fn overlay(&mut self, folders: &OverlayFolders) -> Result<(), RunError> {
        let (files, project) = (&self.policy.filesystem, &self.policy.project);
        if !files.grant_for(project).is_some_and(|grant| is_write(grant.access)) {
            // Laid over the whole project, the change set would show and take more than is granted; left out, what is
            // granted in the project would be written at once.
            let part =
                files.grants.iter().find(|grant| is_write(grant.access) && grant.path.starts_with(project));
            return part.map_or(Ok(()), |grant| Err(RunError::PartOfOverlay { path: grant.path.clone() }));
        }
        let (upper, work) = (folders.upper.clone(), folders.work.clone());
        let layers = Layers { lower: vec![project.clone()], upper, work, volatile: false };
        self.add(Piece::Overlay { at: project.clone(), layers });
        Ok(())
    }

    fn protect(&mut self, findings: &Findings) -> Result<(), RunError> {
        for finding in &findings.protected {
            let hidden = self.policy.filesystem.denied(&finding.path).is_some();
            if hidden || self.writable_grant_above(&finding.path).is_none() {
                continue;
            }
            if finding.kind == FileKind::Symlink {
                self.require_unwritable(finding)?;
            }
            self.pin(&finding.path, true);
        }
        // With a parent pinned, what must not appear below it cannot come in with a renamed folder.
        for absent in &findings.absent {
            self.pin_parents(absent);
        }
        Ok(())
    }

    fn pin(&mut self, path: &Path, read_only: bool) {
        self.pin_parents(path);
        if read_only || !self.pinned_read_only(path) {
            self.add(Piece::Pin { at: path.to_owned(), read_only });
        }
    }

    /// Pins one folder, if renaming it would be allowed at all.
    fn pin_below_grant(&mut self, folder: &Path) {
        if self.writable_grant_above(folder).is_some() && !self.pinned_read_only(folder) {
            self.add(Piece::Pin { at: folder.to_owned(), read_only: false });
        }
    }

    fn pin_parents(&mut self, path: &Path) {
        let Some(grant) = self.writable_grant_above(path) else { return };
        let between = path.ancestors().skip(1).take_while(|parent| *parent != grant);
        for parent in between.map(Path::to_owned).collect::<Vec<_>>() {
            if parent.is_dir() && !self.pinned_read_only(&parent) {
                self.add(Piece::Pin { at: parent, read_only: false });
            }
        }
    }

    fn writable_grant_above(&self, path: &Path) -> Option<PathBuf> {
        let grant = self.policy.filesystem.grant_for(path)?;
        let there = || !self.hidden.contains(&grant.path.as_path());
        (is_write(grant.access) && grant.path != path && there()).then(|| grant.path.clone())
    }

    fn cover(&mut self, findings: &Findings) -> Result<(), RunError> {
        let mut denied: Vec<&Finding> = findings.denied.iter().collect();
        denied.sort_by(|a, b| a.path.cmp(&b.path));
        let mut last: Option<&Path> = None;
        for finding in denied {
            // What lies in a folder that is covered already has no place left to be covered.
            if last.is_some_and(|above| finding.path.starts_with(above)) {
                continue;
            }
            last = Some(&finding.path);
            if finding.kind == FileKind::Symlink {
                self.require_unwritable(finding)?;
            } else {
                self.cover_denied(finding);
            }
        }
        let empty_file = || Cover::File(Vec::new(), 0o400);
        for path in &findings.specials {
            self.add(Piece::Cover { at: path.clone(), with: empty_file() });
        }
        for path in &findings.unreadable {
            self.add(Piece::Cover { at: path.clone(), with: Cover::Folder(Vec::new()) });
        }
        Ok(())
    }

    /// A mount needs something to lie on, and a link is nothing but a name. Covering its target alone would leave the
    /// name open for another.
    fn require_unwritable(&self, link: &Finding) -> Result<(), RunError> {
        match self.writable_grant_above(&link.path) {
            Some(_) => Err(RunError::HeldLink { path: link.path.clone() }),
            None => Ok(()),
        }
    }

    fn cover_denied(&mut self, finding: &Finding) {
        let shape = if finding.kind == FileKind::Dir { Shape::Folder } else { Shape::File };
        let visible = self.policy.filesystem.grant_for(&finding.path).is_some();
        // Outside all grants there is nothing to hide, and only a known kind of file is worth a decoy; the private
        // home is the one place where it can stand.
        let worth_a_decoy =
            finding.path.starts_with(&self.policy.home) && decoy::is_known(&finding.path, shape);
        if !(visible || worth_a_decoy) {
            return;
        }
        for folder in &finding.held_by {
            self.pin_below_grant(folder);
        }
        let original = dotenv::is_dotenv(&finding.path).then(|| read_small(&finding.path)).flatten();
        let decoy = decoy::for_path(self.seed, &finding.path, shape, original.as_deref());
        self.view.canaries.extend(decoy.canaries);
        let with = match decoy.content {
            Content::File(content) => Cover::File(content, 0o600),
            Content::Folder(files) => {
                Cover::Folder(files.into_iter().map(|(name, content)| (name, content, 0o600)).collect())
            }
        };
        self.add(Piece::Cover { at: finding.path.clone(), with });
        self.view.covered.push((finding.path.clone(), finding.origin.clone()));
    }

    fn finish(mut self) -> View {
        let covers: Vec<PathBuf> = self
            .pieces
            .values()
            .filter(|piece| matches!(piece, Piece::Cover { with: Cover::Folder(_), .. }))
            .map(|piece| piece.at().clone())
            .collect();
        // Nothing is placed inside a cover: there it would show that something is hidden.
        let inside_cover = |at: &Path| covers.iter().any(|cover| at != cover && at.starts_with(cover));
        self.view.layout = self.pieces.into_values().filter(|piece| !inside_cover(piece.at())).collect();
        self.view.access.push(Grant { path: "/".into(), rights: Rights::Read });
        let own = OWN_WRITABLE.iter().map(|path| Grant { path: path.into(), rights: Rights::Write });
        self.view.access.extend(own);
        self.view
    }
}

/// A denied dotenv file, for the names in it; one that cannot be read, or is none, shows as an empty file.
fn read_small(path: &Path) -> Option<Vec<u8>> {
    let file = SmallFile::read(path, dotenv::SIZE_MAX, Links::Refuse).ok()??;
    Some(file.bytes)
}

/// Whether the policy keeps changes to the project aside.
pub(crate) fn wants_overlay(policy: &ResolvedPolicy) -> bool {
    policy.filesystem.workspace == Workspace::Overlay
}
