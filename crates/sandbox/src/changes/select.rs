//! Which changes a command is about.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::ChangesError;

/// Paths and patterns below the project: `src/main.rs`, `src` (with all below it), `**/*.rs`.
#[derive(Debug)]
pub struct Selection {
    everything: bool,
    paths: Vec<PathBuf>,
    globs: GlobSet,
}

impl Selection {
    /// Every change.
    pub fn all() -> Self {
        Self { everything: true, ..Self::none() }
    }

    /// No change.
    pub fn none() -> Self {
        Self { everything: false, paths: Vec::new(), globs: GlobSet::empty() }
    }

    /// The changes that `patterns` name. A pattern without `*`, `?`, `[` and `{` is a path as it stands.
    ///
    /// # Errors
    /// A pattern that does not parse, or a path that leaves the project.
    pub fn of<P: AsRef<str>>(patterns: &[P]) -> Result<Self, ChangesError> {
        let (mut paths, mut globs) = (Vec::new(), GlobSetBuilder::new());
        for pattern in patterns {
            let pattern = pattern.as_ref();
            let failed = |reason: String| ChangesError::Pattern { pattern: pattern.to_owned(), reason };
            // Also as a path: a file may be called `[slug].tsx`.
            paths.push(inside(Path::new(pattern)).ok_or_else(|| failed("it leaves the project".to_owned()))?);
            if pattern.contains(['*', '?', '[', '{']) {
                let glob = GlobBuilder::new(pattern.trim_start_matches("./")).literal_separator(true).build();
                globs.add(glob.map_err(|error| failed(error.to_string()))?);
            }
        }
        let failed = |error: globset::Error| ChangesError::Pattern {
            pattern: String::new(),
            reason: error.to_string(),
        };
        Ok(Self { everything: false, paths, globs: globs.build().map_err(failed)? })
    }

    /// Whether it has this path.
    pub fn has(&self, path: &Path) -> bool {
        self.everything || self.paths.iter().any(|named| path.starts_with(named)) || self.globs.is_match(path)
    }
}

/// The path without `.`; none if it is absolute or has `..`.
fn inside(path: &Path) -> Option<PathBuf> {
    let part = |component| match component {
        Component::CurDir => Some(Path::new("").as_os_str()),
        Component::Normal(name) => Some(name),
        _ => None,
    };
    let parts: Option<Vec<_>> = path.components().map(part).collect();
    Some(parts?.into_iter().filter(|part| !part.is_empty()).collect())
}
