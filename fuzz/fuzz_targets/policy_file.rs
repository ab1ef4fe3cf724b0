//! A policy file of a project that nobody has looked at yet, or of a user who made a mistake.

#![no_main]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use redoma_policy::{
    CommandLine, Layer, PathFacts, PathKind, PolicyError, ResolvedPolicy, Source, Surroundings, resolve,
};

/// What holds without any file.
static NOTHING: LazyLock<ResolvedPolicy> =
    LazyLock::new(|| resolve_as(Layer::Project, b"", false).expect("an empty policy is a policy"));

libfuzzer_sys::fuzz_target!(|text: &[u8]| {
    let trusted = resolve_as(Layer::User, text, true);
    let untrusted = resolve_as(Layer::Project, text, false);
    if let Ok(policy) = &untrusted {
        // What nobody trusts widens nothing.
        let known = |path: &Path| NOTHING.filesystem.grant_for(path).is_some();
        assert!(
            policy.filesystem.grants.iter().all(|grant| known(&grant.path)),
            "{:?}",
            policy.filesystem.grants
        );
        assert!(!policy.network.needs_gateway() || NOTHING.network.needs_gateway());
    }
    for error in [trusted.err(), untrusted.err()].into_iter().flatten() {
        assert!(!error.to_string().is_empty());
        let _ = (error.hint(), error.render(false));
    }
});

fn resolve_as(layer: Layer, text: &[u8], trusted: bool) -> Result<ResolvedPolicy, PolicyError> {
    let path = Some(PathBuf::from("/home/u/p/redoma.toml"));
    let source = Source { layer, path, text: text.to_vec(), trusted };
    let world = Surroundings {
        home: Path::new("/home/u"),
        project: Path::new("/home/u/p"),
        cwd: Path::new("/home/u/p"),
        git_dirs: &[],
        user: "u",
        uid: 1000,
        vars: &|_| None,
        paths: &Folders,
        load: &|_| Err("there is nothing there".into()),
    };
    resolve(&[source], &CommandLine::default(), &world)
}

/// A disk on which every path is a folder, so that every grant counts.
struct Folders;

impl PathFacts for Folders {
    fn canonicalize(&self, path: &Path) -> Option<PathBuf> {
        Some(path.to_owned())
    }

    fn kind(&self, _path: &Path) -> Option<PathKind> {
        Some(PathKind::Folder)
    }
}
