//! Contents by their BLAKE3 hash, and the manifests that refer to them, in one folder per project.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::FlockOperation;

use super::UndoError;
use super::manifest::{Manifest, Node};

/// Up to this size a file is read whole before it is written.
const SMALL: u64 = 1 << 20;

/// The store of one project, locked against other preparations and undoings while it is held.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    _lock: File,
    next: AtomicU64,
}

impl Store {
    pub(super) fn open(path: &Path) -> Result<Self, UndoError> {
        let failed = |source| UndoError::Store { path: path.to_path_buf(), source };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(path.join("blobs")).map_err(failed)?;
        let mut options = fs::OpenOptions::new();
        let lock = options
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path.join("lock"))
            .map_err(failed)?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
        let store = Self { path: path.to_path_buf(), _lock: lock, next: AtomicU64::new(0) };
        store.clean().map_err(failed)?;
        Ok(store)
    }

    /// What a killed preparation left half written.
    fn clean(&self) -> std::io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(b"new-") {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    fn blob(&self, hash: &[u8; 32]) -> PathBuf {
        let hex = blake3::Hash::from_bytes(*hash).to_hex();
        self.path.join("blobs").join(&hex[..2]).join(&hex[2..])
    }

    pub(super) fn open_blob(&self, hash: &[u8; 32]) -> std::io::Result<File> {
        File::open(self.blob(hash))
    }

    pub(super) fn read(&self, hash: &[u8; 32]) -> std::io::Result<Vec<u8>> {
        fs::read(self.blob(hash))
    }

    /// Keeps what `file` holds, and gives its hash and how many bytes that is.
    pub(super) fn keep(&self, file: OwnedFd, size: u64) -> std::io::Result<([u8; 32], u64)> {
        let file = File::from(file);
        if size <= SMALL { self.keep_small(file) } else { self.keep_large(file) }
    }

    fn keep_small(&self, mut file: File) -> std::io::Result<([u8; 32], u64)> {
        let mut content = Vec::new();
        (&mut file).take(SMALL + 1).read_to_end(&mut content)?;
        if content.len() as u64 > SMALL {
            std::io::Seek::rewind(&mut file)?;
            return self.keep_large(file);
        }
        let hash = *blake3::hash(&content).as_bytes();
        if !self.blob(&hash).exists() {
            let (path, mut new) = self.new_file()?;
            new.write_all(&content)?;
            self.settle(&path, &hash)?;
        }
        Ok((hash, content.len() as u64))
    }

    /// The bytes that are kept are the bytes that are hashed, also when the file is being written to: either a clone of
    /// it is hashed, which cannot change, or each piece is written as it was hashed.
    fn keep_large(&self, mut file: File) -> std::io::Result<([u8; 32], u64)> {
        let (path, mut new) = self.new_file()?;
        let mut hasher = blake3::Hasher::new();
        if rustix::fs::ioctl_ficlone(&new, &file).is_ok() {
            hasher.update_reader(File::open(&path)?)?;
        } else {
            let mut buffer = vec![0; 256 * 1024];
            loop {
                let length = file.read(&mut buffer)?;
                if length == 0 {
                    break;
                }
                hasher.update(&buffer[..length]);
                new.write_all(&buffer[..length])?;
            }
        }
        let hash = *hasher.finalize().as_bytes();
        self.settle(&path, &hash)?;
        Ok((hash, hasher.count()))
    }

    fn new_file(&self) -> std::io::Result<(PathBuf, File)> {
        let path = self.path.join(format!("new-{}", self.next.fetch_add(1, Ordering::Relaxed)));
        let file = fs::OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        Ok((path, file))
    }

    fn settle(&self, new: &Path, hash: &[u8; 32]) -> std::io::Result<()> {
        let blob = self.blob(hash);
        match fs::rename(new, &blob) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                fs::DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(blob.parent().unwrap_or(&self.path))?;
                fs::rename(new, blob)
            }
            result => result,
        }
    }

    // === manifests ===

    fn manifest(&self, generation: u64) -> PathBuf {
        self.path.join(format!("manifest-{generation:08}"))
    }

    /// The generations there are, oldest first.
    fn generations(&self) -> std::io::Result<Vec<u64>> {
        let number = |name: &str| name.strip_prefix("manifest-")?.parse::<u64>().ok();
        let mut generations = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            generations.extend(entry?.file_name().to_str().and_then(number));
        }
        generations.sort_unstable();
        Ok(generations)
    }

    pub(super) fn load(&self, generation: u64) -> Option<Manifest> {
        Manifest::parse(&fs::read(self.manifest(generation)).ok()?)
    }

    /// The newest generation that can be read.
    pub(super) fn latest(&self) -> std::io::Result<Option<(u64, Manifest)>> {
        let generations = self.generations()?;
        Ok(generations.into_iter().rev().find_map(|generation| Some((generation, self.load(generation)?))))
    }

    pub(super) fn save(&self, generation: u64, manifest: &Manifest) -> std::io::Result<()> {
        let (path, mut file) = self.new_file()?;
        file.write_all(&manifest.render())?;
        fs::rename(path, self.manifest(generation))
    }

    /// The number after the newest, readable or not.
    pub(super) fn next_generation(&self) -> std::io::Result<u64> {
        Ok(self.generations()?.last().map_or(0, |last| last + 1))
    }

    /// Keeps the newest `keep` generations and what they refer to. Since that means reading all of them, it waits until
    /// there are twice as many. If one of them cannot be read, no content is removed.
    pub(super) fn prune(&self, keep: usize) -> std::io::Result<()> {
        let generations = self.generations()?;
        if generations.len() <= keep.saturating_mul(2) {
            return Ok(());
        }
        let (old, kept) = generations.split_at(generations.len() - keep);
        let kept: Option<Vec<Manifest>> = kept.iter().map(|generation| self.load(*generation)).collect();
        old.iter().try_for_each(|generation| fs::remove_file(self.manifest(*generation)))?;
        kept.map_or(Ok(()), |kept| self.sweep(&kept))
    }

    fn sweep(&self, kept: &[Manifest]) -> std::io::Result<()> {
        let hashes =
            kept.iter().flat_map(|manifest| &manifest.entries).filter_map(|entry| match entry.node {
                Node::File { hash: Some(hash), .. } => Some(self.blob(&hash)),
                _ => None,
            });
        let referenced: HashSet<PathBuf> = hashes.collect();
        for folder in fs::read_dir(self.path.join("blobs"))? {
            for blob in fs::read_dir(folder?.path())? {
                let path = blob?.path();
                if !referenced.contains(&path) {
                    fs::remove_file(path)?;
                }
            }
        }
        Ok(())
    }
}
