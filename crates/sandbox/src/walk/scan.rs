//! The walk itself: folders in, records out, a record being all that is worth knowing about one folder.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;

use super::cache::{self, Cached};
use super::tree::{self, Identity, Root};
use super::{FileKind, Match, Verdict, Walk, WalkError, pool};

/// Linux refuses longer paths with `ENAMETOOLONG`; the terminating NUL counts.
const PATH_MAX: usize = 4096;

/// All that one pass over all roots brought to light.
#[derive(Default)]
pub(super) struct Answer {
    /// Per root, its records in path order.
    pub(super) roots: Vec<(PathBuf, Vec<Record>)>,
    /// The inodes whose names are marked in the records, whether read now or earlier.
    pub(super) inodes: BTreeSet<u64>,
    pub(super) dirs_read: usize,
}

/// One folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// Relative to the root; empty for the root itself.
    pub(super) rel: CString,
    pub(super) identity: Identity,
    /// Must be read again next time, whatever its ctime says.
    pub(super) again: bool,
    /// What is worth knowing about its names.
    pub(super) notes: Vec<Note>,
}

/// One name in a folder that is worth knowing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) name: Vec<u8>,
    pub(super) kind: FileKind,
    pub(super) matched: Option<Match>,
    /// The inode, if it is one that was looked for.
    pub(super) inode: Option<u64>,
    /// A folder that could not be opened.
    pub(super) unreadable: bool,
}

/// The roots, held open, and the bounds.
pub(super) struct Scan<'a> {
    walk: &'a Walk<'a>,
    roots: Vec<Root>,
    began: Instant,
    seen: AtomicU64,
}

impl<'a> Scan<'a> {
    pub(super) fn open(walk: &'a Walk<'a>, paths: &[PathBuf]) -> Result<Self, WalkError> {
        let mut paths: Vec<&PathBuf> = paths.iter().collect();
        paths.sort();
        paths.dedup_by(|inner, outer| inner.starts_with(outer));
        let open = |path: &&PathBuf| Root::open(path).map_err(|source| read_error(path, source));
        let roots = paths.iter().map(open).collect::<Result<_, _>>()?;
        Ok(Self { walk, roots, began: Instant::now(), seen: AtomicU64::new(0) })
    }

    /// One pass over all roots, marking the names of `inodes`. With none to mark, a cache is as good as a look.
    pub(super) fn all(&self, inodes: &[u64]) -> Result<Answer, WalkError> {
        self.seen.store(0, Ordering::Relaxed);
        let mut answer = Answer::default();
        for root in &self.roots {
            let (records, read, marked) = self.root(root, inodes)?;
            // What a cache marked for all roots counts; what it marked for some does not.
            answer.inodes = if answer.roots.is_empty() { marked } else { &answer.inodes & &marked };
            answer.dirs_read += read;
            answer.roots.push((root.path().to_path_buf(), records));
        }
        Ok(answer)
    }

    fn root(&self, root: &Root, inodes: &[u64]) -> Result<(Vec<Record>, usize, BTreeSet<u64>), WalkError> {
        let cached = self.walk.cache.and_then(|dir| cache::load(dir, root.path(), self.walk.fingerprint));
        let cached = cached.filter(|cached| inodes.iter().all(|inode| cached.inodes.contains(inode)));
        let Some(Cached { inodes, records }) = cached else {
            let wanted: BTreeSet<u64> = inodes.iter().copied().collect();
            let (records, read) = self.read(root, &wanted, vec![CString::default()], &[])?;
            self.store(root, &wanted, &records);
            return Ok((records, read, wanted));
        };
        let (records, read) = self.refresh(root, &inodes, records)?;
        Ok((records, read, inodes))
    }

