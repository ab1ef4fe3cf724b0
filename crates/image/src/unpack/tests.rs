use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::PathBuf;

use redoma_layers::remove::remove;
use tar::EntryType;
use tempfile::TempDir;

use super::*;
use crate::tape::Tape;

/// A layer in `layer/`, with something worth reaching beside it.
struct Layer {
    home: TempDir,
    unpacked: Unpacked,
}

impl Layer {
    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join("layer").join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn is_whiteout(&self, name: &str) -> bool {
        let metadata = fs::symlink_metadata(self.path(name)).unwrap();
        metadata.file_type().is_char_device() && metadata.rdev() == 0
    }

    fn is_opaque(&self, name: &str) -> bool {
        let mut value = [0; 8];
        rustix::fs::getxattr(self.path(name), OPAQUE, &mut value[..])
            .is_ok_and(|length| value[..length] == *b"y")
    }
}

fn home() -> TempDir {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("layer")).unwrap();
    fs::write(home.path().join("victim"), "untouched").unwrap();
    home
}

fn unpacked(tape: Tape) -> Layer {
    let home = home();
    let tape = tape.end();
    let unpacked =
        unpack(&tape[..], &home.path().join("layer"), Ownership::Mine, &Limits::default()).unwrap();
    Layer { home, unpacked }
}

/// The error; nothing outside was touched.
fn refused_with(tape: Tape, limits: &Limits) -> Error {
    let home = home();
    let error = unpack(&tape.end()[..], &home.path().join("layer"), Ownership::Mine, limits).unwrap_err();
    assert_eq!(fs::read_to_string(home.path().join("victim")).unwrap(), "untouched");
    let outside: Vec<_> =
        fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(outside.len(), 2, "{outside:?}");
    error
}

fn refused(tape: Tape) -> Error {
    refused_with(tape, &Limits::default())
}

#[test]
fn files_folders_and_links_are_as_the_archive_says() {
    let tape = Tape::default()
        .folder("bin/")
        .entry(EntryType::Regular, "bin/su", "", 0o4755, b"program")
        .hardlink("bin/also", "bin/su")
        .symlink("sbin", "/bin")
        .entry(EntryType::Fifo, "fifo", "", 0o600, b"")
        .entry(EntryType::Directory, "sealed/", "", 0o555, b"")
        .file("sealed/inside", b"x");
    let layer = unpacked(tape);
    let su = fs::metadata(layer.path("bin/su")).unwrap();
    assert_eq!((su.mode() & 0o7777, su.mtime(), su.nlink()), (0o4755, 1_000_000_000, 2));
    assert_eq!(fs::read_link(layer.path("sbin")).unwrap(), Path::new("/bin"));
    assert!(fs::metadata(layer.path("fifo")).unwrap().file_type().is_fifo());
    let sealed = fs::metadata(layer.path("sealed")).unwrap();
    assert_eq!((sealed.mode() & 0o7777, sealed.mtime()), (0o555, 1_000_000_000));
    assert_eq!(layer.text("sealed/inside"), "x");
    assert_eq!((layer.unpacked.entries, layer.unpacked.bytes), (7, 8));
    assert!(layer.unpacked.is_complete && layer.unpacked.notes.is_empty());
}

#[test]
fn a_leading_slash_means_the_root_of_the_layer() {
    assert_eq!(unpacked(Tape::default().file("/etc/x", b"1")).text("etc/x"), "1");
}

#[test]
fn dots_that_lead_out_are_refused() {
    for name in ["../victim", "a/../../victim", "/../victim", "..", "a/.."] {
        assert!(matches!(refused(Tape::default().file(name, b"!")), Error::Entry { .. }), "{name}");
    }
}

