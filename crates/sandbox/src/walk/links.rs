//! Other names of denied and protected files.
//!
//! A cover lies over a name, not over an inode: a hard link made earlier would still lead to the content. So every such
//! file with more than one link is counted, and if not all its names are known already, they are looked for by inode.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem::MaybeUninit;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType};

use super::scan::{Answer, Note};
use super::tree::{self, Root};
use super::{Alias, Found, Hit, Match, Verdict, Walk};

/// Files looked at in one denied or protected folder. More (a denied `node_modules`, say) would cost more than the rest
/// of the walk; such a folder is named in [`Found::unchecked`].
const FILES_PER_FOLDER: usize = 4096;

/// A denied or protected file with several names.
struct Linked {
    path: PathBuf,
    matched: Match,
    names_known: u64,
    nlink: u64,
}

/// All of those, by device and inode.
#[derive(Default)]
pub(super) struct Links {
    files: BTreeMap<(u64, u64), Linked>,
    unchecked: Vec<PathBuf>,
}

impl Links {
    pub(super) fn of(walk: &Walk<'_>, answer: &Answer) -> Self {
        let mut links = Self::default();
        let mut counted = BTreeSet::new();
        let matched = answer.roots.iter().flat_map(|(root, records)| {
            records.iter().flat_map(move |record| {
                let noted = move |note: &Note| ruled(note).map(|matched| (record.path(root, note), matched));
                record.notes.iter().filter_map(noted)
            })
        });
        for (path, matched) in matched.chain(walk.sought.iter().cloned()) {
            if counted.insert(path.clone()) {
                links.add(path, matched);
            }
        }
        links
    }

    /// What cannot be stat'ed has vanished or is out of the user's own reach, and so out of the sandbox's.
    fn add(&mut self, path: PathBuf, matched: Match) {
        let Ok(stat) = std::fs::symlink_metadata(&path) else { return };
        if stat.is_file() {
            self.count((stat.dev(), stat.ino()), path, matched, stat.nlink());
        } else if stat.is_dir() {
            let mut budget = FILES_PER_FOLDER;
            self.add_folder(&path, matched, &mut budget);
            if budget == 0 {
                self.unchecked.push(path);
            }
        }
    }

    fn count(&mut self, inode: (u64, u64), path: PathBuf, matched: Match, nlink: u64) {
        if nlink < 2 {
            return;
        }
        let linked = self.files.entry(inode).or_insert(Linked { path, matched, names_known: 0, nlink });
        linked.names_known += 1;
        linked.matched = linked.matched.min(matched);
    }

    fn add_folder(&mut self, path: &Path, matched: Match, budget: &mut usize) {
        let Ok(root) = Root::open(path) else { return };
        let mut folders = vec![Vec::new()];
        let mut buffer = tree::dirent_buffer();
        while let Some(rel) = folders.pop() {
            if *budget == 0 {
                return;
            }
            self.add_files(&root, &rel, matched, budget, &mut folders, &mut buffer);
        }
    }

    fn add_files(
        &mut self,
        root: &Root,
        rel: &[u8],
        matched: Match,
        budget: &mut usize,
        folders: &mut Vec<Vec<u8>>,
        buffer: &mut [MaybeUninit<u8>],
    ) {
        let Ok(dir) = root.dir(tree::as_path(rel)) else { return };
        // An error here is a folder that changes under us: what it held is not reachable by its old name either.
        let _vanished = tree::list(&dir, buffer, |entry| {
            if *budget == 0 {
                return Ok(());
            }
            *budget -= 1;
            let inner = tree::join(rel, entry.name);
            match entry.kind {
                FileType::Directory => folders.push(inner),
                FileType::RegularFile => {
                    let stat =
                        rustix::fs::statat(&dir, tree::as_path(entry.name), AtFlags::SYMLINK_NOFOLLOW)?;
                    let path = root.path().join(tree::as_path(&inner));
                    #[allow(clippy::useless_conversion, reason = "the width differs between architectures")]
                    self.count((stat.st_dev, stat.st_ino), path, matched, stat.st_nlink.into());
                }
                _ => {}
            }
            Ok(())
        });
    }

    /// Whether some name is unknown and `marked` (the inodes whose names the records mark already) cannot tell it.
    pub(super) fn need_search(&mut self, marked: &BTreeSet<u64>) -> bool {
        self.files.retain(|_, file| file.names_known < file.nlink);
        self.files.keys().any(|(_, inode)| !marked.contains(inode))
    }

    pub(super) fn inodes(&self) -> Vec<u64> {
        self.files.keys().map(|(_, inode)| *inode).collect()
    }

    /// Makes the answer of what the records hold.
    pub(super) fn name(self, answer: &Answer) -> Found {
        let mut found =
            Found { dirs_read: answer.dirs_read, unchecked: self.unchecked.clone(), ..Found::default() };
        let by_inode: HashMap<u64, Vec<(u64, &Linked)>> =
            self.files.iter().fold(HashMap::new(), |mut map, ((dev, inode), file)| {
                map.entry(*inode).or_insert_with(Vec::new).push((*dev, file));
                map
            });
        for (root, records) in &answer.roots {
            found.dirs += records.len();
            for record in records {
                for note in &record.notes {
                    let path = record.path(root, note);
                    let linked = note.inode.and_then(|inode| by_inode.get(&inode));
                    if let (Some(linked), None) = (linked, ruled(note)) {
                        found.aliases.extend(alias(&path, linked));
                    }
                    found.note(path, note);
                }
            }
        }
        found
    }
}

impl Found {
    fn note(&mut self, path: PathBuf, note: &Note) {
        if note.unreadable {
            self.unreadable.push(path);
        } else if let Some(matched) = note.matched {
            self.hits.push(Hit { path, kind: note.kind, matched });
        } else if note.kind.is_special() {
            self.specials.push((path, note.kind));
        }
    }
}

/// The denial or protection that holds for a name.
fn ruled(note: &Note) -> Option<Match> {
    note.matched.filter(|matched| matched.verdict != Verdict::Note)
}

/// An inode number is unique on its file system only, so the device is asked for at last.
fn alias(path: &Path, linked: &[(u64, &Linked)]) -> Option<Alias> {
    let dev = std::fs::symlink_metadata(path).ok()?.dev();
    let (_, file) = linked.iter().find(|(other, file)| *other == dev && file.path != path)?;
    Some(Alias { path: path.to_path_buf(), of: file.path.clone(), matched: file.matched })
}