    /// Reads what changed since `records` were made, and what is new below that; keeps the rest.
    fn refresh(
        &self,
        root: &Root,
        inodes: &BTreeSet<u64>,
        records: Vec<Record>,
    ) -> Result<(Vec<Record>, usize), WalkError> {
        let valid = still_valid(root, &records);
        if valid.iter().all(|valid| *valid) {
            return Ok((records, 0));
        }
        let changed = records.iter().zip(&valid).filter(|(_, valid)| !**valid);
        let seeds = changed.map(|(record, _)| record.rel.clone()).collect();
        let (fresh, read) = self.read(root, inodes, seeds, &records)?;
        let (kept, stale): (Vec<_>, Vec<_>) = records.into_iter().zip(valid).partition(|(_, valid)| *valid);
        let same = stale.iter().map(|(record, _)| record).eq(&fresh);
        let gone = vanished(&stale, &fresh);
        let mut records: Vec<Record> = kept.into_iter().map(|(record, _)| record).chain(fresh).collect();
        records.sort_by(|a, b| a.rel.cmp(&b.rel));
        gone.iter().for_each(|rel| forget_below(&mut records, rel));
        if !same {
            self.store(root, inodes, &records);
        }
        Ok((records, read))
    }

    /// A cache that cannot be written costs time at the next start, nothing else.
    fn store(&self, root: &Root, inodes: &BTreeSet<u64>, records: &[Record]) {
        if let Some(dir) = self.walk.cache {
            let _slower_next_time = cache::store(dir, root.path(), self.walk.fingerprint, inodes, records);
        }
    }

    /// Reads the folders of `seeds` and all folders below them that `known` has no record of.
    fn read(
        &self,
        root: &Root,
        inodes: &BTreeSet<u64>,
        seeds: Vec<CString>,
        known: &[Record],
    ) -> Result<(Vec<Record>, usize), WalkError> {
        let states = (0..pool::threads()).map(|_| Worker::new()).collect();
        let folder = Folder { scan: self, root, inodes, known };
        let workers =
            pool::drain(seeds, states, |worker: &mut Worker, rel: CString, next: &mut Vec<CString>| {
                if self.bounds(root, &rel)? { folder.visit(worker, rel, next) } else { Ok(()) }
            })?;
        let read = workers.iter().map(|worker| worker.read).sum();
        let mut records: Vec<Record> = workers.into_iter().flat_map(|worker| worker.records).collect();
        records.sort_by(|a, b| a.rel.cmp(&b.rel));
        Ok((records, read))
    }

    /// Whether the folder is to be visited.
    fn bounds(&self, root: &Root, rel: &CStr) -> Result<bool, WalkError> {
        let limits = self.walk.limits;
        let path = || root.path().join(tree::as_path(rel.to_bytes()));
        if self.seen.load(Ordering::Relaxed) > limits.entries {
            return Err(WalkError::TooMany { root: root.path().into(), path: path(), limit: limits.entries });
        }
        if self.began.elapsed() > limits.time {
            return Err(WalkError::TooSlow { root: root.path().into(), path: path(), limit: limits.time });
        }
        if root.path().as_os_str().len() + rel.count_bytes() + 2 > PATH_MAX {
            if limits.pass_over_deep {
                return Ok(false);
            }
            let cut = rel.to_bytes().get(..256).unwrap_or_default();
            return Err(WalkError::TooDeep { path: root.path().join(tree::as_path(cut)) });
        }
        Ok(true)
    }
}

/// The folders of `stale` that are in `fresh` no more. Both are in path order.
fn vanished(stale: &[(Record, bool)], fresh: &[Record]) -> Vec<CString> {
    let is_gone = |rel: &CString| fresh.binary_search_by(|record| record.rel.cmp(rel)).is_err();
    stale.iter().map(|(record, _)| &record.rel).filter(|rel| is_gone(rel)).cloned().collect()
}

