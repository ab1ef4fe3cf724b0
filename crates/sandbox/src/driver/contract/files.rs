use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::{Bed, Made, command, shell};
use crate::driver::{DriverError, EntryKind, Files};

fn put(files: &dyn Files, path: &str, mode: u32, mut content: &[u8]) {
    files.write(Path::new(path), mode, &mut content).unwrap();
}

fn get(files: &dyn Files, path: &str) -> Vec<u8> {
    let mut all = Vec::new();
    files.read(Path::new(path), 0, u64::MAX).unwrap().read_to_end(&mut all).unwrap();
    all
}

pub(super) fn what_is_written_is_read(bed: &dyn Bed) {
    let made = Made::new(bed);
    let files = bed.driver().files(&made.id).unwrap();
    put(files.as_ref(), "/tmp/note", 0o644, b"first, and longer");
    put(files.as_ref(), "/tmp/note", 0o644, b"second");
    assert_eq!(get(files.as_ref(), "/tmp/note"), b"second");
    let large = vec![7; 3 << 20];
    put(files.as_ref(), "/tmp/large", 0o644, &large);
    assert!(get(files.as_ref(), "/tmp/large") == large, "it came back as something else");
}

pub(super) fn a_part_of_a_file_is_read(bed: &dyn Bed) {
    let made = Made::new(bed);
    let files = bed.driver().files(&made.id).unwrap();
    put(files.as_ref(), "/tmp/digits", 0o644, b"0123456789");
    let part = |offset, length| {
        let mut part = String::new();
        files.read(Path::new("/tmp/digits"), offset, length).unwrap().read_to_string(&mut part).unwrap();
        part
    };
    assert_eq!(part(3, 4), "3456");
    assert_eq!(part(8, 100), "89");
    assert_eq!(part(100, 1), "");
}

pub(super) fn a_mode_is_kept(bed: &dyn Bed) {
    let made = Made::new(bed);
    let files = bed.driver().files(&made.id).unwrap();
    put(files.as_ref(), "/tmp/only/mine", 0o600, b"x");
    let entries = files.list(Path::new("/tmp/only")).unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!((entries[0].mode & 0o777, entries[0].size, entries[0].kind), (0o600, 1, EntryKind::File));
}

pub(super) fn a_folder_lists_what_is_in_it(bed: &dyn Bed) {
    let made = Made::new(bed);
    let files = bed.driver().files(&made.id).unwrap();
    put(files.as_ref(), "/tmp/list/a", 0o644, b"");
    put(files.as_ref(), "/tmp/list/b/c", 0o644, b"");
    assert_eq!(made.code(&shell("ln -s /tmp/list/a /tmp/list/z")), 0);
    let mut entries = files.list(Path::new("/tmp/list")).unwrap();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let told: Vec<_> = entries.iter().map(|entry| (entry.name.as_str(), entry.kind)).collect();
    assert_eq!(told, [("a", EntryKind::File), ("b", EntryKind::Folder), ("z", EntryKind::Link)]);
}

pub(super) fn what_is_absent_is_an_error(bed: &dyn Bed) {
    let made = Made::new(bed);
    let files = bed.driver().files(&made.id).unwrap();
    let absent = Path::new("/tmp/absent");
    assert!(matches!(files.read(absent, 0, 1).err(), Some(DriverError::Files { .. })));
    assert!(matches!(files.list(absent).err(), Some(DriverError::Files { .. })));
    let out = tempfile::tempdir().unwrap();
    assert!(matches!(files.copy_out(absent, &out.path().join("x")).err(), Some(DriverError::Files { .. })));
    assert!(!out.path().join("x").exists());
}

pub(super) fn a_tree_comes_back_as_it_went_in(bed: &dyn Bed) {
    let made = Made::new(bed);
    let files = bed.driver().files(&made.id).unwrap();
    let host = tempfile::tempdir().unwrap();
    let tree = host.path().join("tree");
    fs::create_dir_all(tree.join("below/deep")).unwrap();
    fs::write(tree.join("below/deep/run"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(tree.join("below/deep/run"), fs::Permissions::from_mode(0o750)).unwrap();
    symlink("below/deep/run", tree.join("link")).unwrap();
    let went = files.copy_in(&tree, Path::new("/tmp/tree")).unwrap();
    let came = files.copy_out(Path::new("/tmp/tree"), &host.path().join("back")).unwrap();
    assert_eq!((went.bytes, came.bytes), (10, 10));
    assert_eq!(fs::read_to_string(host.path().join("back/below/deep/run")).unwrap(), "#!/bin/sh\n");
    let mode = fs::metadata(host.path().join("back/below/deep/run")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o750);
    assert_eq!(fs::read_link(host.path().join("back/link")).unwrap(), Path::new("below/deep/run"));
}

pub(super) fn a_link_inside_leads_nowhere_outside(bed: &dyn Bed) {
    let made = Made::new(bed);
    let files = bed.driver().files(&made.id).unwrap();
    let host = tempfile::tempdir().unwrap();
    let secret = host.path().join("secret");
    fs::write(&secret, "the host's own").unwrap();
    let plant =
        format!("ln -s {} /tmp/to-secret; ln -s {} /tmp/to-folder", secret.display(), host.path().display());
    assert_eq!(made.code(&shell(&plant)), 0);
    if let Ok(mut read) = files.read(Path::new("/tmp/to-secret"), 0, 100) {
        let mut text = String::new();
        let _ = read.read_to_string(&mut text);
        assert_ne!(text, "the host's own");
    }
    let _ = files.write(Path::new("/tmp/to-secret"), 0o644, &mut b"overwritten".as_slice());
    let _ = files.write(Path::new("/tmp/to-folder/planted"), 0o644, &mut b"planted".as_slice());
    assert_eq!(fs::read_to_string(&secret).unwrap(), "the host's own");
    assert!(!host.path().join("planted").exists(), "something was written to the host");
}

pub(super) fn a_command_sees_what_was_written(bed: &dyn Bed) {
    let made = Made::new(bed);
    // Before the first command, and while the sandbox lives.
    let files = bed.driver().files(&made.id).unwrap();
    put(files.as_ref(), "/early", 0o644, b"early\n");
    assert_eq!(made.text(&command(&["cat", "/early"])), "early\n");
    put(files.as_ref(), "/late", 0o644, b"late\n");
    assert_eq!(made.text(&command(&["cat", "/late"])), "late\n");
    assert_eq!(made.code(&shell("echo inside > /inside")), 0);
    assert_eq!(get(files.as_ref(), "/inside"), b"inside\n");
}
