//! What lies in a project now: names, attributes, links, and the content hashes that are known without reading.

use std::collections::HashMap;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, FileType, Stat};
use rustix::io::Errno;

use super::index::{self, Tracked};
use super::manifest::{Entry, Manifest, Node};
use super::rules::{self, Rules};
use super::store::Store;
use super::{Limits, UndoError};
use crate::walk::remove::open_own;
use crate::walk::tree::{self, Identity, Root};
use crate::walk::{cache, pool};

/// Whose ignore rules hold, and what is looked at in spite of them.
pub(super) enum Scope<'a> {
    /// The rules in the tree; what git tracks is never ignored.
    Present { root: &'a Root, tracked: Tracked },
    /// The rules of a kept state, whatever the session made of them; what was kept is never ignored. With `unlock`,
    /// folders that their owner (we) may not read are given back their permissions on the way.
    Kept { manifest: &'a Manifest, store: &'a Store, unlock: bool },
}

impl<'a> Scope<'a> {
    /// The rules that hold now. `git_dirs` are the git folders outside the project (of a linked worktree).
    pub(super) fn present(root: &'a Root, git_dirs: &[PathBuf]) -> Self {
        let own = read_bounded(root, b".git/index", index::SIZE_MAX);
        let outside = || {
            let opened = git_dirs.iter().filter_map(|dir| Root::open(dir).ok());
            opened.filter_map(|dir| read_bounded(&dir, b"index", index::SIZE_MAX)).next()
        };
        let tracked = Tracked::parse(&own.or_else(outside).unwrap_or_default());
        Self::Present { root, tracked }
    }

    fn is_git(&self) -> bool {
        match self {
            Self::Present { root, .. } => root.stat(tree::as_path(b".git")).is_ok(),
            Self::Kept { manifest, .. } => manifest.git,
        }
    }

    fn wants(&self, rel: &[u8], is_dir: bool) -> bool {
        match self {
            Self::Present { tracked, .. } => tracked.has(rel, is_dir),
            Self::Kept { manifest, .. } => manifest.find(rel).is_some(),
        }
    }

    fn text(&self, rel: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Present { root, .. } => read_bounded(root, rel, rules::SIZE_MAX),
            Self::Kept { manifest, store, .. } => match manifest.find(rel)?.node {
                Node::File { size, hash: Some(hash) } if size <= rules::SIZE_MAX => store.read(&hash).ok(),
                _ => None,
            },
        }
    }
}

/// A regular file's content, unless it is larger than `max`.
fn read_bounded(root: &Root, rel: &[u8], max: u64) -> Option<Vec<u8>> {
    let file = std::fs::File::from(root.file(tree::as_path(rel)).ok()?);
    let fits = file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= max);
    let mut content = Vec::new();
    let read = fits.then(|| file.take(max).read_to_end(&mut content));
    read?.ok().map(|_| content)
}

/// Scans the project. A hash is carried over from `known` where the file is surely the same, and missing elsewhere.
pub(super) fn scan(
    root: &Root,
    scope: &Scope<'_>,
    known: Option<&Manifest>,
    limits: &Limits,
) -> Result<Manifest, UndoError> {
    let git = scope.is_git();
    let folder = Folder { root, scope, known, limits, began: tree::now(), git, seen: AtomicU64::new(0) };
    let seed = Task { rel: Vec::new(), rules: Arc::default(), inside_git: !git };
    let states = (0..pool::threads()).map(|_| Worker::default()).collect();
    let workers =
        pool::drain(vec![seed], states, |worker: &mut Worker, task, next| folder.visit(worker, &task, next))?;
    let mut manifest = Manifest { git, ..Manifest::default() };
    for worker in workers {
        manifest.ignored += worker.ignored;
        manifest.unkept += worker.unkept;
        manifest.entries.extend(worker.entries);
    }
    manifest.entries.sort_by(|a, b| a.rel.cmp(&b.rel));
    Ok(manifest)
}

/// Whether everything in `manifest` is as it was: one stat per entry, in two threads. A new name changes its folder.
pub(super) fn unchanged(root: &Root, manifest: &Manifest) -> bool {
    let same = |entry: &Entry| {
        let path = if entry.rel.is_empty() { b"." } else { entry.rel.as_slice() };
        let stat = rustix::fs::statat(root.fd(), path, AtFlags::SYMLINK_NOFOLLOW);
        !entry.racy && stat.is_ok_and(|stat| Identity::of(&stat) == entry.identity)
    };
    let (left, right) = manifest.entries.split_at(manifest.entries.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| right.iter().all(same));
        left.iter().all(same) && other.join().unwrap_or(false)
    })
}

