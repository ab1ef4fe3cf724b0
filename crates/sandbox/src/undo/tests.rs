use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

struct Bed {
    _dir: TempDir,
    project: PathBuf,
    state: PathBuf,
    limits: Limits,
}

/// Everything an undo must bring back, by path.
type Snapshot = BTreeMap<PathBuf, (u32, Vec<u8>)>;

impl Bed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (project, state) = (dir.path().join("project"), dir.path().join("state"));
        fs::create_dir(&project).unwrap();
        Self { _dir: dir, project, state, limits: Limits::default() }
    }

    /// A git tree with a commit, an ignored folder, a dirty file, a new one, and a tracked file that is ignored.
    fn git() -> Self {
        let bed = Self::new();
        bed.write(".gitignore", "target/\n*.log\n");
        bed.write("src/main.rs", "fn main() {}");
        bed.write("kept.log", "tracked in spite of the rule");
        bed.git_run(&["init", "-q"]);
        bed.git_run(&["add", "-f", "."]);
        bed.git_run(&["commit", "-q", "-m", "one"]);
        bed.write("src/main.rs", "fn main() { dirty() }");
        bed.write("new", "untracked");
        bed.write("target/debug/app", "ignored");
        bed.write("build.log", "ignored");
        bed
    }

    fn git_run(&self, arguments: &[&str]) -> String {
        let settings = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"];
        let git = Command::new("git").args(settings).args(arguments).current_dir(&self.project).output();
        let output = git.expect("git is needed to make a repository");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn path(&self, rel: &str) -> PathBuf {
        self.project.join(rel)
    }

    fn write(&self, rel: &str, content: &str) {
        fs::create_dir_all(self.path(rel).parent().unwrap()).unwrap();
        fs::write(self.path(rel), content).unwrap();
    }

    fn mode(&self, rel: &str, mode: u32) {
        fs::set_permissions(self.path(rel), fs::Permissions::from_mode(mode)).unwrap();
    }

    fn prepare(&self) -> Backup {
        prepare(&self.project, &[], &self.state, &self.limits).unwrap()
    }

    fn apply(&self, backup: &Backup) -> Undone {
        apply(backup, &self.limits, true).unwrap()
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::new();
        snapshot_into(&self.project, &self.project, &mut snapshot);
        snapshot
    }
}

fn snapshot_into(top: &Path, path: &Path, snapshot: &mut Snapshot) {
    use std::os::unix::ffi::OsStrExt;
    let meta = fs::symlink_metadata(path).unwrap();
    let content = if meta.is_symlink() {
        fs::read_link(path).unwrap().as_os_str().as_bytes().to_vec()
    } else if meta.is_file() {
        fs::read(path).unwrap()
    } else {
        let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names.iter().for_each(|name| snapshot_into(top, name, snapshot));
        Vec::new()
    };
    snapshot.insert(path.strip_prefix(top).unwrap().to_path_buf(), (meta.mode(), content));
}

fn actions(steps: &[Step]) -> Vec<(&str, Action)> {
    steps.iter().map(|step| (step.path.to_str().unwrap(), step.action)).collect()
}

#[test]
fn removing_the_whole_project_with_git_is_undone_exactly() {
    let bed = Bed::git();
    fs::remove_dir_all(bed.path("target")).unwrap();
    fs::remove_file(bed.path("build.log")).unwrap();
    let (before, status) = (bed.snapshot(), bed.git_run(&["status", "--porcelain"]));
    let backup = bed.prepare();
    for name in fs::read_dir(&bed.project).unwrap().map(|entry| entry.unwrap().path()) {
        if name.is_dir() { fs::remove_dir_all(name).unwrap() } else { fs::remove_file(name).unwrap() }
    }
    bed.apply(&backup);
    assert_eq!(bed.snapshot(), before);
    assert_eq!(bed.git_run(&["status", "--porcelain"]), status);
    bed.git_run(&["fsck", "--strict"]);

    fs::remove_dir_all(&bed.project).unwrap();
    assert_eq!(plan(&backup, None).unwrap().steps.len(), before.len());
    apply(&backup, &bed.limits, false).unwrap();
    assert_eq!(bed.snapshot(), before);
}