#[test]
fn nothing_is_written_through_a_symbolic_link() {
    for target in ["..", "/", "/tmp", "."] {
        let error = refused(Tape::default().symlink("out", target).file("out/victim", b"!"));
        assert!(matches!(error, Error::Entry { .. }), "{target}: {error}");
    }
    let mut chain = Tape::default();
    for link in 0..10 {
        chain = chain.symlink(&format!("l{link}"), &format!("l{}", link + 1));
    }
    assert!(matches!(refused(chain.symlink("l10", "..").file("l0/victim", b"!")), Error::Entry { .. }));
}

#[test]
fn a_file_takes_a_links_place_and_does_not_follow_it() {
    let layer = unpacked(Tape::default().symlink("a", "../victim").file("a", b"own"));
    assert_eq!(layer.text("a"), "own");
    assert!(fs::symlink_metadata(layer.path("a")).unwrap().is_file());
    assert_eq!(fs::read_to_string(layer.home.path().join("victim")).unwrap(), "untouched");
}

#[test]
fn a_folder_entry_on_a_link_replaces_it() {
    let layer = unpacked(Tape::default().symlink("a", "..").folder("a/").file("a/b", b"x"));
    assert!(fs::symlink_metadata(layer.path("a")).unwrap().is_dir());
}

#[test]
fn hard_links_reach_files_of_the_layer_only() {
    for target in ["../victim", "/etc/passwd", "missing", "", "folder"] {
        let error = refused(Tape::default().folder("folder/").hardlink("x", target));
        assert!(matches!(error, Error::Entry { .. }), "{target}: {error}");
    }
    let through = Tape::default().symlink("out", "..").hardlink("x", "out/victim");
    assert!(matches!(refused(through), Error::Entry { .. }));
}

#[test]
fn a_hard_link_to_a_symbolic_link_is_a_link_and_what_is_written_to_it_stays_inside() {
    let layer = unpacked(Tape::default().symlink("l", "../victim").hardlink("h", "l").file("h", b"own"));
    assert_eq!(fs::read_link(layer.path("l")).unwrap(), Path::new("../victim"));
    assert_eq!(layer.text("h"), "own");
    assert_eq!(fs::read_to_string(layer.home.path().join("victim")).unwrap(), "untouched");
}

#[test]
fn writing_to_one_name_of_a_file_leaves_the_other() {
    let layer = unpacked(Tape::default().file("a", b"1").hardlink("b", "a").file("b", b"2"));
    assert_eq!((layer.text("a"), layer.text("b")), ("1".into(), "2".into()));
}

#[test]
fn a_hard_link_to_itself_changes_nothing() {
    assert_eq!(unpacked(Tape::default().file("a", b"1").hardlink("a", "./a")).text("a"), "1");
}

#[test]
fn devices_are_left_out_with_a_note() {
    let tape = Tape::default().entry(EntryType::Block, "sda", "", 0o666, b"").entry(
        EntryType::Char,
        "dev/null",
        "",
        0o666,
        b"",
    );
    let layer = unpacked(tape);
    assert!(!layer.path("sda").exists() && !layer.path("dev/null").exists());
    assert_eq!(layer.unpacked.notes, ["sda: a device is left out"]);
}

#[test]
fn whiteouts_hide_what_lies_below() {
    let tape = Tape::default()
        .folder("etc/")
        .file("etc/.wh.passwd", b"")
        .file("var/.wh..wh..opq", b"")
        .file("var/own", b"x");
    let layer = unpacked(tape);
    assert!(layer.is_whiteout("etc/passwd") && !layer.path("etc/.wh.passwd").exists());
    assert!(layer.is_opaque("var") && !layer.is_opaque("etc"));
    assert_eq!(layer.text("var/own"), "x");
}

#[test]
fn a_whiteout_does_not_hide_what_its_own_layer_has() {
    let before = unpacked(Tape::default().file("a", b"1").folder("d/").file(".wh.a", b"").file(".wh.d", b""));
    assert_eq!(before.text("a"), "1");
    assert!(before.is_opaque("d"));
    let after =
        unpacked(Tape::default().file(".wh.a", b"").file(".wh.d", b"").file("a", b"1").file("d/x", b"2"));
    assert_eq!((after.text("a"), after.text("d/x")), ("1".into(), "2".into()));
    assert!(after.is_opaque("d"));
}