struct Task {
    rel: Vec<u8>,
    rules: Arc<Rules>,
    /// No rules hold here: within `.git`, and everywhere if the project is no git tree.
    inside_git: bool,
}

struct Worker {
    entries: Vec<Entry>,
    ignored: u64,
    unkept: u64,
    buffer: Vec<MaybeUninit<u8>>,
    trusted: HashMap<u64, bool>,
}

impl Default for Worker {
    fn default() -> Self {
        let buffer = tree::dirent_buffer();
        Self { entries: Vec::new(), ignored: 0, unkept: 0, buffer, trusted: HashMap::new() }
    }
}

struct Folder<'a> {
    root: &'a Root,
    scope: &'a Scope<'a>,
    known: Option<&'a Manifest>,
    limits: &'a Limits,
    began: i64,
    git: bool,
    seen: AtomicU64,
}

impl Folder<'_> {
    fn visit(&self, worker: &mut Worker, task: &Task, next: &mut Vec<Task>) -> Result<(), UndoError> {
        let failed = |source| UndoError::read(self.root, &task.rel, source);
        let dir = match self.open(&task.rel) {
            Ok(dir) => dir,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !task.rel.is_empty() => return Ok(()),
            Err(Errno::ACCESS) if !task.rel.is_empty() => {
                worker.unkept += 1;
                return Ok(());
            }
            Err(error) => return Err(failed(error)),
        };
        if task.rel.is_empty() {
            let stat = rustix::fs::fstat(&dir).map_err(failed)?;
            let top = self.entry(worker, &dir, Vec::new(), Node::Dir, &stat);
            worker.entries.push(top);
        }
        let mut names = Vec::new();
        tree::list(&dir, &mut worker.buffer, |entry| {
            names.push(entry.name.to_vec());
            Ok(())
        })
        .map_err(failed)?;
        self.count(names.len())?;
        let rules = self.rules(task);
        for name in &names {
            self.name(worker, &dir, name, task, &rules, next).map_err(failed)?;
        }
        Ok(())
    }

    fn open(&self, rel: &[u8]) -> Result<OwnedFd, Errno> {
        let rel = tree::as_path(rel);
        match self.root.dir(rel) {
            Err(Errno::ACCESS) if matches!(self.scope, Scope::Kept { unlock: true, .. }) => {
                let (parent, name) = self.root.parent(rel)?;
                open_own(parent, name)
            }
            dir => dir,
        }
    }

    fn count(&self, names: usize) -> Result<(), UndoError> {
        let seen = self.seen.fetch_add(names as u64, Ordering::Relaxed) + names as u64;
        let limit = self.limits.files;
        if seen > limit { Err(UndoError::TooMany { path: self.root.path().into(), limit }) } else { Ok(()) }
    }

    fn rules(&self, task: &Task) -> Arc<Rules> {
        if task.inside_git {
            return Arc::clone(&task.rules);
        }
        let texts: Vec<_> = rules::sources(&task.rel).iter().filter_map(|rel| self.scope.text(rel)).collect();
        Rules::below(&task.rules, &task.rel, &texts)
    }

    fn name(
        &self,
        worker: &mut Worker,
        dir: &OwnedFd,
        name: &[u8],
        task: &Task,
        rules: &Arc<Rules>,
        next: &mut Vec<Task>,
    ) -> Result<(), Errno> {
        let rel = tree::join(&task.rel, name);
        let stat = match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(()),
            stat => stat?,
        };
        let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let inside_git = task.inside_git || (self.git && rules::is_git(name));
        let kept_anyway = || inside_git || rules::is_rules(name) || self.scope.wants(&rel, is_dir);
        if rules.ignore(&rel, is_dir) && !kept_anyway() {
            worker.ignored += 1;
            return Ok(());
        }
        let Some(node) = self.node(dir, name, &rel, &stat)? else {
            worker.unkept += 1;
            return Ok(());
        };
        let entry = self.entry(worker, dir, rel, node, &stat);
        if is_dir {
            next.push(Task { rel: entry.rel.clone(), rules: Arc::clone(rules), inside_git });
        }
        worker.entries.push(entry);
        Ok(())
    }

    fn node(&self, dir: &OwnedFd, name: &[u8], rel: &[u8], stat: &Stat) -> Result<Option<Node>, Errno> {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Ok(Some(Node::Dir)),
            FileType::Symlink => match rustix::fs::readlinkat(dir, name, Vec::new()) {
                Ok(target) => Ok(Some(Node::Link(target.into_bytes()))),
                Err(Errno::INVAL | Errno::NOENT) => Ok(None),
                Err(error) => Err(error),
            },
            FileType::RegularFile => {
                let size = u64::try_from(stat.st_size).unwrap_or(0);
                Ok(Some(Node::File { size, hash: self.known_hash(rel, stat) }))
            }
            _ => Ok(None),
        }
    }

    fn known_hash(&self, rel: &[u8], stat: &Stat) -> Option<[u8; 32]> {
        let entry =
            self.known?.find(rel).filter(|entry| !entry.racy && entry.identity == Identity::of(stat))?;
        match entry.node {
            Node::File { size, hash } if i64::try_from(size).ok() == Some(stat.st_size) => hash,
            _ => None,
        }
    }

    fn entry(&self, worker: &mut Worker, dir: &OwnedFd, rel: Vec<u8>, node: Node, stat: &Stat) -> Entry {
        let identity = Identity::of(stat);
        let trusted = *worker.trusted.entry(identity.dev).or_insert_with(|| cache::keeps_ctime(dir));
        Entry {
            rel,
            node,
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            mtime: tree::nanos(stat.st_mtime, stat.st_mtime_nsec),
            identity,
            racy: identity.is_racy(self.began) || !trusted,
        }
    }
}

