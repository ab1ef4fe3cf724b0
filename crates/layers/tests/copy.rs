//! Copies of layers are exact, and sizes are what they are.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod layer;

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use layer::{Layer, Layers};
use redoma_layers::{Error, copy, remove_layer, size};

/// All that a copy keeps, by path: kind and mode, owners, size, time, device number, target or content.
fn facts(layer: &Path) -> BTreeMap<PathBuf, String> {
    let mut facts = BTreeMap::new();
    let mut folders = vec![layer.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let about = fs::symlink_metadata(&folder).unwrap();
        facts.insert(folder.strip_prefix(layer).unwrap().to_path_buf(), fact(&folder, &about));
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let about = fs::symlink_metadata(&path).unwrap();
            if about.is_dir() {
                folders.push(path);
            } else {
                facts.insert(path.strip_prefix(layer).unwrap().to_path_buf(), fact(&path, &about));
            }
        }
    }
    facts
}

fn fact(path: &Path, about: &fs::Metadata) -> String {
    let content = if about.is_file() { fs::read(path).unwrap() } else { Vec::new() };
    let target = fs::read_link(path).ok();
    let size = if about.is_dir() { 0 } else { about.size() };
    let (mode, uid, gid) = (about.mode(), about.uid(), about.gid());
    let time = (about.mtime(), about.mtime_nsec());
    let mut names = [0; 256];
    let length = rustix::fs::llistxattr(path, &mut names).unwrap();
    let attributes = String::from_utf8_lossy(&names[..length]).into_owned();
    let links = if about.is_dir() { 0 } else { about.nlink() };
    format!(
        "{mode:o} {uid}:{gid} {size} {time:?} {:x} {links} {target:?} {attributes} {content:?}",
        about.rdev()
    )
}

fn full(layers: &Layers) -> Layer {
    let layer = layers.layer("full");
    layer.file("etc/file", "content").mode("etc/file", 0o4751).whiteout("etc/gone").fifo("etc/fifo");
    layer.file("read/only", "x").attribute("read/only", "user.tag", "1").mode("read/only", 0o444);
    layer.hard_link("etc/again", "etc/file").link("etc/link", "/no/where\n").opaque("opaque");
    layer.attribute("opaque", "user.overlay.origin", "somewhere").folder("locked").mode("locked", 0o500);
    let old = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    for path in ["etc/file", "etc", "opaque"] {
        File::open(layer.at(path)).unwrap().set_times(FileTimes::new().set_modified(old)).unwrap();
    }
    layer
}

#[test]
fn a_copy_has_all_that_the_layer_has() {
    let layers = Layers::new();
    let layer = full(&layers);
    let to = layers.home().join("copy");
    let copied = copy(&layer.path, &to).unwrap();
    assert_eq!(facts(&to), facts(&layer.path));
    assert_eq!((copied.entries, copied.skipped, copied.unkept), (10, 0, 0));
    assert_eq!(copied.shared + copied.copied, 8, "the second name of a file is not copied");
    let inode = |path: &str| fs::metadata(to.join(path)).unwrap().ino();
    assert_eq!(inode("etc/file"), inode("etc/again"));
    remove_layer(&to).unwrap();
}

#[test]
fn holes_stay_holes() {
    let layers = Layers::new();
    let layer = layers.layer("layer");
    let file = File::create(layer.at("sparse")).unwrap();
    file.write_all_at(b"begin", 0).unwrap();
    file.write_all_at(b"end", 1 << 30).unwrap();
    file.set_len(1 << 40).unwrap();
    let to = layers.home().join("copy");
    let copied = copy(&layer.path, &to).unwrap();
    let about = fs::metadata(to.join("sparse")).unwrap();
    assert_eq!(about.size(), 1 << 40);
    assert!(about.blocks() * 512 < 1 << 20, "{} blocks", about.blocks());
    assert!(copied.copied < 1 << 20, "{copied:?}");
    let mut end = [0; 3];
    File::open(to.join("sparse")).unwrap().read_exact_at(&mut end, 1 << 30).unwrap();
    assert_eq!(&end, b"end");
}

#[test]
fn sockets_are_left_out_and_named() {
    let layers = Layers::new();
    let layer = layers.layer("layer");
    layer.folder("run");
    let _listening = UnixListener::bind(layer.at("run/socket")).unwrap();
    let to = layers.home().join("copy");
    let copied = copy(&layer.path, &to).unwrap();
    assert_eq!(copied.left_out, [PathBuf::from("run/socket")]);
    assert!(!to.join("run/socket").exists());
}

#[test]
fn a_copy_goes_over_nothing_and_leaves_nothing_behind_when_it_fails() {
    let layers = Layers::new();
    let (layer, other) = (layers.layer("layer"), layers.layer("other"));
    other.file("kept", "");
    assert!(matches!(copy(&layer.path, &other.path), Err(Error::Write { .. })));
    assert!(other.at("kept").exists());
    let long = "x".repeat(255);
    let mut deep = layer.path.clone();
    let mut folder = File::open(&deep).unwrap();
    for _ in 0..17 {
        rustix::fs::mkdirat(&folder, &long, rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::DIRECTORY;
        folder = rustix::fs::openat(&folder, &long, flags, rustix::fs::Mode::empty()).unwrap().into();
        deep.push(&long);
    }
    let to = layers.home().join("copy");
    let error = copy(&layer.path, &to).unwrap_err();
    assert!(matches!(error, Error::Read { .. }), "{error}");
    assert!(error.hint().contains("4096"));
    assert!(!to.exists());
    // So that the test's own folder can be cleared.
    remove_layer(&layer.path).unwrap();
}

#[test]
fn a_file_with_two_names_is_counted_once() {
    let layers = Layers::new();
    let layer = layers.layer("layer");
    layer.file("large", vec![1; 1 << 20]).hard_link("again", "large").whiteout("gone");
    let whole = size(std::slice::from_ref(&layer.path), 100).unwrap();
    assert_eq!((whole.entries, whole.is_whole), (3, true));
    assert!((1 << 20..2 << 20).contains(&whole.bytes), "{whole:?}");
    let part = size(std::slice::from_ref(&layer.path), 2).unwrap();
    assert_eq!((part.entries, part.is_whole), (2, false));
}
