//! Where a session could leave repositories.

use std::path::{Component, Path, PathBuf};

use redoma_policy::{Access, ResolvedPolicy};
use serde::{Deserialize, Serialize};

use crate::raw_path;
use crate::view;

/// What a session could write of the host's.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ground {
    #[serde(with = "raw_path::list")]
    granted: Vec<PathBuf>,
    /// A project whose changes were kept aside. The session could write nothing there: what is there is the host's own, and
    /// the change set is judged when it is applied.
    #[serde(with = "raw_path::list")]
    aside: Vec<PathBuf>,
}

// === impl Ground ===

impl Ground {
    pub(crate) fn of(policy: &ResolvedPolicy) -> Self {
        let grants = policy.filesystem.grants.iter();
        let granted = grants.filter(|grant| grant.access == Access::Write && !grant.system);
        let aside = view::wants_overlay(policy).then(|| policy.project.clone());
        Self {
            granted: granted.map(|grant| grant.path.clone()).collect(),
            aside: aside.into_iter().collect(),
        }
    }

    /// Whether the session could write there. A path of which some part does not exist may still hold a `..`.
    pub(crate) fn holds(&self, path: &Path) -> bool {
        let aside = self.aside.iter().any(|folder| path.starts_with(folder));
        let plain = !path.components().any(|part| part == Component::ParentDir);
        !aside && plain && self.root_of(path).is_some()
    }

    /// The granted folder that a path lies in.
    pub(super) fn root_of(&self, path: &Path) -> Option<&Path> {
        let holding = self.granted.iter().filter(|folder| path.starts_with(folder));
        holding.max_by_key(|folder| folder.as_os_str().len()).map(PathBuf::as_path)
    }

    /// What was granted and still exists.
    pub(crate) fn existing(&self) -> Vec<PathBuf> {
        self.granted.iter().filter(|path| path.symlink_metadata().is_ok()).cloned().collect()
    }

    /// Whether there is nothing that the session could have written to.
    pub(crate) fn is_empty(&self) -> bool {
        self.granted.iter().all(|folder| self.aside.iter().any(|aside| folder.starts_with(aside)))
    }
}
