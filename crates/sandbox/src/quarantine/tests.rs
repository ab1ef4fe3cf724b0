use std::fs;
use std::os::unix::fs::symlink;

use rustix::event::{PollFd, PollFlags, poll};
use tempfile::TempDir;

use super::*;

struct Bed {
    project: TempDir,
    state: TempDir,
}

impl Bed {
    fn new() -> Self {
        Self { project: tempfile::tempdir().unwrap(), state: tempfile::tempdir().unwrap() }
    }

    fn path(&self, rel: &str) -> PathBuf {
        self.project.path().join(rel)
    }

    fn watch(&self, wanted: &[&str]) -> Watch {
        let wanted: Vec<PathBuf> = wanted.iter().map(|rel| self.path(rel)).collect();
        let quarantine = self.state.path().join("quarantine");
        let mut watch = Watch::new(&[self.project.path().to_path_buf()], &wanted, &quarantine).unwrap();
        assert_eq!(watch.listen().unwrap(), []);
        watch
    }

    fn kept(&self, number: u32) -> PathBuf {
        self.state.path().join("quarantine").join(number.to_string())
    }
}

/// What a keeper's poll loop does: waits until there is something to read, and has it handled.
fn wait(watch: &mut Watch) -> Vec<Quarantined> {
    let timeout = rustix::time::Timespec { tv_sec: 10, tv_nsec: 0 };
    let ready =
        poll(&mut [PollFd::from_borrowed_fd(watch.fd().unwrap(), PollFlags::IN)], Some(&timeout)).unwrap();
    assert_eq!(ready, 1, "nothing was heard");
    watch.handle()
}

#[test]
fn a_file_that_appears_is_moved_away() {
    let bed = Bed::new();
    let mut watch = bed.watch(&[".mcp.json"]);
    assert_eq!(watch.handle(), []);
    fs::write(bed.path("other"), "harmless").unwrap();
    fs::write(bed.path(".mcp.json"), "evil").unwrap();
    let done = wait(&mut watch);
    let expected = Quarantined {
        wanted: bed.path(".mcp.json"),
        path: bed.path(".mcp.json"),
        kind: FileKind::File,
        outcome: Outcome::Moved(bed.kept(0)),
    };
    assert_eq!(done, [expected]);
    assert!(!bed.path(".mcp.json").exists() && bed.path("other").exists());
    assert_eq!(fs::read_to_string(bed.kept(0)).unwrap(), "evil");
}

#[test]
fn folders_on_the_way_are_followed() {
    let bed = Bed::new();
    let mut watch = bed.watch(&[".claude/hooks/start"]);
    fs::create_dir(bed.path(".claude")).unwrap();
    assert_eq!(wait(&mut watch), []);
    fs::create_dir(bed.path(".claude/hooks")).unwrap();
    assert_eq!(wait(&mut watch), []);
    fs::write(bed.path(".claude/hooks/start"), "evil").unwrap();
    assert_eq!(wait(&mut watch).len(), 1);
    assert!(bed.path(".claude/hooks").exists() && !bed.path(".claude/hooks/start").exists());
}

#[test]
fn what_was_made_before_the_watch_got_there_is_found_by_looking() {
    let bed = Bed::new();
    let mut watch = bed.watch(&[".claude/settings.json"]);
    fs::create_dir(bed.path("stage")).unwrap();
    fs::write(bed.path("stage/settings.json"), "evil").unwrap();
    fs::rename(bed.path("stage"), bed.path(".claude")).unwrap();
    assert_eq!(wait(&mut watch).len(), 1);
    assert!(!bed.path(".claude/settings.json").exists());
}

#[test]
fn a_folder_replaced_by_another_is_watched_anew() {
    let bed = Bed::new();
    fs::create_dir(bed.path(".git")).unwrap();
    let mut watch = bed.watch(&[".git/hooks"]);
    fs::rename(bed.path(".git"), bed.path("old")).unwrap();
    fs::create_dir(bed.path(".git")).unwrap();
    assert_eq!(wait(&mut watch), []);
    fs::create_dir(bed.path(".git/hooks")).unwrap();
    fs::write(bed.path(".git/hooks/post-checkout"), "evil").unwrap();
    let done = wait(&mut watch);
    assert_eq!(done[0].kind, FileKind::Dir);
    assert!(bed.kept(0).join("post-checkout").exists());
}

#[test]
fn a_link_or_git_file_in_place_of_a_folder_is_moved_away() {
    let bed = Bed::new();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("settings.json"), "evil").unwrap();
    let mut watch = bed.watch(&[".claude/settings.json", ".git/hooks"]);
    symlink(elsewhere.path(), bed.path(".claude")).unwrap();
    fs::write(bed.path(".git"), "gitdir: /elsewhere").unwrap();
    let mut done = wait(&mut watch);
    done.extend(watch.handle());
    let what: Vec<_> = done.iter().map(|q| (q.path.clone(), q.kind)).collect();
    assert_eq!(what, [(bed.path(".claude"), FileKind::Symlink), (bed.path(".git"), FileKind::File)]);
    assert!(elsewhere.path().join("settings.json").exists(), "nothing was followed");
}