#[test]
fn changes_of_every_kind_are_planned_and_undone() {
    let bed = Bed::new();
    bed.write("edited", "one");
    bed.write("mode", "same");
    bed.write("to-folder", "file");
    bed.write("to-file/inner", "x");
    bed.write("gone", "back");
    symlink("edited", bed.path("link")).unwrap();
    fs::create_dir(bed.path("empty")).unwrap();
    let before = bed.snapshot();
    let backup = bed.prepare();

    bed.write("edited", "two");
    bed.mode("mode", 0o755);
    fs::remove_file(bed.path("to-folder")).unwrap();
    bed.write("to-folder/new", "x");
    fs::remove_dir_all(bed.path("to-file")).unwrap();
    symlink("/etc", bed.path("to-file")).unwrap();
    fs::remove_file(bed.path("gone")).unwrap();
    fs::remove_file(bed.path("link")).unwrap();
    symlink("/etc/passwd", bed.path("link")).unwrap();
    fs::remove_dir(bed.path("empty")).unwrap();
    bed.write("new/deep/file", "x");
    let changed = bed.snapshot();

    let planned = plan(&backup, None).unwrap();
    let expected = [
        ("edited", Action::Replace),
        ("empty", Action::Restore),
        ("gone", Action::Restore),
        ("link", Action::Replace),
        ("mode", Action::Mode),
        ("new", Action::Remove),
        ("new/deep", Action::Remove),
        ("new/deep/file", Action::Remove),
        ("to-file", Action::Replace),
        ("to-file/inner", Action::Restore),
        ("to-folder", Action::Replace),
        ("to-folder/new", Action::Remove),
    ];
    assert_eq!(actions(&planned.steps), expected);
    assert_eq!(bed.snapshot(), changed, "planning changes nothing");

    let undone = bed.apply(&backup);
    assert_eq!(undone.steps.len(), planned.steps.len());
    assert_eq!(bed.snapshot(), before);
    assert_eq!(plan(&backup, None).unwrap().steps, []);

    bed.apply(&undone.before.unwrap());
    assert_eq!(bed.snapshot(), changed, "an undo can be undone");
}

#[test]
fn ignored_files_are_left_alone_by_the_rules_of_before() {
    let bed = Bed::git();
    let backup = bed.prepare();
    assert_eq!(backup.ignored, 2);
    bed.write("target/debug/app", "rebuilt");
    bed.write(".gitignore", "*\n");
    bed.write("evil", "hidden by the new rule");
    bed.write("kept.log", "overwritten");
    let undone = bed.apply(&backup);
    assert!(!bed.path("evil").exists());
    assert_eq!(fs::read_to_string(bed.path("target/debug/app")).unwrap(), "rebuilt");
    assert_eq!(fs::read_to_string(bed.path("kept.log")).unwrap(), "tracked in spite of the rule");
    bed.apply(&undone.before.unwrap());
    assert_eq!(fs::read_to_string(bed.path("evil")).unwrap(), "hidden by the new rule");
}

#[test]
fn a_folder_that_ignores_itself_is_left_alone() {
    let bed = Bed::git();
    for (name, content) in [(".gitignore", "*\n"), ("bin/python", "made by the user"), ("lib/x", "the same")]
    {
        bed.write(&format!(".venv/{name}"), content);
    }
    let before = bed.snapshot();
    let backup = bed.prepare();
    assert_eq!(backup.ignored, 4, "of .venv the two folders");
    assert_eq!(plan(&backup, None).unwrap().steps, []);
    bed.write("new", "changed");
    bed.write(".venv/.gitignore", "");
    bed.apply(&backup);
    assert_eq!(bed.snapshot(), before);
}

#[test]
fn a_new_folder_with_ignored_files_is_left_and_named() {
    let bed = Bed::git();
    let backup = bed.prepare();
    bed.write("pkg/code", "new");
    bed.write("pkg/x.log", "ignored");
    assert_eq!(bed.apply(&backup).left, [PathBuf::from("pkg")]);
    assert!(!bed.path("pkg/code").exists() && bed.path("pkg/x.log").exists());
}

