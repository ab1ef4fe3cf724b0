//! Which changes a command is about.

use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use super::ChangesError;

/// Paths and patterns below the project: `src/main.rs`, `src` (with all below it), `**/*.rs`.
#[derive(Debug)]
pub struct Selection {
    everything: bool,
    paths: Vec<PathBuf>,
    globs: Vec<String>,
}

impl Selection {
    /// Every change.
    pub fn all() -> Self {
        Self { everything: true, ..Self::none() }
    }

    /// No change.
    pub fn none() -> Self {
        Self { everything: false, paths: Vec::new(), globs: Vec::new() }
    }

    /// The changes that `patterns` name. A pattern without `*`, `?`, `[` and `{` is a path as it stands.
    ///
    /// # Errors
    /// A pattern that does not parse, or a path that leaves the project.
    pub fn of<P: AsRef<str>>(patterns: &[P]) -> Result<Self, ChangesError> {
        let (mut paths, mut globs) = (Vec::new(), Vec::new());
        for pattern in patterns {
            let pattern = pattern.as_ref();
            let failed = |reason: String| ChangesError::Pattern { pattern: pattern.to_owned(), reason };
            // Also as a path: a file may be called `[slug].tsx`.
            paths.push(inside(Path::new(pattern)).ok_or_else(|| failed("it leaves the project".to_owned()))?);
            if pattern.contains(['*', '?', '[', '{']) {
                let glob = pattern.trim_start_matches("./");
                fast_glob::validate(glob).map_err(|error| failed(error.to_string()))?;
                globs.push(glob.to_owned());
            }
        }
        Ok(Self { everything: false, paths, globs })
    }

    /// Whether it has this path.
    pub fn has(&self, path: &Path) -> bool {
        let matches = |glob: &String| fast_glob::glob_match(glob, path.as_os_str().as_bytes());
        self.everything
            || self.paths.iter().any(|named| path.starts_with(named))
            || self.globs.iter().any(matches)
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
