//! Layers made for tests.
#![allow(clippy::unwrap_used, dead_code, reason = "each test binary uses a part of it")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat};

/// A folder in which layers are made by name.
pub(crate) struct Layers {
    home: tempfile::TempDir,
}

impl Layers {
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn layer(&self, name: &str) -> Layer {
        let path = self.home.path().join(name);
        fs::create_dir_all(&path).unwrap();
        Layer { path }
    }
}

pub(crate) struct Layer {
    pub(crate) path: PathBuf,
}

impl Layer {
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.path.join(path)
    }

    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> &Self {
        self.parent(path);
        fs::write(self.at(path), content).unwrap();
        self
    }

    pub(crate) fn folder(&self, path: &str) -> &Self {
        fs::create_dir_all(self.at(path)).unwrap();
        self
    }

    pub(crate) fn link(&self, path: &str, target: &str) -> &Self {
        self.parent(path);
        symlink(target, self.at(path)).unwrap();
        self
    }

    pub(crate) fn hard_link(&self, path: &str, to: &str) -> &Self {
        fs::hard_link(self.at(to), self.at(path)).unwrap();
        self
    }

    pub(crate) fn whiteout(&self, path: &str) -> &Self {
        self.parent(path);
        mknodat(CWD, self.at(path), FileType::CharacterDevice, Mode::empty(), 0).unwrap();
        self
    }

    pub(crate) fn fifo(&self, path: &str) -> &Self {
        self.parent(path);
        mknodat(CWD, self.at(path), FileType::Fifo, Mode::from(0o640), 0).unwrap();
        self
    }

    pub(crate) fn opaque(&self, path: &str) -> &Self {
        self.folder(path).attribute(path, "user.overlay.opaque", "y")
    }

    pub(crate) fn attribute(&self, path: &str, name: &str, value: &str) -> &Self {
        rustix::fs::setxattr(self.at(path), name, value.as_bytes(), XattrFlags::empty()).unwrap();
        self
    }

    pub(crate) fn mode(&self, path: &str, mode: u32) -> &Self {
        fs::set_permissions(self.at(path), fs::Permissions::from_mode(mode)).unwrap();
        self
    }

    fn parent(&self, path: &str) {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
    }
}

/// A chain, topmost layer first.
pub(crate) fn chain(layers: &[&Layer]) -> Vec<PathBuf> {
    layers.iter().map(|layer| layer.path.clone()).collect()
}
