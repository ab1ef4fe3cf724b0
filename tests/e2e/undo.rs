//! `redoma undo`: a project that a session worked on directly comes back exactly.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use redoma_tests::{Home, Project, requires};

/// Every path below `top`, with its kind, permission bits and content or target.
fn picture(top: &Path) -> Vec<(String, u32, Vec<u8>)> {
    let mut seen = Vec::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let (path, meta) = (entry.path(), entry.metadata().unwrap());
            let content = if meta.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else if meta.is_file() {
                fs::read(&path).unwrap()
            } else {
                folders.push(path.clone());
                Vec::new()
            };
            seen.push((
                path.strip_prefix(top).unwrap().display().to_string(),
                meta.permissions().mode(),
                content,
            ));
        }
    }
    seen.sort();
    seen
}

fn busy_project(home: &Home) -> Project<'_> {
    let project = home.project("p");
    project.file("clean.txt", "committed\n");
    project.file("dirty.txt", "committed\n");
    project.file("deleted.txt", "committed\n");
    project.commit("first");
    project.file("dirty.txt", "changed, not staged\n");
    project.file("staged.txt", "staged\n");
    project.git(&["add", "staged.txt"]);
    project.file("untracked/deep/file.txt", "untracked\n");
    fs::remove_file(project.path().join("deleted.txt")).unwrap();
    symlink("clean.txt", project.path().join("link")).unwrap();
    let script = project.file("script.sh", "#!/bin/sh\n");
    fs::set_permissions(script, fs::Permissions::from_mode(0o750)).unwrap();
    fs::create_dir(project.path().join("empty")).unwrap();
    project
}

#[test]
fn rm_rf_of_the_project_is_undone() {
    let home = Home::new();
    let project = busy_project(&home);
    let before = picture(project.path());
    let status = project.git(&["status", "--porcelain"]);
    let _ = project.shell("rm -rf ./* .[!.]* 2>/dev/null; true").run();
    assert!(!project.path().join("untracked/deep/file.txt").exists(), "the session did its worst");
    let _ = project.redoma(["undo", "--yes"]).run().ok();
    assert_eq!(picture(project.path()), before);
    assert_eq!(project.git(&["status", "--porcelain"]), status);
}

#[test]
fn edits_modes_links_commits_and_new_files_are_undone() {
    let home = Home::new();
    let project = busy_project(&home);
    let before = picture(project.path());
    let script = "echo evil >> clean.txt; chmod 777 script.sh; rm link; ln -s /etc/passwd link; rmdir empty
        mkdir -p new/deep; echo new > new/deep/file; mv dirty.txt moved.txt
        git add -A; git commit -q -m inside; git branch other";
    let _ = project.shell(script).run().ok();
    assert_ne!(picture(project.path()), before);
    let _ = project.redoma(["undo", "--yes"]).run().ok();
    assert_eq!(picture(project.path()), before);
}

#[test]
fn a_dry_run_shows_and_does_nothing() {
    let home = Home::new();
    let project = busy_project(&home);
    let _ = project.shell("echo new > made.txt; echo evil >> clean.txt").run().ok();
    let after = picture(project.path());
    let ran = project.redoma(["undo", "--dry-run"]).run().ok();
    assert!(ran.out().contains("made.txt") && ran.out().contains("clean.txt"), "{ran:?}");
    assert_eq!(picture(project.path()), after);
}

#[test]
fn what_ignores_itself_is_not_taken_for_new() {
    let home = Home::new();
    let project = busy_project(&home);
    project.file(".venv/.gitignore", "*\n");
    project.file(".venv/bin/python", "of the user\n");
    let before = picture(project.path());
    let _ = project
        .shell("echo evil >> clean.txt; mkdir cache; echo '*' > cache/.gitignore; echo new > cache/x")
        .run()
        .ok();
    let _ = project.redoma(["undo", "--yes"]).run().ok();
    assert_eq!(picture(project.path()), before);
}

#[test]
fn a_folder_outside_git_is_undone_too() {
    let home = Home::new();
    let project = home.folder("plain");
    project.file("a.txt", "one\n");
    project.file("sub/b.txt", "two\n");
    let before = picture(project.path());
    let _ = project.shell("rm -rf sub; echo evil > a.txt; echo new > c.txt").run().ok();
    let _ = project.redoma(["undo", "--yes"]).run().ok();
    assert_eq!(picture(project.path()), before);
}

#[test]
fn a_hostile_tree_does_not_lead_undo_outside() {
    requires!("sh");
    let home = Home::new();
    let project = busy_project(&home);
    let outside = home.outside();
    fs::write(outside.join("file.txt"), "host data\n").unwrap();
    let script = format!("rm -rf untracked/deep && ln -s {} untracked/deep", outside.display());
    let _ = project.shell(&script).run().ok();
    let _ = project.redoma(["undo", "--yes"]).run();
    assert_eq!(fs::read_to_string(outside.join("file.txt")).unwrap(), "host data\n");
}

#[test]
fn an_undo_can_be_undone() {
    let home = Home::new();
    let project = busy_project(&home);
    let _ = project.shell("echo good work > result.txt").run().ok();
    let after = picture(project.path());
    let undone = project.redoma(["undo", "--yes"]).run().ok();
    assert!(!project.path().join("result.txt").exists());
    let said = undone.err();
    let hint = said.lines().find_map(|line| line.strip_prefix("hint: redoma ")).unwrap();
    let _ = project.redoma(hint.split(' ')).arg("--yes").run().ok();
    assert_eq!(picture(project.path()), after);
}

#[test]
fn a_session_that_does_not_exist_is_named() {
    let home = Home::new();
    let project = busy_project(&home);
    let _ = project.shell("true").run().ok();
    let ran = project.redoma(["undo", "nosuch"]).run().expect_code(1);
    assert!(ran.err().contains("no session nosuch\n"), "{ran:?}");
}
