//! Files with several names.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Files of which not all names were seen yet: what is kept of them is bounded.
const OPEN_MAX: usize = 1_000_000;

/// The first name of every file that has more names to come.
#[derive(Default)]
pub(crate) struct Links {
    files: HashMap<(u64, u64), (PathBuf, u64)>,
}

/// What is known about a name.
pub(crate) enum Known {
    /// It is the first name of its file.
    First,
    /// The file has this name already.
    Again(PathBuf),
    /// There are too many files with several names to tell.
    Unknown,
}

impl Links {
    /// Takes note of one more name of a file that has `names` of them; what is no folder only.
    pub(crate) fn note(&mut self, inode: (u64, u64), names: u64, path: &Path) -> Known {
        if names < 2 {
            return Known::First;
        }
        if let Some((first, left)) = self.files.get_mut(&inode) {
            let first = first.clone();
            *left -= 1;
            if *left == 0 {
                self.files.remove(&inode);
            }
            return Known::Again(first);
        }
        if self.files.len() == OPEN_MAX {
            return Known::Unknown;
        }
        self.files.insert(inode, (path.to_path_buf(), names - 1));
        Known::First
    }
}