#[test]
fn a_whiteout_below_a_file_or_a_link_has_nothing_to_hide() {
    let tape = Tape::default().file("var", b"1").file("var/.wh.a", b"").file("var/.wh..wh..opq", b"");
    assert_eq!(unpacked(tape).text("var"), "1");
    let layer = unpacked(
        Tape::default().symlink("out", "..").file("out/.wh.victim", b"").file("out/.wh..wh..opq", b""),
    );
    assert_eq!(fs::read_to_string(layer.home.path().join("victim")).unwrap(), "untouched");
    assert_eq!(fs::read_dir(layer.path("")).unwrap().count(), 1);
}

#[test]
fn a_whiteout_of_the_folder_above_is_refused() {
    for name in ["a/.wh..", "a/.wh...", ".wh."] {
        assert!(
            matches!(refused(Tape::default().folder("a/").file(name, b"")), Error::Entry { .. }),
            "{name}"
        );
    }
}

#[test]
fn overlayfs_attributes_of_the_archive_are_not_set() {
    let tape = Tape::default()
        .pax("SCHILY.xattr.user.overlay.redirect", b"/etc")
        .folder("a/")
        .pax("SCHILY.xattr.user.note", b"x\ny")
        .file("b", b"")
        .pax("SCHILY.xattr.trusted.overlay.opaque", b"y")
        .folder("c/");
    let layer = unpacked(tape);
    let mut value = [0; 8];
    assert_eq!(rustix::fs::getxattr(layer.path("b"), "user.note", &mut value[..]), Ok(3));
    assert!(rustix::fs::getxattr(layer.path("a"), "user.overlay.redirect", &mut value[..]).is_err());
    assert_eq!(layer.unpacked.notes.len(), 2, "{:?}", layer.unpacked.notes);
}

#[test]
fn an_attribute_that_is_too_long_for_the_kernel_is_left_out_with_a_note() {
    let layer = unpacked(Tape::default().pax("SCHILY.xattr.user.big", &[b'x'; 70_000]).file("a", b"1"));
    assert_eq!(layer.text("a"), "1");
    assert!(layer.unpacked.notes[0].starts_with("a: the attribute user.big cannot be set"));
}

#[test]
fn a_folder_becomes_a_file_and_a_folder_again() {
    let tape = Tape::default().file("a/b/c", b"1").file("a", b"2").folder("a/").file("a/d", b"3");
    let layer = unpacked(tape);
    assert!(!layer.path("a/b").exists());
    assert_eq!(layer.text("a/d"), "3");
    assert!(layer.is_opaque("a"));
}

#[test]
fn the_folder_used_last_is_not_used_after_it_is_gone() {
    // Without care the second file would go into the first folder, which has no name any more.
    let layer = unpacked(Tape::default().file("a/b", b"1").file("a", b"2").folder("a/").file("a/b", b"3"));
    assert_eq!(layer.text("a/b"), "3");
}

#[test]
fn below_a_file_nothing_can_be() {
    let error = refused(Tape::default().file("a", b"1").file("a/b", b"2"));
    assert!(matches!(error, Error::Entry { .. }), "{error}");
}

#[test]
fn of_two_entries_with_one_name_the_last_holds() {
    assert_eq!(unpacked(Tape::default().file("a", b"first").file("a", b"2")).text("a"), "2");
}

#[test]
fn the_root_of_the_layer_stays_a_folder() {
    for kind in [EntryType::Regular, EntryType::Symlink, EntryType::Fifo, EntryType::Link] {
        assert!(matches!(refused(Tape::default().entry(kind, "./.", "x", 0o644, b"")), Error::Entry { .. }));
    }
    let layer = unpacked(Tape::default().entry(EntryType::Directory, "./", "", 0o700, b""));
    assert_eq!(fs::metadata(layer.path("")).unwrap().mode() & 0o7777, 0o700);
}