/// Reads the files whose hash is missing and keeps their content. What cannot be read is left out and counted.
pub(super) fn fill(root: &Root, manifest: &mut Manifest, store: &Store) -> Result<(), UndoError> {
    let missing = |entry: &Entry| matches!(entry.node, Node::File { hash: None, .. });
    let mut absent = Vec::new();
    let (todo, done): (Vec<Entry>, Vec<Entry>) =
        std::mem::take(&mut manifest.entries).into_iter().partition(missing);
    let states = (0..pool::threads()).map(|_| (Vec::new(), Vec::new())).collect();
    let workers =
        pool::drain(todo, states, |(kept, left): &mut (Vec<Entry>, Vec<Entry>), mut entry: Entry, _| {
            match keep(root, &mut entry, store) {
                Ok(true) => kept.push(entry),
                Ok(false) => left.push(entry),
                Err(source) => {
                    let path = root.path().join(tree::as_path(&entry.rel));
                    return Err(UndoError::Keep { path, source });
                }
            }
            Ok(())
        })?;
    manifest.entries = done;
    for (kept, left) in workers {
        manifest.entries.extend(kept);
        absent.extend(left);
    }
    manifest.unkept += absent.len() as u64;
    manifest.entries.sort_by(|a, b| a.rel.cmp(&b.rel));
    Ok(())
}

/// Whether the file's content is kept now. The attributes are taken anew, before the content: a change while reading
/// makes them differ from what the next look finds.
fn keep(root: &Root, entry: &mut Entry, store: &Store) -> std::io::Result<bool> {
    let file = match root.file(tree::as_path(&entry.rel)) {
        Err(Errno::ACCESS | Errno::PERM | Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => {
            return Ok(false);
        }
        file => file?,
    };
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(false);
    }
    entry.identity = Identity::of(&stat);
    entry.racy |= entry.identity.is_racy(tree::now());
    let (hash, size) = store.keep(file, u64::try_from(stat.st_size).unwrap_or(0))?;
    entry.node = Node::File { size, hash: Some(hash) };
    Ok(true)
}

/// The hash of a file that is there now, without keeping it; none if it is no regular file (any more).
pub(super) fn hash(root: &Root, rel: &[u8]) -> std::io::Result<Option<[u8; 32]>> {
    let file = match root.file(tree::as_path(rel)) {
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO | Errno::ACCESS) => return Ok(None),
        file => std::fs::File::from(file?),
    };
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(file)?;
    Ok(Some(*hasher.finalize().as_bytes()))
}
