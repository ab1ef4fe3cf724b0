use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{CWD, FileType, Mode};
use tempfile::TempDir;

use super::*;

fn rule(verdict: Verdict, rule: u32) -> Option<Match> {
    Some(Match { verdict, rule })
}

/// Denies `.env*` and folders named `secrets`, protects `.envrc`.
fn matcher(path: &Path, kind: FileKind) -> Option<Match> {
    let name = path.file_name()?.to_str()?;
    match (name, kind) {
        (".envrc", _) => rule(Verdict::Protect, 1),
        ("secrets", FileKind::Dir) => rule(Verdict::Deny, 2),
        _ => name.starts_with(".env").then_some(Match { verdict: Verdict::Deny, rule: 0 }),
    }
}

struct Bed {
    tree: TempDir,
    cache: TempDir,
}

impl Bed {
    fn new() -> Self {
        let bed = Self { tree: tempfile::tempdir().unwrap(), cache: tempfile::tempdir().unwrap() };
        for path in [".env", "a/.envrc", "a/b/.env.local", "a/b/plain", "secrets/deep/.env", "c/d/e/plain"] {
            bed.write(path);
        }
        bed
    }

    fn path(&self, rel: &str) -> PathBuf {
        self.tree.path().join(rel)
    }

    fn write(&self, rel: &str) {
        fs::create_dir_all(self.path(rel).parent().unwrap()).unwrap();
        fs::write(self.path(rel), "content").unwrap();
    }

    /// Makes every folder look as if it had last changed long ago, as far as the cache is concerned: its record says
    /// "racy", so the racy mark is taken off instead (a ctime cannot be set).
    fn settle(&self) {
        let (root, file) = (self.tree.path(), only_file(self.cache.path()));
        let mut cached = cache::load_for_test(&file, root);
        cached.records.iter_mut().for_each(|record| record.again = false);
        cache::store(self.cache.path(), root, b"v1", &cached.inodes, &cached.records).unwrap();
    }

    fn walk(&self) -> Found {
        self.walk_with(&matcher, Limits::default(), &[]).unwrap()
    }

    fn walk_with(
        &self,
        matcher: Matcher<'_>,
        limits: Limits,
        sought: &[(PathBuf, Match)],
    ) -> Result<Found, WalkError> {
        let cache = Some(self.cache.path());
        Walk { matcher, fingerprint: b"v1", limits, cache, sought }.run(&[self.tree.path().to_path_buf()])
    }

    fn cold(&self) -> Found {
        let walk =
            Walk { matcher: &matcher, fingerprint: b"", limits: Limits::default(), cache: None, sought: &[] };
        walk.run(&[self.tree.path().to_path_buf()]).unwrap()
    }

    fn hits(&self, found: &Found) -> Vec<String> {
        let rel = |path: &Path| path.strip_prefix(self.tree.path()).unwrap().to_str().unwrap().to_owned();
        found.hits.iter().map(|hit| rel(&hit.path)).collect()
    }
}

fn only_file(dir: &Path) -> PathBuf {
    let mut files: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    files.remove(0)
}

#[test]
fn finds_what_matches_and_stays_out_of_denied_folders() {
    let bed = Bed::new();
    let found = bed.walk();
    assert_eq!(bed.hits(&found), [".env", "a/.envrc", "a/b/.env.local", "secrets"]);
    assert_eq!(found.hits[1].matched, Match { verdict: Verdict::Protect, rule: 1 });
    assert_eq!(found.hits[3].kind, FileKind::Dir);
    assert_eq!((found.dirs, found.dirs_read), (6, 6));
}

