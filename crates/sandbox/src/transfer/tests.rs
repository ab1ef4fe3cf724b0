use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat, openat};

use super::carry::Carrier;
use super::item::Item;
use super::place::{Base, Destination};
use super::{Inside, Limits, TransferError};
use crate::driver::EntryKind;

/// A host and a sandbox, as two folders.
struct Sides {
    home: tempfile::TempDir,
}

impl Sides {
    fn new() -> Self {
        let sides = Self { home: tempfile::tempdir().unwrap() };
        for folder in ["host", "inside/tmp", "inside/etc"] {
            fs::create_dir_all(sides.home.path().join(folder)).unwrap();
        }
        sides
    }

    fn host(&self, path: &str) -> PathBuf {
        self.home.path().join("host").join(path)
    }

    /// A path of the sandbox, seen from here.
    fn seen(&self, path: &str) -> PathBuf {
        self.home.path().join("inside").join(path.trim_start_matches('/'))
    }

    fn files(&self) -> Inside {
        self.within(Limits::default())
    }

    fn within(&self, limits: Limits) -> Inside {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Inside::new(openat(CWD, self.seen("/"), flags, Mode::empty()).unwrap(), limits)
    }

    /// `folder/a` and `folder/below/b`.
    fn tree(&self, at: &Path) {
        fs::create_dir_all(at.join("below")).unwrap();
        fs::write(at.join("a"), "a").unwrap();
        fs::write(at.join("below/b"), "bb").unwrap();
    }
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

fn path(path: &str) -> &Path {
    Path::new(path)
}

#[test]
fn paths_behave_as_for_docker_cp() {
    let sides = Sides::new();
    let files = sides.files();
    sides.tree(&sides.host("folder"));
    let file = sides.host("folder/a");
    let folder = sides.host("folder");
    files.copy_in(&file, path("/tmp/new")).unwrap();
    assert_eq!(text(sides.seen("/tmp/new")), "a");
    files.copy_in(&sides.host("folder/below/b"), path("/tmp/new")).unwrap();
    assert_eq!(text(sides.seen("/tmp/new")), "bb", "a file is replaced");
    files.copy_in(&file, path("/tmp")).unwrap();
    assert_eq!(text(sides.seen("/tmp/a")), "a", "a folder is copied into");
    files.copy_in(&folder, path("/tmp/made")).unwrap();
    assert_eq!(text(sides.seen("/tmp/made/below/b")), "bb", "a folder that is not there is made");
    files.copy_in(&folder, path("/tmp/made")).unwrap();
    assert_eq!(text(sides.seen("/tmp/made/folder/below/b")), "bb", "one that is there is copied into");
    files.copy_in(&folder.join("."), path("/etc/")).unwrap();
    assert_eq!(text(sides.seen("/etc/below/b")), "bb", "what is in a folder goes into the other");

    let refused = files.copy_in(&folder, path("/tmp/new")).unwrap_err();
    assert!(matches!(refused, TransferError::NotFolder { .. }), "a folder over a file: {refused}");
    let refused = files.copy_in(&file, path("/tmp/no-such/")).unwrap_err();
    assert!(matches!(refused, TransferError::NotFolder { .. }), "a file as a folder: {refused}");
    let refused = files.copy_in(&file, path("/no/such/place")).unwrap_err();
    assert!(matches!(refused, TransferError::Absent { .. }), "no folder to be in: {refused}");
    let refused = files.copy_in(&sides.host("absent"), path("/tmp")).unwrap_err();
    assert!(matches!(refused, TransferError::Absent { .. }), "{refused}");
}

#[test]
fn what_comes_out_is_what_is_inside() {
    let sides = Sides::new();
    sides.tree(&sides.seen("/etc/app"));
    fs::set_permissions(sides.seen("/etc/app/a"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::set_permissions(sides.seen("/etc/app/below"), fs::Permissions::from_mode(0o500)).unwrap();
    let copied = sides.files().copy_out(path("/etc/app"), &sides.host("out")).unwrap();
    assert_eq!((copied.entries, copied.bytes, copied.notes), (4, 3, Vec::new()));
    let about = |path: PathBuf| {
        let about = fs::metadata(path).unwrap();
        (about.mode() & 0o7777, about.mtime(), about.mtime_nsec())
    };
    for inner in ["a", "below"] {
        assert_eq!(
            about(sides.host("out").join(inner)),
            about(sides.seen("/etc/app").join(inner)),
            "{inner}"
        );
    }
    let all = sides.files().copy_out(path("/"), &sides.host("")).unwrap();
    assert_eq!((all.entries, text(sides.host("etc/app/below/b"))), (6, "bb".to_owned()));
}

#[test]
fn links_inside_lead_to_places_inside() {
    let sides = Sides::new();
    let files = sides.files();
    fs::write(sides.host("secret"), "the host's").unwrap();
    fs::write(sides.seen("/etc/real"), "inside").unwrap();
    symlink("/etc", sides.seen("/tmp/absolute")).unwrap();
    symlink("../../../../../../../etc", sides.seen("/tmp/above")).unwrap();
    symlink(sides.host("secret"), sides.seen("/tmp/secret")).unwrap();
    symlink(sides.host(""), sides.seen("/tmp/folder")).unwrap();
    symlink("/etc/real", sides.seen("/tmp/real")).unwrap();
    for inner in ["/tmp/absolute/real", "/tmp/above/real", "/tmp/real", "/../../etc/real"] {
        let mut content = String::new();
        files.read(path(inner), 0, 100).unwrap().read_to_string(&mut content).unwrap();
        assert_eq!(content, "inside", "{inner}");
    }
    assert!(matches!(files.read(path("/tmp/secret"), 0, 100).err(), Some(TransferError::Absent { .. })));
    files.write(path("/tmp/real"), 0o600, &mut &b"written"[..]).unwrap();
    assert_eq!(text(sides.seen("/etc/real")), "written");
    // A folder that a link names is made where the link leads to: inside, whatever the host has there.
    files.write(path("/tmp/secret"), 0o600, &mut &b"inside"[..]).unwrap();
    files.write(path("/tmp/folder/planted"), 0o600, &mut &b"inside"[..]).unwrap();
    files.copy_in(&sides.host("secret"), path("/tmp/folder/copied")).unwrap();
    for name in ["secret", "planted"] {
        assert_eq!(text(sides.seen(sides.host(name).to_str().unwrap())), "inside");
    }
    assert_eq!(text(sides.host("secret")), "the host's");
    assert_eq!(fs::read_dir(sides.host("")).unwrap().count(), 1, "something was written to the host");
}

#[test]
fn a_link_is_copied_as_a_link_and_nothing_is_written_through_one() {
    let sides = Sides::new();
    let files = sides.files();
    sides.tree(&sides.seen("/etc/app"));
    symlink(sides.host("precious"), sides.seen("/etc/app/link")).unwrap();
    fs::write(sides.host("precious"), "precious").unwrap();
    files.copy_out(path("/etc/app"), &sides.host("out")).unwrap();
    assert_eq!(fs::read_link(sides.host("out/link")).unwrap(), sides.host("precious"));
    files.copy_out(path("/etc/app/link"), &sides.host("link")).unwrap();
    assert_eq!(fs::read_link(sides.host("link")).unwrap(), sides.host("precious"));

    // What was a link at first is a file and a folder now.
    fs::remove_file(sides.seen("/etc/app/link")).unwrap();
    fs::write(sides.seen("/etc/app/link"), "hostile").unwrap();
    files.copy_out(path("/etc/app/."), &sides.host("out")).unwrap();
    assert_eq!(text(sides.host("out/link")), "hostile");
    assert_eq!(text(sides.host("precious")), "precious");

    fs::create_dir(sides.host("elsewhere")).unwrap();
    fs::remove_dir_all(sides.host("out/below")).unwrap();
    symlink(sides.host("elsewhere"), sides.host("out/below")).unwrap();
    let refused = files.copy_out(path("/etc/app/."), &sides.host("out")).unwrap_err();
    assert!(matches!(refused, TransferError::Link { .. } | TransferError::NotFolder { .. }), "{refused}");
    assert_eq!(fs::read_dir(sides.host("elsewhere")).unwrap().count(), 0);
}

#[test]
fn what_would_wait_or_act_is_left_out_and_named() {
    let sides = Sides::new();
    let files = sides.files();
    sides.tree(&sides.seen("/etc/app"));
    fifo(&sides.seen("/etc/app/fifo"));
    let _listening = UnixListener::bind(sides.seen("/etc/app/socket")).unwrap();
    let copied = files.copy_out(path("/etc/app"), &sides.host("out")).unwrap();
    assert_eq!(copied.notes.len(), 2, "{:?}", copied.notes);
    assert!(copied.notes[0].starts_with("/etc/app/fifo: "), "{:?}", copied.notes);
    assert!(!sides.host("out/fifo").exists() && !sides.host("out/socket").exists());
    assert!(matches!(files.read(path("/etc/app/fifo"), 0, 1).err(), Some(TransferError::Special { .. })));
    let refused = files.write(path("/etc/app/fifo"), 0o600, &mut &b"x"[..]);
    assert!(matches!(refused, Err(TransferError::Special { .. })));
    assert!(fs::symlink_metadata(sides.seen("/etc/app/fifo")).unwrap().file_type().is_fifo());
}

#[test]
fn a_file_swapped_for_a_fifo_is_still_the_file() {
    let sides = Sides::new();
    fs::write(sides.seen("/etc/file"), "content").unwrap();
    let item = Item::find(&Base::Host, &sides.seen("/etc/file"), false).unwrap();
    fs::remove_file(sides.seen("/etc/file")).unwrap();
    fifo(&sides.seen("/etc/file"));
    let mut content = String::new();
    item.file().unwrap().read_to_string(&mut content).unwrap();
    assert_eq!(content, "content");
}

#[test]
fn a_file_that_grows_is_copied_as_long_as_it_was() {
    let sides = Sides::new();
    fs::write(sides.seen("/etc/log"), "first").unwrap();
    let item = Item::find(&Base::Host, &sides.seen("/etc/log"), false).unwrap();
    let mut log = File::options().append(true).open(sides.seen("/etc/log")).unwrap();
    log.write_all(b" and more").unwrap();
    let Destination::Absent(spot) = Destination::find(&Base::Host, &sides.host("log"), false).unwrap() else {
        panic!("it is there already");
    };
    let mut carrier = Carrier::new(Limits::default(), true);
    carrier.put(&item, &spot, 0).unwrap();
    assert_eq!(text(sides.host("log")), "first");
}

#[test]
fn rights_of_the_caller_are_not_given_away() {
    let sides = Sides::new();
    fs::write(sides.seen("/etc/tool"), "#!").unwrap();
    fs::set_permissions(sides.seen("/etc/tool"), fs::Permissions::from_mode(0o4755)).unwrap();
    let copied = sides.files().copy_out(path("/etc/tool"), &sides.host("tool")).unwrap();
    assert_eq!(fs::metadata(sides.host("tool")).unwrap().mode() & 0o7777, 0o755);
    assert_eq!(copied.notes, ["/etc/tool: copied without its set-id bits"]);
    sides.files().copy_in(&sides.seen("/etc/tool"), path("/tmp/tool")).unwrap();
    assert_eq!(fs::metadata(sides.seen("/tmp/tool")).unwrap().mode() & 0o7777, 0o4755);
}

#[test]
fn limits_hold_and_leave_no_half_of_a_file() {
    let sides = Sides::new();
    sides.tree(&sides.host("folder"));
    let few = sides.within(Limits { bytes: 2, entries: 100 });
    let refused = few.copy_in(&sides.host("folder"), path("/tmp/few")).unwrap_err();
    assert!(matches!(refused, TransferError::TooLarge { limit: 2, .. }), "{refused}");
    let refused = few.write(path("/tmp/file"), 0o600, &mut &b"123"[..]).unwrap_err();
    assert!(matches!(refused, TransferError::TooLarge { limit: 2, .. }), "{refused}");
    assert!(!sides.seen("/tmp/file").exists());
    let refused = sides.within(Limits { bytes: 100, entries: 3 });
    let refused = refused.copy_in(&sides.host("folder"), path("/tmp/many")).unwrap_err();
    assert!(matches!(refused, TransferError::TooMany { limit: 3, .. }), "{refused}");
    let enough = sides.within(Limits { bytes: 3, entries: 4 });
    enough.copy_in(&sides.host("folder"), path("/tmp/enough")).unwrap();
}

/// Gives some bytes, and then fails.
struct Broken(usize);

impl Read for Broken {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(1).ok_or(io::ErrorKind::ConnectionReset)?;
        buffer[0] = b'x';
        Ok(1)
    }
}

#[test]
fn a_write_that_fails_leaves_what_was_there() {
    let sides = Sides::new();
    let files = sides.files();
    files.write(path("/tmp/deep/folder/file"), 0o640, &mut &b"whole"[..]).unwrap();
    assert!(files.write(path("/tmp/deep/folder/file"), 0o600, &mut Broken(3)).is_err());
    assert_eq!(text(sides.seen("/tmp/deep/folder/file")), "whole");
    assert_eq!(fs::metadata(sides.seen("/tmp/deep/folder/file")).unwrap().mode() & 0o7777, 0o640);
    assert_eq!(fs::read_dir(sides.seen("/tmp/deep/folder")).unwrap().count(), 1, "something was left behind");
    assert!(matches!(
        files.write(path("/tmp/deep"), 0o600, &mut &b""[..]),
        Err(TransferError::IsFolder { .. })
    ));
}

#[test]
fn a_folder_is_not_copied_into_itself_for_ever() {
    let sides = Sides::new();
    sides.tree(&sides.seen("/etc/app"));
    let copied = sides.files().copy_in(&sides.seen("/etc/app"), path("/etc/app/below/again")).unwrap();
    assert_eq!(copied.notes.len(), 1, "{:?}", copied.notes);
    assert_eq!(text(sides.seen("/etc/app/below/again/below/b")), "bb");
    assert!(!sides.seen("/etc/app/below/again/below/again").exists());
}

#[test]
fn folders_beyond_measure_are_refused() {
    let sides = Sides::new();
    fs::create_dir_all(sides.seen(&format!("/etc/{}", "d/".repeat(300)))).unwrap();
    let refused = sides.files().copy_out(path("/etc"), &sides.host("out")).unwrap_err();
    assert!(matches!(refused, TransferError::TooDeep { .. }), "{refused}");
}

#[test]
fn a_folder_is_listed_with_what_is_in_it() {
    let sides = Sides::new();
    sides.tree(&sides.seen("/etc/app"));
    symlink("nowhere", sides.seen("/etc/app/link")).unwrap();
    fifo(&sides.seen("/etc/app/fifo"));
    let listed = sides.files().list(path("/etc/app")).unwrap();
    let told: Vec<_> = listed.iter().map(|entry| (entry.name.as_str(), entry.kind, entry.size)).collect();
    assert_eq!(told[0], ("a", EntryKind::File, 1));
    assert_eq!((told[1].1, told[2].1, told[3].1), (EntryKind::Folder, EntryKind::Other, EntryKind::Link));
    assert!(matches!(sides.files().list(path("/etc/app/a")), Err(TransferError::NotFolder { .. })));
}

/// The most memory this process ever had, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn large_files_need_no_memory_of_their_size() {
    let sides = Sides::new();
    let files = sides.files();
    let before = peak();
    let sparse = File::create(sides.host("sparse")).unwrap();
    sparse.set_len(1 << 30).unwrap();
    sparse.write_all_at(b"end", (1 << 30) - 3).unwrap();
    assert_eq!(files.copy_in(&sides.host("sparse"), path("/tmp/sparse")).unwrap().bytes, 1 << 30);
    assert_eq!(files.copy_out(path("/tmp/sparse"), &sides.host("back")).unwrap().bytes, 1 << 30);
    assert!(fs::metadata(sides.host("back")).unwrap().blocks() < 1000, "holes were filled");
    let read = io::copy(&mut files.read(path("/tmp/sparse"), 0, u64::MAX).unwrap(), &mut io::sink()).unwrap();
    assert_eq!(read, 1 << 30);
    let written = files.write(path("/tmp/dense"), 0o600, &mut io::repeat(7).take(128 << 20)).unwrap();
    assert_eq!(written, 128 << 20);
    assert!(peak() - before < 16 << 10, "{} KiB", peak() - before);
}
