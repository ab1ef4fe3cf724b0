//! Which layers sandboxes and snapshots are made of.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use redoma_image::DiffId;

/// What is asked: the documents of sandboxes and snapshots below the state folder.
const DOCUMENTS: [(&str, &str); 2] = [("sandboxes", "sandbox.json"), ("snapshots", "snapshot.json")];
/// Digits of a layer's name.
const HEX: usize = 64;

/// Every layer that is named there, in whatever form: a digest, or a path in the store. A layer too many is kept rather than one
/// that is in use removed.
pub(super) fn in_use(state: &Path) -> anyhow::Result<BTreeSet<DiffId>> {
    let mut layers = BTreeSet::new();
    for (folder, name) in DOCUMENTS {
        for entry in entries(&state.join(folder))? {
            let path = entry.join(name);
            match std::fs::read_to_string(&path) {
                Ok(text) => layers.extend(named(&text)),
                // One that is being made or thrown away.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
                Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
            }
        }
    }
    Ok(layers)
}

fn entries(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let read = || std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other.with_context(|| format!("cannot read {}", folder.display())),
    }
}

fn named(text: &str) -> impl Iterator<Item = DiffId> {
    let words = text.split(|c: char| !c.is_ascii_hexdigit()).filter(|word| word.len() == HEX);
    words.filter_map(DiffId::from_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_found_by_digest_and_by_path() {
        let (one, two) = ("1".repeat(64), "a".repeat(64));
        let state = tempfile::tempdir().unwrap();
        for (folder, name, text) in [
            (
                "sandboxes/x",
                "sandbox.json",
                format!(r#"{{"layers":["sha256:{one}"],"id":"{}"}}"#, "b".repeat(63)),
            ),
            ("snapshots/y", "snapshot.json", format!(r#"{{"chain":["/state/images/layers/{two}"]}}"#)),
        ] {
            std::fs::create_dir_all(state.path().join(folder)).unwrap();
            std::fs::write(state.path().join(folder).join(name), text).unwrap();
        }
        std::fs::create_dir_all(state.path().join("sandboxes/half")).unwrap();
        let found: Vec<_> = in_use(state.path()).unwrap().iter().map(DiffId::hex).collect();
        assert_eq!(found, [one, two]);
    }

    #[test]
    fn without_sandboxes_nothing_is_in_use() {
        assert!(in_use(tempfile::tempdir().unwrap().path()).unwrap().is_empty());
    }
}