#[test]
fn a_granted_file_is_looked_at_itself() {
    let bed = Bed::new();
    let socket = bed.path("a/socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let walk =
        Walk { matcher: &matcher, fingerprint: b"", limits: Limits::default(), cache: None, sought: &[] };
    let found = walk.run(&[bed.path(".env"), bed.path("a/b/plain"), socket.clone(), bed.path("c")]).unwrap();
    assert_eq!(bed.hits(&found), [".env"]);
    assert_eq!(found.specials, [(socket, FileKind::Socket)]);
    assert!(walk.run(&[bed.path("gone")]).is_err());
}

#[test]
fn links_are_reported_and_not_followed() {
    let bed = Bed::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join(".env"), "").unwrap();
    symlink(outside.path(), bed.path("a/out")).unwrap();
    symlink("/nonexistent", bed.path("a/.env-link")).unwrap();
    let found = bed.walk();
    assert_eq!(bed.hits(&found), [".env", "a/.env-link", "a/.envrc", "a/b/.env.local", "secrets"]);
    assert_eq!(found.hits[1].kind, FileKind::Symlink);
}

#[test]
fn names_sockets_fifos_and_devices() {
    let bed = Bed::new();
    let _socket = UnixListener::bind(bed.path("a/socket")).unwrap();
    rustix::fs::mknodat(CWD, bed.path("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let expected = [(bed.path("a/socket"), FileKind::Socket), (bed.path("fifo"), FileKind::Fifo)];
    assert_eq!(bed.walk().specials, expected);
    bed.settle();
    assert_eq!(bed.walk().specials, expected);
}

#[test]
fn a_settled_cache_is_used_and_every_change_is_seen() {
    let bed = Bed::new();
    let first = bed.walk();
    bed.settle();
    let warm = bed.walk();
    assert_eq!(warm.dirs_read, 0);
    assert_eq!(warm.hits, first.hits);

    bed.write("c/d/.env");
    bed.write("new/deep/.env");
    fs::remove_file(bed.path("a/.envrc")).unwrap();
    fs::rename(bed.path("a/b"), bed.path("c/moved")).unwrap();
    let changed = bed.walk();
    assert_eq!(bed.hits(&changed), [".env", "c/d/.env", "c/moved/.env.local", "new/deep/.env", "secrets"]);
    assert!(changed.dirs_read < changed.dirs, "{changed:?}");
    assert_eq!(bed.cold().hits, changed.hits);
}

#[test]
fn a_folder_moved_away_and_linked_to_is_named_once() {
    let bed = Bed::new();
    bed.write("a/b/x/.env");
    bed.walk();
    bed.settle();
    fs::rename(bed.path("a/b"), bed.path("c/b")).unwrap();
    symlink("../c/b", bed.path("a/b")).unwrap();
    assert_eq!(bed.walk().hits, bed.cold().hits);
}

#[test]
fn a_fresh_folder_is_read_again() {
    let bed = Bed::new();
    bed.walk();
    assert!(bed.walk().dirs_read > 0, "its ctime is too young to be told from that of a change right after");
}

#[test]
fn a_broken_or_foreign_cache_is_ignored() {
    let bed = Bed::new();
    let first = bed.walk();
    bed.settle();
    let file = only_file(bed.cache.path());
    let good = fs::read(&file).unwrap();
    for cut in [0, 1, 40, good.len() - 1] {
        fs::write(&file, &good[..cut]).unwrap();
        assert_eq!(bed.walk(), first);
    }
    let mut flipped = good.clone();
    flipped[60] ^= 1;
    fs::write(&file, &flipped).unwrap();
    assert_eq!(bed.walk(), first);
}

#[test]
fn other_names_of_denied_files_are_found() {
    let bed = Bed::new();
    fs::hard_link(bed.path(".env"), bed.path("c/d/innocent")).unwrap();
    fs::hard_link(bed.path("secrets/deep/.env"), bed.path("a/b/innocent")).unwrap();
    let found = bed.walk();
    let names: Vec<_> = found.aliases.iter().map(|alias| (alias.path.clone(), alias.of.clone())).collect();
    let expected = [
        (bed.path("a/b/innocent"), bed.path("secrets/deep/.env")),
        (bed.path("c/d/innocent"), bed.path(".env")),
    ];
    assert_eq!(names, expected);

    bed.settle();
    let warm = bed.walk();
    assert_eq!((warm.dirs_read, &warm.aliases), (0, &found.aliases), "the cache has marked those inodes");

    fs::hard_link(bed.path("a/.envrc"), bed.path("c/script")).unwrap();
    assert_eq!(bed.walk().aliases.len(), 3);
}

#[test]
fn a_name_known_already_needs_no_search() {
    let bed = Bed::new();
    fs::hard_link(bed.path(".env"), bed.path("a/.env")).unwrap();
    let found = bed.walk();
    assert_eq!(found.aliases, []);
    assert_eq!(found.dirs_read, 6, "one pass, not two");
}

#[test]
fn links_to_denied_files_elsewhere_are_found() {
    let bed = Bed::new();
    let home = tempfile::tempdir_in(bed.tree.path().parent().unwrap()).unwrap();
    let key = home.path().join("id_ed25519");
    fs::write(&key, "key").unwrap();
    fs::hard_link(&key, bed.path("a/b/key")).unwrap();
    let sought = [(home.path().to_path_buf(), Match { verdict: Verdict::Deny, rule: 7 })];
    let found = bed.walk_with(&matcher, Limits::default(), &sought).unwrap();
    assert_eq!(found.aliases, [Alias { path: bed.path("a/b/key"), of: key, matched: sought[0].1 }]);
}

#[test]
fn bounds_are_errors_that_name_the_folder() {
    let bed = Bed::new();
    let few = Limits { entries: 2, ..Limits::default() };
    let error = bed.walk_with(&matcher, few, &[]).unwrap_err();
    assert!(matches!(&error, WalkError::TooMany { limit: 2, .. }), "{error:?}");
    assert!(error.hint().contains(bed.tree.path().to_str().unwrap()));
    let short = Limits { time: Duration::ZERO, ..Limits::default() };
    assert!(matches!(bed.walk_with(&matcher, short, &[]), Err(WalkError::TooSlow { .. })));
}

#[test]
fn paths_beyond_path_max_are_refused() {
    let bed = Bed::new();
    let name = "d".repeat(200);
    let mut dir = rustix::fs::open(bed.tree.path(), rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..21 {
        rustix::fs::mkdirat(&dir, &name, Mode::RWXU).unwrap();
        dir = rustix::fs::openat(&dir, &name, rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    assert!(matches!(bed.walk_with(&matcher, Limits::default(), &[]), Err(WalkError::TooDeep { .. })));
}

#[test]
fn folders_that_cannot_be_read_are_named() {
    let bed = Bed::new();
    fs::set_permissions(bed.path("a/b"), fs::Permissions::from_mode(0o000)).unwrap();
    let found = bed.walk();
    fs::set_permissions(bed.path("a/b"), fs::Permissions::from_mode(0o755)).unwrap();
    let expected = if rustix::process::geteuid().is_root() { vec![] } else { vec![bed.path("a/b")] };
    assert_eq!(found.unreadable, expected);
}

#[test]
fn odd_names_are_kept_byte_for_byte() {
    use std::os::unix::ffi::OsStrExt;
    let bed = Bed::new();
    let name = std::ffi::OsStr::from_bytes(b".env\n\x1b[31m");
    fs::write(bed.tree.path().join(name), "").unwrap();
    let all = |path: &Path, _: FileKind| {
        path.as_os_str().as_bytes().ends_with(b"[31m").then_some(Match { verdict: Verdict::Deny, rule: 0 })
    };
    let found = bed.walk_with(&all, Limits::default(), &[]).unwrap();
    assert_eq!(found.hits[0].path, bed.tree.path().join(name));
}

#[test]
fn every_name_is_asked_about_exactly_once() {
    let bed = Bed::new();
    for dir in 0..40 {
        for file in 0..40 {
            bed.write(&format!("many/{dir}/{dir}/{file}"));
        }
    }
    let asked = AtomicUsize::new(0);
    let count = |_: &Path, _: FileKind| {
        asked.fetch_add(1, Ordering::Relaxed);
        None
    };
    let found = bed.walk_with(&count, Limits::default(), &[]).unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 40 * 40 + 40 * 2 + 1 + 13);
    assert_eq!(found.dirs, 40 * 2 + 1 + 8);
}