#[test]
fn folders_that_no_entry_describes_have_usual_rights() {
    let layer = unpacked(Tape::default().file("opt/a/b", b"").file("tmp/c", b""));
    let mode = |name: &str| fs::metadata(layer.path(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("opt"), mode("opt/a"), mode("tmp"), mode("")), (0o755, 0o755, 0o1777, 0o755));
}

#[test]
fn long_names_come_by_pax_and_by_gnu() {
    let long = format!("{}/{}", "d".repeat(120), "f".repeat(200));
    let pax = Tape::default().pax("path", long.as_bytes()).file("short", b"1");
    assert_eq!(unpacked(pax).text(&long), "1");
    let gnu = Tape::default()
        .entry(EntryType::GNULongName, "././@LongLink", "", 0o644, format!("{long}\0").as_bytes())
        .file("short", b"2");
    assert_eq!(unpacked(gnu).text(&long), "2");
    let out = Tape::default().pax("path", b"../victim").file("short", b"!");
    assert!(matches!(refused(out), Error::Entry { .. }));
    let link = Tape::default().pax("linkpath", b"../victim").hardlink("x", "fine");
    assert!(matches!(refused(link), Error::Entry { .. }));
}

#[test]
fn a_sparse_file_has_its_holes_also_at_its_end() {
    for map in ["0,1,50,1", "0,1,50,1,90,0", "10,2"] {
        let tape =
            Tape::default().pax_more(&[("GNU.sparse.size", b"90"), ("GNU.sparse.map", map.as_bytes())]);
        let layer = unpacked(tape.file("s", b"ab"));
        let content = fs::read(layer.path("s")).unwrap();
        let data: Vec<_> = content.iter().filter(|byte| **byte != 0).collect();
        assert_eq!((content.len(), data), (90, vec![&b'a', &b'b']), "{map}");
    }
}

#[test]
fn limits_are_named() {
    let files =
        |count: u32| (0..count).fold(Tape::default(), |tape, n| tape.file(&n.to_string(), b"12345678"));
    let said = |limits: Limits| refused_with(files(5), &limits).to_string();
    assert_eq!(
        said(Limits { entries: 4, ..Limits::default() }),
        "the number of entries above the limit of 4"
    );
    assert_eq!(
        said(Limits { unpacked: 39, ..Limits::default() }),
        "the size of a layer above the limit of 39"
    );
    let deep = refused_with(Tape::default().file("a/b/c", b""), &Limits { depth: 2, ..Limits::default() });
    assert_eq!(deep.to_string(), "the depth of folders above the limit of 2");
    let long = Tape::default().pax("path", &[b'a'; 5000]).file("x", b"");
    assert!(matches!(refused(long), Error::Limit { limit: 4095, .. }));
    let name = Tape::default().pax("path", &[b'a'; 256]).file("x", b"");
    assert!(matches!(refused(name), Error::Limit { limit: 255, .. }));
}

#[test]
fn a_tree_that_its_owner_may_not_enter_can_be_removed() {
    let tape = Tape::default().folder("a/").file("a/b/c", b"1");
    let layer = unpacked(tape);
    for name in ["a/b", "a"] {
        fs::set_permissions(layer.path(name), Permissions::from_mode(0o0)).unwrap();
    }
    let home = File::open(layer.home.path()).unwrap();
    remove(&home, os(b"layer")).unwrap();
    assert!(!layer.path("").exists());
}

#[test]
fn a_tree_is_removed_without_following_links() {
    let layer = unpacked(Tape::default().symlink("a/up", "../..").symlink("a/victim", "../../victim"));
    let home = File::open(layer.home.path()).unwrap();
    remove(&home, os(b"layer")).unwrap();
    assert_eq!(fs::read_to_string(layer.home.path().join("victim")).unwrap(), "untouched");
}