#[test]
fn an_unchanged_project_keeps_its_generation_and_its_manifest() {
    let bed = Bed::git();
    let first = bed.prepare();
    let store = Store::open(&first.store).unwrap();
    let mut manifest = store.load(0).unwrap();
    assert!(manifest.entries.iter().any(|entry| entry.racy), "what is this young must be read again");
    manifest.entries.iter_mut().for_each(|entry| entry.racy = false);
    store.save(0, &manifest).unwrap();
    drop(store);
    let file = first.store.join("manifest-00000000");
    let written = fs::metadata(&file).unwrap().ino();
    assert_eq!(bed.prepare(), first);
    assert_eq!(fs::metadata(&file).unwrap().ino(), written, "it was not even written");

    bed.write("another", "x");
    assert_eq!(bed.prepare().generation, 1);
    fs::remove_file(bed.path("another")).unwrap();
    assert_eq!(bed.prepare().generation, 2);
}

#[test]
fn a_change_that_keeps_size_and_mtime_is_seen() {
    let bed = Bed::new();
    bed.write("file", "aaaa");
    bed.prepare();
    let times = fs::metadata(bed.path("file")).unwrap().modified().unwrap();
    bed.write("file", "bbbb");
    let file = fs::File::options().write(true).open(bed.path("file")).unwrap();
    file.set_times(fs::FileTimes::new().set_modified(times)).unwrap();
    let backup = bed.prepare();
    bed.write("file", "cccc");
    bed.apply(&backup);
    assert_eq!(fs::read_to_string(bed.path("file")).unwrap(), "bbbb");
}

#[test]
fn what_somebody_changed_later_is_marked() {
    let bed = Bed::new();
    bed.write("file", "one");
    let backup = bed.prepare();
    bed.write("file", "two");
    let (past, future) =
        (SystemTime::now() - Duration::from_secs(60), SystemTime::now() + Duration::from_secs(60));
    assert!(plan(&backup, Some(past)).unwrap().steps.iter().all(|step| step.changed_later));
    assert!(!plan(&backup, Some(future)).unwrap().steps.iter().any(|step| step.changed_later));
}

#[test]
fn a_link_in_place_of_a_folder_is_not_written_through() {
    let bed = Bed::new();
    bed.write("dir/file", "content");
    let backup = bed.prepare();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "outside").unwrap();
    fs::remove_dir_all(bed.path("dir")).unwrap();
    symlink(outside.path(), bed.path("dir")).unwrap();
    bed.apply(&backup);
    assert_eq!(fs::read_to_string(outside.path().join("file")).unwrap(), "outside");
    assert_eq!(fs::read_to_string(bed.path("dir/file")).unwrap(), "content");
    assert!(!fs::symlink_metadata(bed.path("dir")).unwrap().is_symlink());
}

#[test]
fn folders_made_unusable_are_brought_back_all_the_same() {
    let bed = Bed::new();
    bed.write("a/b/file", "content");
    let before = bed.snapshot();
    let backup = bed.prepare();
    fs::remove_file(bed.path("a/b/file")).unwrap();
    bed.mode("a/b", 0o500);
    bed.mode("a", 0o000);
    bed.apply(&backup);
    assert_eq!(bed.snapshot(), before);
}

#[test]
fn a_project_over_the_limits_has_no_undo_and_says_so() {
    let mut bed = Bed::new();
    bed.write("large", &"x".repeat(5000));
    bed.limits.bytes = 4096;
    let error = prepare(&bed.project, &[], &bed.state, &bed.limits).unwrap_err();
    assert!(
        error.is_limit() && matches!(error, UndoError::TooLarge { bytes: 5000, limit: 4096, .. }),
        "{error:?}"
    );
    bed.limits = Limits { files: 0, ..Limits::default() };
    assert!(prepare(&bed.project, &[], &bed.state, &bed.limits).unwrap_err().is_limit());
}

#[test]
fn damaged_content_is_an_error_and_not_restored() {
    let bed = Bed::new();
    bed.write("file", "content");
    let backup = bed.prepare();
    for folder in fs::read_dir(backup.store.join("blobs")).unwrap() {
        for blob in fs::read_dir(folder.unwrap().path()).unwrap() {
            fs::write(blob.unwrap().path(), "damaged").unwrap();
        }
    }
    fs::remove_file(bed.path("file")).unwrap();
    assert!(matches!(apply(&backup, &bed.limits, true), Err(UndoError::Restore { .. })));
    assert_eq!(fs::read_dir(&bed.project).unwrap().count(), 0, "nothing half written is left");
}

