//! Files in memory.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fs, io};

use crate::driver::{Copied, DriverError, Entry, EntryKind, Files};

/// What lies where. Clones share it; [`Tree::copy`] does not.
#[derive(Clone, Default)]
pub(super) struct Tree(Arc<Mutex<BTreeMap<PathBuf, Node>>>);

#[derive(Clone)]
enum Node {
    File { mode: u32, content: Vec<u8> },
    Folder,
    Link(PathBuf),
}

/// As many links as the kernel follows.
const LINKS: usize = 40;

impl Tree {
    /// Another one that holds the same.
    pub(super) fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.nodes().clone())))
    }

    pub(super) fn bytes(&self) -> u64 {
        let size = |node: &Node| if let Node::File { content, .. } = node { content.len() } else { 0 };
        self.nodes().values().map(size).sum::<usize>() as u64
    }

    pub(super) fn content(&self, path: &Path) -> Option<Vec<u8>> {
        match self.find(path)? {
            Node::File { content, .. } => Some(content),
            _ => None,
        }
    }

    pub(super) fn put(&self, path: &Path, mode: u32, content: Vec<u8>) {
        let at = self.follow(path);
        self.insert(at, Node::File { mode, content });
    }

    pub(super) fn link(&self, to: &Path, at: &Path) {
        self.insert(at.to_owned(), Node::Link(to.to_owned()));
    }

    pub(super) fn unlink(&self, path: &Path) -> bool {
        self.nodes().remove(path).is_some()
    }

    fn insert(&self, at: PathBuf, node: Node) {
        let mut nodes = self.nodes();
        for above in at.ancestors().skip(1) {
            nodes.entry(above.to_owned()).or_insert(Node::Folder);
        }
        nodes.insert(at, node);
    }

    /// Where a path leads once its links are followed; a link never leads out, since there is no out.
    fn follow(&self, path: &Path) -> PathBuf {
        let nodes = self.nodes();
        let mut at = plain(path);
        for _ in 0..LINKS {
            match nodes.get(&at) {
                Some(Node::Link(to)) => at = plain(&at.parent().unwrap_or(Path::new("/")).join(to)),
                _ => break,
            }
        }
        at
    }

    fn find(&self, path: &Path) -> Option<Node> {
        let at = self.follow(path);
        if at == Path::new("/") {
            return Some(Node::Folder);
        }
        self.nodes().get(&at).cloned()
    }

    fn nodes(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Node>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn below(&self, folder: &Path) -> Vec<(PathBuf, Node)> {
        let nodes = self.nodes();
        let inside = nodes.iter().filter(|(path, _)| path.starts_with(folder) && *path != folder);
        inside.map(|(path, node)| (path.clone(), node.clone())).collect()
    }

    fn take_in(&self, from: &Path, to: &Path, copied: &mut Copied) -> io::Result<()> {
        let about = fs::symlink_metadata(from)?;
        copied.entries += 1;
        if about.is_symlink() {
            self.link(&fs::read_link(from)?, to);
        } else if about.is_dir() {
            self.insert(to.to_owned(), Node::Folder);
            for entry in fs::read_dir(from)? {
                let entry = entry?;
                self.take_in(&entry.path(), &to.join(entry.file_name()), copied)?;
            }
        } else {
            let content = fs::read(from)?;
            copied.bytes += content.len() as u64;
            self.insert(to.to_owned(), Node::File { mode: about.mode() & 0o7777, content });
        }
        Ok(())
    }
}

impl Files for Tree {
    fn copy_in(&self, from: &Path, to: &Path) -> Result<Copied, DriverError> {
        let into = matches!(self.find(to), Some(Node::Folder));
        let name = from.file_name().unwrap_or_default();
        let at = if into { self.follow(to).join(name) } else { plain(to) };
        let mut copied = Copied::default();
        self.take_in(from, &at, &mut copied).map_err(|error| refused(from, &error.to_string()))?;
        Ok(copied)
    }

    fn copy_out(&self, from: &Path, to: &Path) -> Result<Copied, DriverError> {
        let at = plain(from);
        let first = self.nodes().get(&at).cloned().ok_or_else(|| absent(from))?;
        let target = if to.is_dir() { to.join(at.file_name().unwrap_or_default()) } else { to.to_owned() };
        let mut copied = Copied::default();
        for (path, node) in [(at.clone(), first)].into_iter().chain(self.below(&at)) {
            let rest = path.strip_prefix(&at).unwrap_or(&path);
            let place = if rest.as_os_str().is_empty() { target.clone() } else { target.join(rest) };
            copied.entries += 1;
            give_out(&node, &place, &mut copied).map_err(|error| refused(&place, &error.to_string()))?;
        }
        Ok(copied)
    }

    fn read(&self, path: &Path, offset: u64, length: u64) -> Result<Box<dyn Read>, DriverError> {
        let content = self.content(path).ok_or_else(|| absent(path))?;
        let mut content = Cursor::new(content);
        content.set_position(offset);
        Ok(Box::new(content.take(length)))
    }

    fn write(&self, path: &Path, mode: u32, content: &mut dyn Read) -> Result<(), DriverError> {
        let mut all = Vec::new();
        content.read_to_end(&mut all).map_err(|error| refused(path, &error.to_string()))?;
        self.put(path, mode, all);
        Ok(())
    }

    fn list(&self, path: &Path) -> Result<Vec<Entry>, DriverError> {
        if !matches!(self.find(path), Some(Node::Folder)) {
            return Err(absent(path));
        }
        let folder = self.follow(path);
        let inside = self.below(&folder);
        let direct = inside.into_iter().filter(|(path, _)| path.parent() == Some(&folder));
        Ok(direct.map(|(path, node)| entry(&path, &node)).collect())
    }
}

fn entry(path: &Path, node: &Node) -> Entry {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (kind, size, mode) = match node {
        Node::File { mode, content } => (EntryKind::File, content.len() as u64, *mode),
        Node::Folder => (EntryKind::Folder, 0, 0o755),
        Node::Link(_) => (EntryKind::Link, 0, 0o777),
    };
    Entry { name, kind, size, mode, modified: 0 }
}

fn give_out(node: &Node, to: &Path, copied: &mut Copied) -> io::Result<()> {
    match node {
        Node::Folder => fs::create_dir_all(to),
        Node::Link(target) => std::os::unix::fs::symlink(target, to),
        Node::File { mode, content } => {
            copied.bytes += content.len() as u64;
            fs::write(to, content)?;
            fs::set_permissions(to, fs::Permissions::from_mode(*mode))
        }
    }
}

/// Without `.` and `..`, which never lead above the root.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => drop(plain.pop()),
            _ => {}
        }
    }
    plain
}

fn absent(path: &Path) -> DriverError {
    refused(path, "there is no such file")
}

fn refused(path: &Path, why: &str) -> DriverError {
    DriverError::Files { why: format!("{}: {why}", path.display()), hint: "look what is there".into() }
}
