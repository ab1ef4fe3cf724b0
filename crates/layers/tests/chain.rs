//! What chains of layers show, and how they differ.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod layer;

use std::fs::{self, File, FileTimes};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use layer::{Layer, Layers, chain};
use redoma_layers::text::Body;
use redoma_layers::{Change, ChangeKind, Error, Kind, Tree, diff};

fn paths(layers: &[PathBuf]) -> Vec<String> {
    let mut paths = Vec::new();
    let walked = Tree::open(layers).unwrap().walk(|entry| {
        paths.push(entry.path.to_str().unwrap().to_owned());
        Ok::<_, Error>(())
    });
    walked.unwrap();
    paths
}

fn content(layers: &[PathBuf], path: &str) -> String {
    let tree = Tree::open(layers).unwrap();
    let entry = tree.entry(Path::new(path)).unwrap().unwrap();
    let mut content = String::new();
    tree.read(&entry).unwrap().read_to_string(&mut content).unwrap();
    content
}

fn changes(a: &[PathBuf], b: &[PathBuf]) -> Vec<(String, ChangeKind)> {
    let named = |change: Change| (change.path.to_str().unwrap().to_owned(), change.kind);
    diff(a, b, false).unwrap().into_iter().map(named).collect()
}

fn expected(changes: &[(&str, ChangeKind)]) -> Vec<(String, ChangeKind)> {
    changes.iter().map(|(path, kind)| ((*path).to_owned(), *kind)).collect()
}

#[test]
fn folders_merge_and_the_topmost_file_is_shown() {
    let layers = Layers::new();
    let (top, base) = (layers.layer("top"), layers.layer("base"));
    base.file("etc/hosts", "old").file("etc/passwd", "root").file("var/log", "");
    top.file("etc/hosts", "new").file("etc/shadow", "x");
    let both = chain(&[&top, &base]);
    assert_eq!(paths(&both), ["", "etc", "var", "etc/hosts", "etc/passwd", "etc/shadow", "var/log"]);
    assert_eq!(content(&both, "etc/hosts"), "new");
    assert_eq!(content(&both, "etc/passwd"), "root");
}

#[test]
fn whiteouts_opaque_folders_and_files_hide_what_is_below() {
    let layers = Layers::new();
    let (top, middle, base) = (layers.layer("top"), layers.layer("middle"), layers.layer("base"));
    base.file("gone", "").file("folder/old", "").file("became/inner", "").file("again/old", "");
    middle
        .whiteout("gone")
        .opaque("folder")
        .file("folder/new", "")
        .file("became", "a file")
        .whiteout("again");
    top.file("again/new", "").folder("folder");
    assert_eq!(
        paths(&chain(&[&top, &middle, &base])),
        ["", "again", "became", "folder", "again/new", "folder/new"]
    );
}

#[test]
fn no_layers_show_nothing() {
    assert_eq!(paths(&[]), [""; 0]);
    assert_eq!(changes(&[], &[]), []);
}

#[test]
fn a_missing_layer_is_an_error_that_names_it() {
    let layers = Layers::new();
    let gone = layers.home().join("gone");
    let error = Tree::open(std::slice::from_ref(&gone)).unwrap_err();
    assert!(matches!(error, Error::Open { path, .. } if path == gone));
}

#[test]
fn a_layer_that_is_a_link_is_refused() {
    let layers = Layers::new();
    layers.layer("real");
    std::os::unix::fs::symlink("real", layers.home().join("link")).unwrap();
    assert!(matches!(Tree::open(&[layers.home().join("link")]), Err(Error::Open { .. })));
}

#[test]
fn links_are_never_followed() {
    let layers = Layers::new();
    let (top, base) = (layers.layer("top"), layers.layer("base"));
    base.file("etc/passwd", "inside");
    top.link("out", "/etc").link("etc2", "etc");
    let tree = Tree::open(&chain(&[&top, &base])).unwrap();
    for beyond in ["out/passwd", "etc2/passwd", "../top/out", "etc/../etc/passwd"] {
        let found = tree.entry(Path::new(beyond));
        assert!(!matches!(&found, Ok(Some(entry)) if entry.kind == Kind::File), "{beyond}: {found:?}");
    }
    let out = tree.entry(Path::new("out")).unwrap().unwrap();
    assert_eq!(tree.target(&out).unwrap(), b"/etc");
    assert!(tree.read(&out).is_err());
}

#[test]
fn a_fifo_in_a_files_place_does_not_hold_up_who_reads() {
    let layers = Layers::new();
    let top = layers.layer("top");
    top.file("file", "content");
    let tree = Tree::open(&chain(&[&top])).unwrap();
    let entry = tree.entry(Path::new("file")).unwrap().unwrap();
    fs::remove_file(top.at("file")).unwrap();
    top.fifo("file");
    assert!(matches!(tree.read(&entry), Err(Error::Changed { .. })));
}

#[test]
fn marks_that_lead_elsewhere_are_refused() {
    for mark in ["user.overlay.redirect", "user.overlay.metacopy", "user.overlay.whiteout"] {
        let layers = Layers::new();
        let top = layers.layer("top");
        top.file("some/file", "").attribute("some/file", mark, "");
        let error = diff(&[], &chain(&[&top]), false).unwrap_err();
        assert!(matches!(&error, Error::Mark { mark: found, .. } if found == mark), "{error}");
    }
}

