//! Layers are removed whole, whatever is in them.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod layer;

use std::fs;
use std::os::fd::OwnedFd;

use layer::Layers;
use redoma_layers::remove_layer;
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};

#[test]
fn a_layer_with_locked_folders_goes_as_a_whole_and_twice() {
    let layers = Layers::new();
    let layer = layers.layer("layer");
    layer.file("a/b/file", "").whiteout("a/gone").fifo("a/fifo").link("a/link", "/etc");
    layer.mode("a/b", 0).mode("a", 0);
    remove_layer(&layer.path).unwrap();
    assert!(!layer.path.exists());
    remove_layer(&layer.path).unwrap();
    remove_layer(&layers.home().join("no/such/place")).unwrap();
}

#[test]
fn what_a_link_leads_to_stays() {
    let layers = Layers::new();
    let (layer, other) = (layers.layer("layer"), layers.layer("other"));
    other.file("kept", "");
    layer.link("away", "../other");
    remove_layer(&layer.path).unwrap();
    assert!(other.at("kept").exists());
}

/// Makes folders within folders, deeper than any path can be long.
fn deepen(folder: OwnedFd, depth: usize) {
    let mut folder = folder;
    for _ in 0..depth {
        mkdirat(&folder, "deep", Mode::RWXU).unwrap();
        folder = openat(&folder, "deep", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap();
    }
}

#[test]
fn a_tree_deeper_than_any_path_goes_too() {
    let layers = Layers::new();
    let layer = layers.layer("layer");
    for side in ["one", "other"] {
        layer.folder(side);
        deepen(openat(CWD, layer.at(side), OFlags::DIRECTORY, Mode::empty()).unwrap(), 3000);
    }
    // A name that would be used when deep folders are moved up.
    layer.file(".redoma-removed-1", "");
    remove_layer(&layer.path).unwrap();
    assert!(fs::symlink_metadata(&layer.path).is_err());
}