/// Drops the records below `rel`. They may look valid still: a folder moved away and replaced by a link to its new place.
fn forget_below(records: &mut Vec<Record>, rel: &CStr) {
    let prefix = tree::join(rel.to_bytes(), b"");
    let start = records.partition_point(|record| record.rel.to_bytes() < prefix.as_slice());
    let length = records[start..].partition_point(|record| record.rel.to_bytes().starts_with(&prefix));
    records.drain(start..start + length);
}

/// Compares each record with what is there now, in two threads: one stat per folder is all that a warm start costs.
///
/// A link in the middle of the path is followed here, and that is harmless: what it leads to has another inode.
fn still_valid(root: &Root, records: &[Record]) -> Vec<bool> {
    let check = |record: &Record| {
        let path = if record.rel.is_empty() { c"." } else { record.rel.as_c_str() };
        let stat = rustix::fs::statat(root.fd(), path, AtFlags::SYMLINK_NOFOLLOW);
        !record.again && stat.is_ok_and(|stat| Identity::of(&stat) == record.identity)
    };
    let check_all = |records: &[Record]| records.iter().map(check).collect::<Vec<bool>>();
    if records.len() < 256 {
        return check_all(records);
    }
    let (left, right) = records.split_at(records.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| check_all(right));
        let mut valid = check_all(left);
        // A thread that panicked proves nothing about its half, so that half is read again.
        valid.extend(other.join().unwrap_or_else(|_| vec![false; right.len()]));
        valid
    })
}

/// What one thread has gathered.
struct Worker {
    records: Vec<Record>,
    read: usize,
    path: Vec<u8>,
    buffer: Vec<MaybeUninit<u8>>,
    /// Which file systems (by device number) stamp folders in a way that can be relied on.
    trusted: HashMap<u64, bool>,
}

impl Worker {
    fn new() -> Self {
        let buffer = tree::dirent_buffer();
        Self { records: Vec::new(), read: 0, path: Vec::new(), buffer, trusted: HashMap::new() }
    }

    fn trusts(&mut self, dev: u64, dir: &OwnedFd) -> bool {
        *self.trusted.entry(dev).or_insert_with(|| cache::keeps_ctime(dir))
    }
}

/// How a folder is visited: what does not change from folder to folder.
struct Folder<'s, 'a> {
    scan: &'s Scan<'a>,
    root: &'s Root,
    inodes: &'s BTreeSet<u64>,
    /// Folders with a record, in path order: not to be visited unless they are seeds.
    known: &'s [Record],
}

impl Folder<'_, '_> {
    fn visit(&self, worker: &mut Worker, rel: CString, next: &mut Vec<CString>) -> Result<(), WalkError> {
        let dir = match open_dir(self.root, &rel) {
            Ok(dir) => dir,
            // Gone, or replaced by something that is no folder, since its parent was read: the parent's ctime tells so
            // next time, and whatever is made from now on is made by others than the session.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !rel.is_empty() => return Ok(()),
            Err(Errno::ACCESS | Errno::PERM) if !rel.is_empty() => {
                worker.records.push(unreadable(self.root, rel));
                return Ok(());
            }
            Err(source) => return Err(self.failed(&rel, source)),
        };
        self.read(worker, &dir, rel, next)
    }

    fn read(
        &self,
        worker: &mut Worker,
        dir: &OwnedFd,
        rel: CString,
        next: &mut Vec<CString>,
    ) -> Result<(), WalkError> {
        // Both before the names are read: a change while reading makes the record invalid or racy.
        let now = tree::now();
        let stat = rustix::fs::fstat(dir).map_err(|source| self.failed(&rel, source))?;
        let identity = Identity::of(&stat);
        let again = identity.is_racy(now) || !worker.trusts(identity.dev, dir);

        let mut buffer = std::mem::take(&mut worker.buffer);
        let names = self.names(worker, dir, &rel, &mut buffer, next);
        worker.buffer = buffer;
        let notes = names.map_err(|source| self.failed(&rel, source))?;

        worker.read += 1;
        worker.records.push(Record { rel, identity, again, notes });
        Ok(())
    }

