//! Which policy files the user trusts: by place and exact content.
//!
//! A sandbox may have written the project's policy. Such a file only narrows, until the user has said of this very
//! content, at this very place, that it may widen (promise 6). The place counts too: a policy trusted in one project
//! must not widen another one just because somebody copied it there.

use std::collections::BTreeMap;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use redoma_policy::{ContentHash, content_hash};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::shell;
use crate::small_file::{self, Links, SmallFile};

/// Tens of thousands of projects; more is not a list that Redoma wrote.
const STORE_LIMIT: usize = 8 * 1024 * 1024;

/// The list of trusted policy files, as it was when it was read.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustStore {
    /// Canonical path of the policy file → hexadecimal BLAKE3 of its trusted content.
    trusted: BTreeMap<PathBuf, String>,
}

/// Why the list could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The list exists and cannot be read; nothing is trusted on a guess.
    #[error("cannot read the list of trusted policies {}: {why}", path.display())]
    Read {
        /// The list.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// The list could not be replaced; it is as it was.
    #[error("cannot write the list of trusted policies {}", path.display())]
    Write {
        /// The list.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl TrustError {
    /// What to do about it, as one command line.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Read { path, .. } => format!("mv {0} {0}.old", shell::word(path)),
            Self::Write { path, .. } => format!("ls -ld {}", shell::word(path.parent().unwrap_or(path))),
        }
    }
}

// === impl TrustStore ===

impl TrustStore {
    /// Reads the list at `path`; an absent list trusts nothing. A list owned by somebody else is refused.
    pub fn load(path: &Path) -> Result<Self, TrustError> {
        let refuse = |why: String| TrustError::Read { path: path.to_owned(), why };
        let file =
            SmallFile::read(path, STORE_LIMIT, Links::Refuse).map_err(|error| refuse(error.to_string()))?;
        let Some(file) = file else { return Ok(Self::default()) };
        if file.uid != rustix::process::geteuid().as_raw() {
            return Err(refuse(format!("it belongs to user {}", file.uid)));
        }
        serde_json::from_slice(&file.bytes).map_err(|error| refuse(error.to_string()))
    }

    /// Whether `content` is what the user trusted at `policy`, a canonical path.
    #[must_use]
    pub fn trusts(&self, policy: &Path, content: &[u8]) -> bool {
        self.trusted.get(policy).is_some_and(|known| *known == content_hash(content).to_string())
    }

    /// Whether some content, perhaps another one, was trusted at `policy`.
    #[must_use]
    pub fn knows(&self, policy: &Path) -> bool {
        self.trusted.contains_key(policy)
    }

    /// Trusts `content` at `policy` from now on, in place of what was trusted there before.
    pub fn trust(path: &Path, policy: &Path, content: &[u8]) -> Result<ContentHash, TrustError> {
        let hash = content_hash(content);
        Self::change(path, |trusted| {
            trusted.insert(policy.to_owned(), hash.to_string());
        })?;
        Ok(hash)
    }

    /// Trusts nothing at `policy` any more.
    pub fn forget(path: &Path, policy: &Path) -> Result<(), TrustError> {
        Self::change(path, |trusted| {
            trusted.remove(policy);
        })
    }

    /// Reads, changes and replaces the list under a lock, so that two terminals do not lose each other's answer.
    fn change(path: &Path, edit: impl FnOnce(&mut BTreeMap<PathBuf, String>)) -> Result<(), TrustError> {
        let failed = |source| TrustError::Write { path: path.to_owned(), source };
        let folder = path.parent().unwrap_or(path).to_owned();
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(failed)?;
        let lock = private_file(&folder.join("trust.lock")).map_err(failed)?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive).map_err(|errno| failed(errno.into()))?;
        let mut store = Self::load(path)?;
        edit(&mut store.trusted);
        let text = serde_json::to_vec_pretty(&store).map_err(|error| failed(error.into()))?;
        small_file::replace(path, &text, 0o600).map_err(failed)
    }
}

fn private_file(path: &Path) -> std::io::Result<std::fs::File> {
    std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_content_at_the_exact_place_is_trusted() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("state/trust.json");
        let (here, there) = (Path::new("/a/redoma.toml"), Path::new("/b/redoma.toml"));
        TrustStore::trust(&list, here, b"one").unwrap();
        let store = TrustStore::load(&list).unwrap();
        assert!(store.trusts(here, b"one"));
        assert!(!store.trusts(here, b"one "), "changed content");
        assert!(!store.trusts(there, b"one"), "copied elsewhere");
        TrustStore::trust(&list, here, b"two").unwrap();
        let store = TrustStore::load(&list).unwrap();
        assert!(store.trusts(here, b"two") && !store.trusts(here, b"one"));
        TrustStore::forget(&list, here).unwrap();
        assert!(!TrustStore::load(&list).unwrap().knows(here));
    }

    #[test]
    fn a_damaged_list_is_an_error_and_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("trust.json");
        std::fs::write(&list, "{\"trusted\":").unwrap();
        assert!(TrustStore::load(&list).is_err());
        assert!(TrustStore::trust(&list, Path::new("/a"), b"x").is_err());
        assert_eq!(std::fs::read_to_string(list).unwrap(), "{\"trusted\":");
    }

    #[test]
    fn two_writers_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("trust.json");
        std::thread::scope(|scope| {
            for number in 0..8 {
                let list = &list;
                scope.spawn(move || {
                    TrustStore::trust(list, Path::new(&format!("/p{number}/redoma.toml")), b"x").unwrap()
                });
            }
        });
        assert_eq!(TrustStore::load(&list).unwrap().trusted.len(), 8);
    }
}
