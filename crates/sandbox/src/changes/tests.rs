use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode};
use tempfile::TempDir;

use super::*;
use crate::walk::{FileKind, Match, Verdict};

struct Bed {
    dir: TempDir,
    began: SystemTime,
}

fn nothing(_: &Path, _: FileKind) -> Option<Match> {
    None
}

impl Bed {
    /// A project that was there long before the session.
    fn new() -> Self {
        let bed =
            Self { dir: tempfile::tempdir().unwrap(), began: SystemTime::now() + Duration::from_secs(3600) };
        for folder in ["lower", "upper", "work", "merged"] {
            fs::create_dir(bed.path(folder)).unwrap();
        }
        for (name, content) in
            [("a", "one\ntwo\nthree\n"), ("b", "b\n"), ("dir/x", "x\n"), ("dir/sub/y", "y\n")]
        {
            bed.write("lower", name, content);
        }
        symlink("a", bed.lower("link")).unwrap();
        bed
    }

    fn path(&self, rel: &str) -> PathBuf {
        self.dir.path().join(rel)
    }

    fn lower(&self, rel: &str) -> PathBuf {
        self.path("lower").join(rel)
    }

    fn upper(&self, rel: &str) -> PathBuf {
        self.path("upper").join(rel)
    }

    fn write(&self, layer: &str, rel: &str, content: &str) {
        let path = self.path(layer).join(rel);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Runs a script in the project with a real overlay over it, mounted as the jail mounts it.
    fn session(&self, script: &str) -> &Self {
        let mount = "mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work,userxattr merged && cd merged";
        let shell = Command::new("unshare")
            .args(["-Urm", "sh", "-ec", &format!("{mount} && {{ {script}; }}")])
            .current_dir(self.dir.path())
            .output();
        let output = shell.expect("unshare is needed to mount an overlay");
        assert!(output.status.success(), "{output:?}");
        self
    }

    fn with<T>(&self, action: impl FnOnce(ChangeSet<'_>) -> T) -> T {
        let (project, upper) = (self.path("lower"), self.path("upper"));
        action(ChangeSet { project: &project, upper: &upper, began: self.began, matcher: &nothing })
    }

    fn list(&self) -> Vec<Change> {
        self.with(|set| set.list().unwrap())
    }

    fn kinds(&self) -> Vec<(String, ChangeKind)> {
        self.list()
            .into_iter()
            .map(|change| (change.path.to_str().unwrap().to_owned(), change.kind))
            .collect()
    }

    fn refusals(&self) -> Vec<(String, Refusal)> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        self.list().into_iter().filter_map(|change| Some((text(&change.path), change.refusal?))).collect()
    }

    fn apply(&self) -> Applied {
        self.with(|set| set.apply(&Selection::all(), &Selection::none()).unwrap())
    }

    fn mount_and_compare(&self) {
        let listing =
            "find . -mindepth 1 -printf '%p %y %m %l\\n' | sort; find . -type f | sort | xargs -r cat";
        let expected = self.dir.path().join("expected");
        self.session(&format!("({listing}) > ../expected"));
        self.apply();
        let lower =
            Command::new("sh").args(["-ec", listing]).current_dir(self.path("lower")).output().unwrap();
        assert_eq!(String::from_utf8(lower.stdout).unwrap(), fs::read_to_string(expected).unwrap());
    }
}

#[test]
fn a_real_session_is_listed_in_order() {
    let bed = Bed::new();
    bed.session("echo four >> a; rm b; mv dir/x new; chmod 755 dir/sub/y; ln -sf b link; mkdir empty; touch lower-untouched");
    let expected = [
        ("a", ChangeKind::Modified),
        ("b", ChangeKind::Deleted),
        ("dir/sub/y", ChangeKind::Mode),
        ("dir/x", ChangeKind::Deleted),
        ("empty", ChangeKind::Added),
        ("link", ChangeKind::Link),
        ("lower-untouched", ChangeKind::Added),
        ("new", ChangeKind::Added),
    ];
    assert_eq!(bed.kinds(), expected.map(|(path, kind)| (path.to_owned(), kind)));
    assert_eq!(bed.refusals(), []);
}

#[test]
fn what_was_only_touched_is_no_change() {
    let bed = Bed::new();
    bed.session("touch a; chmod 600 b; chmod 644 b; rm link; ln -s a link; mkdir dir/t; rmdir dir/t");
    assert_eq!(bed.kinds(), []);
}

#[test]
fn replaced_folders_and_files_are_told_apart() {
    let bed = Bed::new();
    bed.session("rm -r dir; mkdir dir; echo n > dir/new; rm a; mkdir a; echo i > a/inner; rm b; ln -s a b");
    let expected = [
        ("a", ChangeKind::Type),
        ("a/inner", ChangeKind::Added),
        ("b", ChangeKind::Type),
        ("dir/new", ChangeKind::Added),
        ("dir/sub", ChangeKind::Deleted),
        ("dir/sub/y", ChangeKind::Deleted),
        ("dir/x", ChangeKind::Deleted),
    ];
    assert_eq!(bed.kinds(), expected.map(|(path, kind)| (path.to_owned(), kind)));
}

#[test]
fn applying_all_makes_the_project_what_the_session_saw() {
    for script in [
        "echo four >> a; rm b; mv dir/x new; chmod 755 dir/sub/y; ln -sf b link; mkdir -p e/m/p",
        "rm -r dir; mkdir dir; echo n > dir/new; rm a; mkdir a; echo i > a/inner; rm b; ln -s a b",
        "rm -r dir; echo file > dir; rm link; mkdir link; echo in > link/f",
        "rm -rf a b dir link",
        "mkdir ro; echo x > ro/f; chmod 555 ro; chmod 700 dir",
        "echo z > dir/z; chmod 500 dir",
    ] {
        let bed = Bed::new();
        bed.session(script).mount_and_compare();
        assert_eq!(bed.kinds(), [], "after {script}");
    }
}

#[test]
fn a_part_is_applied_with_the_folders_it_needs() {
    let bed = Bed::new();
    bed.session("mkdir -p n/m; echo 1 > n/m/one.rs; echo 2 > n/two.txt; echo 3 >> a; echo g > '[x]'");
    let chosen = Selection::of(&["**/*.rs", "[x]"]).unwrap();
    let applied = bed.with(|set| set.apply(&chosen, &Selection::none()).unwrap()).applied;
    let paths: Vec<_> = applied.iter().map(|change| change.path.to_str().unwrap()).collect();
    assert_eq!(paths, ["[x]", "n", "n/m", "n/m/one.rs"]);
    assert_eq!(bed.kinds().len(), 2);
    assert!(
        Selection::of(&["../x"]).is_err()
            && Selection::of(&["/etc"]).is_err()
            && Selection::of(&["a[*"]).is_err()
    );
}

#[test]
fn what_changed_meanwhile_is_a_conflict_unless_named() {
    let mut bed = Bed::new();
    bed.session("echo session >> a; echo session >> b; rm dir/x; rm -r dir/sub; echo mine > new");
    // The start lies after everything that was there, and before what the user does next.
    let started = fs::metadata(bed.lower("b")).unwrap();
    let started =
        Duration::new(started.ctime().cast_unsigned(), u32::try_from(started.ctime_nsec()).unwrap());
    bed.began = SystemTime::UNIX_EPOCH + started + Duration::from_millis(80);
    let until_later = |rel: &str| {
        bed.write("lower", rel, "user\n");
        while SystemTime::now() < bed.began + Duration::from_millis(20) {
            bed.write("lower", rel, "user\n");
        }
        bed.write("lower", rel, "user\n");
    };
    for rel in ["a", "dir/x", "dir/sub/unknown", "new"] {
        until_later(rel);
    }
    let applied = bed.apply();
    let conflicts: Vec<_> = applied
        .conflicts
        .iter()
        .map(|change| (change.path.to_str().unwrap(), change.conflict.unwrap()))
        .collect();
    let expected = [
        ("a", Conflict::Changed),
        ("dir/sub", Conflict::NotEmpty),
        ("dir/sub/unknown", Conflict::Changed),
        ("dir/x", Conflict::Changed),
        ("new", Conflict::Changed),
    ];
    assert_eq!(conflicts, expected);
    for rel in ["a", "dir/x", "dir/sub/unknown", "new"] {
        assert_eq!(fs::read_to_string(bed.lower(rel)).unwrap(), "user\n", "{rel}");
    }
    assert_eq!(fs::read_to_string(bed.lower("b")).unwrap(), "b\nsession\n");

    let force = Selection::of(&["a", "dir/x"]).unwrap();
    bed.with(|set| set.apply(&Selection::all(), &force).unwrap());
    assert!(fs::read_to_string(bed.lower("a")).unwrap().ends_with("session\n"));
    assert!(!bed.lower("dir/x").exists());
}

#[test]
fn a_file_that_vanished_meanwhile_is_a_conflict() {
    let mut bed = Bed::new();
    bed.session("echo session >> a; mv b moved");
    assert!(bed.list().iter().all(|change| change.conflict.is_none()), "a move is none");
    fs::remove_file(bed.upper("moved")).unwrap();
    fs::remove_file(bed.upper("b")).unwrap();
    fs::remove_file(bed.lower("a")).unwrap();
    bed.began = SystemTime::UNIX_EPOCH;
    assert_eq!(bed.list()[0].conflict, Some(Conflict::Vanished));
    assert_eq!(bed.apply().applied, []);
    assert!(!bed.lower("a").exists());
}

#[test]
fn hostile_entries_are_refused_by_name() {
    let bed = Bed::new();
    let outside = tempfile::tempdir_in(bed.dir.path()).unwrap();
    fs::write(outside.path().join("shadow"), "secret").unwrap();
    fs::hard_link(outside.path().join("shadow"), bed.upper("hard")).unwrap();
    bed.write("upper", "setuid", "#!");
    fs::set_permissions(bed.upper("setuid"), fs::Permissions::from_mode(0o4755)).unwrap();
    rustix::fs::mknodat(CWD, bed.upper("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let _socket = UnixListener::bind(bed.upper("socket")).unwrap();
    symlink("/etc/passwd", bed.upper("absolute")).unwrap();
    symlink("../../x", bed.upper("escaping")).unwrap();
    symlink("a", bed.upper("inside")).unwrap();
    bed.write("upper", "marked", "x");
    rustix::fs::setxattr(bed.upper("marked"), "user.overlay.metacopy", b"", rustix::fs::XattrFlags::empty())
        .unwrap();

    let expected = [
        ("absolute", Refusal::LinkOutside("/etc/passwd".into())),
        ("escaping", Refusal::LinkOutside("../../x".into())),
        ("fifo", Refusal::Fifo),
        ("hard", Refusal::HardLink),
        ("marked", Refusal::Mark),
        ("setuid", Refusal::SetId),
        ("socket", Refusal::Socket),
    ];
    assert_eq!(bed.refusals(), expected.clone().map(|(path, refusal)| (path.to_owned(), refusal)));
    let applied = bed.apply();
    assert_eq!(applied.refused.len(), expected.len());
    assert_eq!(fs::read_link(bed.lower("inside")).unwrap(), Path::new("a"));
    for (path, _) in expected {
        assert!(fs::symlink_metadata(bed.lower(path)).is_err(), "{path}");
    }
}

#[test]
fn nothing_is_written_through_a_link_of_the_project() {
    let bed = Bed::new();
    let outside = tempfile::tempdir().unwrap();
    bed.session("echo x > dir/new; echo y >> dir/x");
    fs::remove_dir_all(bed.lower("dir")).unwrap();
    symlink(outside.path(), bed.lower("dir")).unwrap();
    // The user's link is not the session's doing, so it stays: only the file below it is asked for.
    let only = Selection::of(&["dir/new"]).unwrap();
    let (lower, upper) = bed.with(|set| set.open().unwrap());
    let items = bed.with(|set| list::list(&set, &lower, &upper).unwrap());
    let below: Vec<_> = items.into_iter().filter(|item| item.change.path == Path::new("dir/new")).collect();
    let applied = apply::apply(&lower, &upper, below, &only, &only).unwrap();
    assert_eq!(applied.conflicts[0].conflict, Some(Conflict::Parent));
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn device_nodes_are_refused_and_whiteouts_of_nothing_are_nothing() {
    if !rustix::process::geteuid().is_root() {
        // An ordinary user can make no device node, neither here nor inside: there is nothing to refuse.
        let made =
            rustix::fs::mknodat(CWD, Bed::new().upper("d"), FileType::CharacterDevice, Mode::RUSR, 0x103);
        assert_eq!(made, Err(Errno::PERM));
        return;
    }
    let bed = Bed::new();
    let node = |name: &str, device| {
        rustix::fs::mknodat(CWD, bed.upper(name), FileType::CharacterDevice, Mode::RUSR, device).unwrap();
    };
    node("null", rustix::fs::makedev(1, 3));
    node("nothing", 0);
    node("b", 0);
    assert_eq!(bed.refusals(), [("null".to_owned(), Refusal::Device)]);
    assert_eq!(bed.kinds(), [("b".to_owned(), ChangeKind::Deleted), ("null".to_owned(), ChangeKind::Added)]);
}

#[test]
fn the_policys_paths_are_refused_with_all_below_them() {
    let bed = Bed::new();
    bed.session("mkdir -p .git/hooks; echo evil > .git/hooks/post-checkout; echo ok > fine");
    let hooks = bed.lower(".git/hooks");
    let matcher =
        |path: &Path, _: FileKind| (path == hooks).then_some(Match { verdict: Verdict::Protect, rule: 0 });
    let (project, upper) = (bed.path("lower"), bed.path("upper"));
    let set = ChangeSet { project: &project, upper: &upper, began: bed.began, matcher: &matcher };
    let applied = set.apply(&Selection::all(), &Selection::all()).unwrap();
    let refused: Vec<_> = applied.refused.iter().map(|change| change.path.to_str().unwrap()).collect();
    assert_eq!(refused, [".git/hooks", ".git/hooks/post-checkout"]);
    assert!(!hooks.exists() && bed.lower("fine").exists());
}

#[test]
fn differences_read_well() {
    let bed = Bed::new();
    bed.session("sed -i s/two/2/ a; rm b; printf 'x\\0y' > bin; ln -sf b link; chmod 755 dir/x; mkdir empty");
    let diffs = bed.with(|set| set.diff(&Selection::all()).unwrap());
    let body = |name: &str| diffs.iter().find(|diff| diff.change.path == Path::new(name)).unwrap();
    let text = "--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
    assert_eq!(body("a").body, Body::Text(text.to_owned()));
    assert_eq!(body("b").body, Body::Text("--- a/b\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n".to_owned()));
    assert_eq!(body("bin").body, Body::Binary { old: None, new: Some(3) });
    assert_eq!(body("link").body, Body::Link { old: Some(b"a".into()), new: Some(b"b".into()) });
    let mode = body("dir/x");
    assert_eq!((mode.old_mode, mode.new_mode, &mode.body), (Some(0o644), Some(0o755), &Body::None));
    assert_eq!((body("b").old_mode, body("b").new_mode, body("empty").old_mode), (Some(0o644), None, None));
}

#[test]
fn discarding_leaves_an_empty_change_set() {
    let bed = Bed::new();
    bed.session("echo x >> a; mkdir -p p/q; echo y > p/q/r; rm -r dir");
    bed.with(|set| set.discard().unwrap());
    assert_eq!(fs::read_dir(bed.path("upper")).unwrap().count(), 0);
    assert_eq!(bed.kinds(), []);
    assert_eq!(fs::read_to_string(bed.lower("a")).unwrap(), "one\ntwo\nthree\n");
}