    fn names(
        &self,
        worker: &mut Worker,
        dir: &OwnedFd,
        rel: &CStr,
        buffer: &mut [MaybeUninit<u8>],
        next: &mut Vec<CString>,
    ) -> Result<Vec<Note>, Errno> {
        let mut notes = Vec::new();
        let mut count = 0;
        let path = &mut worker.path;
        let base = start_path(path, self.root.path(), rel.to_bytes());
        tree::list(dir, buffer, |entry| {
            count += 1;
            path.truncate(base);
            path.extend_from_slice(entry.name);
            let kind = FileKind::from_type(entry.kind);
            let matched = (self.scan.walk.matcher)(tree::as_path(path), kind);
            let inode = (entry.kind == FileType::RegularFile && self.inodes.contains(&entry.ino))
                .then_some(entry.ino);
            if kind == FileKind::Dir && !matches!(matched, Some(Match { verdict: Verdict::Deny, .. })) {
                let rel = CString::new(tree::join(rel.to_bytes(), entry.name)).map_err(|_| Errno::INVAL)?;
                if self.known.binary_search_by(|record| record.rel.cmp(&rel)).is_err() {
                    next.push(rel);
                }
            }
            if matched.is_some() || kind.is_special() || inode.is_some() {
                notes.push(Note { name: entry.name.to_vec(), kind, matched, inode, unreadable: false });
            }
            Ok(())
        })?;
        self.scan.seen.fetch_add(count, Ordering::Relaxed);
        Ok(notes)
    }

    fn failed(&self, rel: &CStr, source: Errno) -> WalkError {
        read_error(&self.root.path().join(tree::as_path(rel.to_bytes())), source)
    }
}

/// The record of a folder that may not be read. A chmod would give it a new ctime, so it is as good as any other.
fn unreadable(root: &Root, rel: CString) -> Record {
    let note = Note { name: Vec::new(), kind: FileKind::Dir, matched: None, inode: None, unreadable: true };
    let stat = root.stat(tree::as_path(rel.to_bytes()));
    let again = stat.as_ref().map_or(true, |stat| Identity::of(stat).is_racy(tree::now()));
    let identity = stat.map_or(Identity { dev: 0, ino: 0, ctime: 0 }, |stat| Identity::of(&stat));
    Record { rel, identity, again, notes: vec![note] }
}

fn open_dir(root: &Root, rel: &CStr) -> Result<OwnedFd, Errno> {
    root.dir(tree::as_path(rel.to_bytes()))
}

/// Writes `root/rel/` into `path` and gives its length.
fn start_path(path: &mut Vec<u8>, root: &Path, rel: &[u8]) -> usize {
    use std::os::unix::ffi::OsStrExt;
    path.clear();
    path.extend_from_slice(root.as_os_str().as_bytes());
    for part in [b"".as_slice(), rel] {
        if !path.ends_with(b"/") {
            path.push(b'/');
        }
        path.extend_from_slice(part);
    }
    if !path.ends_with(b"/") {
        path.push(b'/');
    }
    path.len()
}

fn read_error(path: &Path, source: Errno) -> WalkError {
    WalkError::Read { path: path.to_path_buf(), source }
}

impl Record {
    /// The absolute path of one of its notes; an unreadable folder's note has no name and is the folder itself.
    pub(super) fn path(&self, root: &Path, note: &Note) -> PathBuf {
        let dir = if self.rel.is_empty() {
            root.to_path_buf()
        } else {
            root.join(tree::as_path(self.rel.to_bytes()))
        };
        if note.name.is_empty() { dir } else { dir.join(tree::as_path(&note.name)) }
    }
}

/// The kind of file system `dir` lies on: statfs(2), `f_type`.
pub(super) fn magic(dir: impl AsFd) -> Option<u64> {
    rustix::fs::fstatfs(dir).ok().and_then(|fs| u64::try_from(fs.f_type).ok())
}
