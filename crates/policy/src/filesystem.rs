//! What a resolved policy says about files.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Origin, PathPattern};

/// The file part of a [`crate::ResolvedPolicy`].
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Filesystem {
    /// What may be seen, sorted by path. No grant lies below another that already gives as much.
    pub grants: Vec<Grant>,
    /// What is hidden, whatever grants it.
    pub deny: Vec<PathRule>,
    /// What may be read where granted, but neither written nor renamed nor created.
    pub protect: Vec<PathRule>,
    /// Links that lead to grants; the jail makes them again.
    pub aliases: Vec<Alias>,
    /// Where writes to the project go.
    pub workspace: Workspace,
    /// Keep what `redoma undo` needs.
    pub undo: bool,
    /// Above this many bytes a project that is no git tree is not kept.
    pub undo_max: crate::ByteSize,
}

/// A path that may be seen, and everything below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Grant {
    /// Canonical; it existed when the policy was resolved.
    pub path: PathBuf,
    /// What may be done there.
    pub access: Access,
    /// The rule that grants it.
    pub origin: Origin,
    /// Part of the operating system: not searched for deny globs.
    pub system: bool,
}

/// What a grant allows. Writing implies reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Read, list, execute.
    Read,
    /// Read and change.
    Write,
}

/// A symbolic link on the way to a grant, such as `/bin -> /usr/bin`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Alias {
    /// Where the link stands; its parents are canonical.
    pub link: PathBuf,
    /// Where it leads, canonical.
    pub target: PathBuf,
}

/// A deny or protect rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PathRule {
    /// What it means.
    pub pattern: PathPattern,
    /// Where it was written.
    pub origin: Origin,
}

/// Where writes to the project go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Workspace {
    /// Straight to the project's files.
    #[default]
    Direct,
    /// To a layer above them, until `redoma changes apply`.
    Overlay,
}

impl Filesystem {
    /// The grant that decides about a path: the widest access wins, then the deepest folder.
    #[must_use]
    pub fn grant_for(&self, path: &Path) -> Option<&Grant> {
        let covering = self.grants.iter().filter(|grant| path.starts_with(&grant.path));
        covering.max_by_key(|grant| (grant.access, grant.path.as_os_str().len()))
    }

    /// The first deny rule that means the path or a folder above it.
    #[must_use]
    pub fn denied(&self, path: &Path) -> Option<&PathRule> {
        self.deny.iter().find(|rule| rule.pattern.covers(path))
    }

    /// The first protect rule that means the path or a folder above it.
    #[must_use]
    pub fn protected(&self, path: &Path) -> Option<&PathRule> {
        self.protect.iter().find(|rule| rule.pattern.covers(path))
    }

    /// Deny and protect rules that need a walk of what exists, each list with its index kept by the caller.
    pub fn globs(&self) -> impl Iterator<Item = &PathRule> {
        self.deny.iter().chain(&self.protect).filter(|rule| rule.pattern.is_glob())
    }

    /// The folders to walk for [`Self::globs`]: every anchor inside a grant, and every granted folder below an
    /// anchor unless it is part of the operating system; none below another.
    #[must_use]
    pub fn walk_roots(&self) -> Vec<PathBuf> {
        let anchors = self.globs().map(|rule| rule.pattern.anchor());
        let mut roots: Vec<PathBuf> = anchors.flat_map(|anchor| self.roots_of(anchor)).collect();
        roots.sort();
        roots.dedup_by(|later, earlier| later.starts_with(&*earlier));
        roots
    }

    fn roots_of(&self, anchor: &Path) -> Vec<PathBuf> {
        if self.grant_for(anchor).is_some() {
            return vec![anchor.to_owned()];
        }
        let below = self.grants.iter().filter(|grant| !grant.system && grant.path.starts_with(anchor));
        below.map(|grant| grant.path.clone()).collect()
    }
}

impl std::fmt::Display for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

impl std::fmt::Display for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Direct => "direct",
            Self::Overlay => "overlay",
        })
    }
}