#[test]
fn old_generations_and_their_content_are_removed() {
    let mut bed = Bed::new();
    bed.limits.generations = 2;
    let mut backups = Vec::new();
    for number in 0..5 {
        bed.write("file", &format!("content {number}"));
        backups.push(bed.prepare());
    }
    let blobs = fs::read_dir(backups[0].store.join("blobs")).unwrap();
    let blobs: usize = blobs.map(|folder| fs::read_dir(folder.unwrap().path()).unwrap().count()).sum();
    assert_eq!(blobs, 2);
    assert!(matches!(plan(&backups[0], None), Err(UndoError::Gone { generation: 0, .. })));
    bed.apply(&backups[3]);
    assert_eq!(fs::read_to_string(bed.path("file")).unwrap(), "content 3");
}

#[test]
fn large_files_are_kept_whole() {
    let bed = Bed::new();
    let content: String = (0..400_000).map(|number| format!("{number},")).collect();
    bed.write("large", &content);
    let backup = bed.prepare();
    bed.write("large", &content.replace('7', "8"));
    bed.apply(&backup);
    assert!(fs::read_to_string(bed.path("large")).unwrap() == content);
}

/// One change to a tree, by numbers that pick names.
#[derive(Clone, Debug)]
enum Change {
    Write(u8, u8),
    Remove(u8),
    Mode(u8, u32),
    Link(u8, u8),
    Folder(u8),
    Rename(u8, u8),
}

fn change() -> impl Strategy<Value = Change> {
    let name = 0_u8..27;
    prop_oneof![
        (name.clone(), any::<u8>()).prop_map(|(at, content)| Change::Write(at, content)),
        name.clone().prop_map(Change::Remove),
        (name.clone(), prop::sample::select(vec![0o600_u32, 0o644, 0o755, 0o700]))
            .prop_map(|(at, mode)| Change::Mode(at, mode)),
        (name.clone(), name.clone()).prop_map(|(at, to)| Change::Link(at, to)),
        name.clone().prop_map(Change::Folder),
        (name.clone(), name).prop_map(|(from, to)| Change::Rename(from, to)),
    ]
}

/// `a` … `c/c/c`: few names, so that changes meet.
fn name(number: u8) -> PathBuf {
    let letters = ["a", "b", "c"];
    let depth = number % 3 + 1;
    (0..depth).map(|level| letters[usize::from(number / 3_u8.pow(level.into()) % 3)]).collect()
}

/// Changes that are not possible (a folder where a file stands) change nothing.
fn change_tree(top: &Path, changes: &[Change]) {
    for change in changes {
        let _possible = match change {
            Change::Write(at, content) => fs::create_dir_all(top.join(name(*at)).parent().unwrap())
                .and_then(|()| fs::write(top.join(name(*at)), [*content; 3])),
            Change::Remove(at) => {
                let path = top.join(name(*at));
                fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path))
            }
            Change::Mode(at, mode) => match fs::symlink_metadata(top.join(name(*at))) {
                Ok(meta) if !meta.is_symlink() => fs::set_permissions(
                    top.join(name(*at)),
                    fs::Permissions::from_mode(mode | (0o700 * u32::from(meta.is_dir()))),
                ),
                _ => Ok(()),
            },
            Change::Link(at, to) => symlink(name(*to), top.join(name(*at))),
            Change::Folder(at) => fs::create_dir_all(top.join(name(*at))),
            Change::Rename(from, to) => fs::rename(top.join(name(*from)), top.join(name(*to))),
        };
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_changes_are_undone_and_redone(
        first in prop::collection::vec(change(), 0..24),
        second in prop::collection::vec(change(), 0..24),
        third in prop::collection::vec(change(), 0..12),
    ) {
        let bed = Bed::new();
        change_tree(&bed.project, &first);
        let (one, kept_one) = (bed.snapshot(), bed.prepare());
        change_tree(&bed.project, &second);
        let (two, kept_two) = (bed.snapshot(), bed.prepare());
        change_tree(&bed.project, &third);
        let three = bed.snapshot();
        let undone = bed.apply(&kept_one);
        prop_assert_eq!(bed.snapshot(), one);
        bed.apply(&kept_two);
        prop_assert_eq!(bed.snapshot(), two);
        bed.apply(&undone.before.unwrap());
        prop_assert_eq!(bed.snapshot(), three);
    }
}