#[test]
fn names_are_bytes() {
    let layers = Layers::new();
    let top = layers.layer("top");
    let name = std::ffi::OsStr::from_bytes(b"new\nline \xff\x1b[31m");
    fs::write(top.path.join(name), "").unwrap();
    let changes = diff(&[], &chain(&[&top]), true).unwrap();
    assert_eq!(changes[1].path.as_os_str(), name);
}

#[test]
fn every_kind_of_change_is_found() {
    let layers = Layers::new();
    let (top, base) = (layers.layer("top"), layers.layer("base"));
    base.file("kept", "same").file("edited", "one").file("chmod", "x").file("gone", "").file("kind", "");
    base.link("link", "here").file("folder/deep/file", "").file("tagged", "");
    top.file("kept", "same").file("edited", "two").file("chmod", "x").mode("chmod", 0o755).whiteout("gone");
    top.folder("kind").link("link", "there").whiteout("folder").file("new/file", "");
    top.file("tagged", "").attribute("tagged", "user.tag", "1");
    let (before, after) = (chain(&[&base]), chain(&[&top, &base]));
    let wanted = expected(&[
        ("chmod", ChangeKind::Attributes),
        ("edited", ChangeKind::Modified),
        ("folder", ChangeKind::Removed),
        ("folder/deep", ChangeKind::Removed),
        ("folder/deep/file", ChangeKind::Removed),
        ("gone", ChangeKind::Removed),
        ("kind", ChangeKind::Type),
        ("link", ChangeKind::Modified),
        ("new", ChangeKind::Added),
        ("new/file", ChangeKind::Added),
        ("tagged", ChangeKind::Attributes),
    ]);
    assert_eq!(changes(&before, &after), wanted);
    assert_eq!(changes(&after, &after), []);
    let back = changes(&after, &before);
    assert_eq!(back.len(), wanted.len());
    assert!(back.contains(&("new/file".to_owned(), ChangeKind::Removed)));
}

fn touch(layer: &Layer, path: &str) {
    let time = std::time::SystemTime::UNIX_EPOCH;
    let file = File::options().write(true).open(layer.at(path)).unwrap();
    file.set_times(FileTimes::new().set_modified(time).set_accessed(time)).unwrap();
}

#[test]
fn a_change_that_keeps_size_and_time_is_found() {
    let layers = Layers::new();
    let (top, base) = (layers.layer("top"), layers.layer("base"));
    let long = "x".repeat(300_000);
    base.file("file", format!("{long}1"));
    top.file("file", format!("{long}2"));
    touch(&top, "file");
    touch(&base, "file");
    assert_eq!(
        changes(&chain(&[&base]), &chain(&[&top, &base])),
        expected(&[("file", ChangeKind::Modified)])
    );
}

#[test]
fn layers_that_both_chains_share_are_not_read() {
    let layers = Layers::new();
    let (one, other, base) = (layers.layer("one"), layers.layer("other"), layers.layer("base"));
    // A mark that would be refused if anybody looked.
    base.file("unread/file", "").attribute("unread/file", "user.overlay.redirect", "/");
    base.file("etc/unread", "").attribute("etc/unread", "user.overlay.redirect", "/");
    one.file("etc/one", "");
    other.file("etc/other", "");
    let (a, b) = (chain(&[&one, &base]), chain(&[&other, &base]));
    let wanted = [("etc/one", ChangeKind::Removed), ("etc/other", ChangeKind::Added)];
    assert_eq!(changes(&a, &b), expected(&wanted));
    assert!(matches!(diff(&[], &a, false), Err(Error::Mark { .. })));
}

#[test]
fn an_opaque_folder_removes_what_it_hides() {
    let layers = Layers::new();
    let (top, base) = (layers.layer("top"), layers.layer("base"));
    base.file("folder/a", "a").file("folder/b", "b");
    top.opaque("folder").file("folder/a", "a");
    assert_eq!(
        changes(&chain(&[&base]), &chain(&[&top, &base])),
        expected(&[("folder/b", ChangeKind::Removed)])
    );
}

#[test]
fn content_is_shown_as_text_where_it_is_text() {
    let layers = Layers::new();
    let (top, base) = (layers.layer("top"), layers.layer("base"));
    base.file("text", "one\ntwo\n").file("binary", [0, 1]).link("link", "here");
    top.file("text", "one\n2\n")
        .file("binary", [0, 1, 2])
        .link("link", "there")
        .file("large", vec![b'x'; 2 << 20]);
    let changes = diff(&chain(&[&base]), &chain(&[&top, &base]), true).unwrap();
    let body =
        |path: &str| changes.iter().find(|change| change.path == Path::new(path)).unwrap().body.clone();
    assert_eq!(body("text"), Body::Text("--- a/text\n+++ b/text\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n".into()));
    assert_eq!(body("binary"), Body::Binary { old: Some(2), new: Some(3) });
    assert_eq!(body("large"), Body::Binary { old: None, new: Some(2 << 20) });
    assert_eq!(body("link"), Body::Link { old: Some(b"here".to_vec()), new: Some(b"there".to_vec()) });
}

#[test]
fn what_a_nested_overlay_left_is_shown_as_its_own() {
    let layers = Layers::new();
    let top = layers.layer("top");
    top.folder("inner").attribute("inner", "user.overlay.overlay.opaque", "y");
    let tree = Tree::open(&chain(&[&top])).unwrap();
    let entry = tree.entry(Path::new("inner")).unwrap().unwrap();
    let attributes = tree.attributes(&entry).unwrap();
    assert_eq!(attributes.get(&b"user.overlay.opaque"[..]), Some(&b"y".to_vec()));
}