#[test]
fn links_and_git_files_of_before_are_left_alone() {
    let bed = Bed::new();
    fs::write(bed.path(".git"), "gitdir: ../main/.git/worktrees/x").unwrap();
    symlink("/nonexistent", bed.path(".claude")).unwrap();
    let mut watch = bed.watch(&[".git/hooks", ".claude/settings.json"]);
    assert_eq!(watch.sweep(), []);
    fs::remove_file(bed.path(".git")).unwrap();
    fs::write(bed.path(".git.new"), "gitdir: /evil").unwrap();
    fs::rename(bed.path(".git.new"), bed.path(".git")).unwrap();
    assert_eq!(watch.sweep().len(), 1, "the new one is not the user's, whatever inode it was given");
}

#[test]
fn the_sweep_finds_what_no_event_told() {
    let bed = Bed::new();
    let mut watch = bed.watch(&["a/b/c", ".envrc"]);
    fs::create_dir_all(bed.path("a/b/c/d")).unwrap();
    symlink("/nonexistent", bed.path(".envrc")).unwrap();
    assert_eq!(watch.sweep().len(), 2);
    assert_eq!(watch.sweep(), []);
    assert!(fs::symlink_metadata(bed.path(".envrc")).is_err());
}

#[test]
fn across_file_systems_the_content_is_copied() {
    let bed = Bed::new();
    let Ok(other) = tempfile::tempdir_in("/dev/shm") else {
        panic!("/dev/shm is needed as a second file system")
    };
    let wanted = [bed.path("protected")];
    let mut watch =
        Watch::new(&[bed.project.path().to_path_buf()], &wanted, &other.path().join("q")).unwrap();
    fs::create_dir_all(bed.path("protected/sub")).unwrap();
    fs::write(bed.path("protected/sub/file"), "evil").unwrap();
    symlink("/etc/passwd", bed.path("protected/link")).unwrap();
    assert_eq!(watch.sweep()[0].outcome, Outcome::Moved(other.path().join("q/0")));
    assert_eq!(fs::read_to_string(other.path().join("q/0/sub/file")).unwrap(), "evil");
    assert_eq!(fs::read_link(other.path().join("q/0/link")).unwrap(), Path::new("/etc/passwd"));
    assert_eq!(fs::read_dir(bed.project.path()).unwrap().count(), 0, "nothing is left, not even set aside");
}

#[test]
fn a_folder_made_read_only_does_not_keep_it() {
    use std::os::unix::fs::PermissionsExt;
    let bed = Bed::new();
    fs::create_dir(bed.path("dir")).unwrap();
    let mut watch = bed.watch(&["dir/file"]);
    fs::write(bed.path("dir/file"), "evil").unwrap();
    fs::set_permissions(bed.path("dir"), fs::Permissions::from_mode(0o555)).unwrap();
    assert_eq!(wait(&mut watch).len(), 1);
    assert!(!bed.path("dir/file").exists());
    assert_eq!(fs::metadata(bed.path("dir")).unwrap().permissions().mode() & 0o777, 0o555);
}

#[test]
fn a_path_outside_the_roots_is_an_error() {
    let bed = Bed::new();
    let roots = [bed.project.path().to_path_buf()];
    for path in [PathBuf::from("/etc/x"), bed.path("a/../../x"), bed.path("")] {
        let error = Watch::new(&roots, &[path], Path::new("/nonexistent")).unwrap_err();
        assert!(matches!(error, QuarantineError::Outside { .. }), "{error:?}");
    }
}

#[test]
fn what_a_killed_keeper_watched_for_is_found_by_another_and_the_users_own_link_stays() {
    let bed = Bed::new();
    fs::create_dir_all(bed.path("elsewhere")).unwrap();
    symlink("elsewhere", bed.path("own")).unwrap();
    let watch = bed.watch(&[".envrc", "own/config", "made/config"]);
    let noted = serde_json::to_vec(&watch.expected()).unwrap();
    drop(watch);
    fs::write(bed.path(".envrc"), "planted").unwrap();
    symlink("elsewhere", bed.path("made")).unwrap();
    // Kept by the keeper that was killed.
    fs::create_dir_all(bed.kept(0)).unwrap();
    let expected: Vec<Expected> = serde_json::from_slice(&noted).unwrap();
    let roots = [bed.project.path().to_path_buf()];
    let again =
        |until| Watch::again(&roots, &expected, until, &bed.state.path().join("quarantine")).unwrap().sweep();
    assert_eq!(again(Some(1)), [], "what was made after the end is the user's own");
    let found = again(Some(i64::MAX));
    let paths: Vec<_> = found.iter().map(|one| one.path.clone()).collect();
    assert_eq!(paths, [bed.path(".envrc"), bed.path("made")]);
    assert_eq!(fs::read_to_string(bed.kept(1)).unwrap(), "planted");
    assert!(bed.path("own").is_symlink() && bed.kept(0).is_dir());
}
