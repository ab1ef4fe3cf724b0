//! `--workspace overlay`: what a session does waits for `redoma changes apply`.

use std::fs;

use redoma_tests::{Home, Project, Ran};

fn overlay(project: &Project<'_>, script: &str) -> Ran {
    project.shell(script).option("--workspace", "overlay").run()
}

fn project(home: &Home) -> Project<'_> {
    let project = home.project("p");
    project.file("edited.txt", "one\ntwo\n");
    project.file("deleted.txt", "gone soon\n");
    project.file("untouched.txt", "same\n");
    project.commit("first");
    project
}

const WORK: &str =
    "echo three >> edited.txt; rm deleted.txt; mkdir -p new; echo made > new/file.txt; chmod +x edited.txt";

#[test]
fn nothing_changes_until_it_is_applied() {
    let home = Home::new();
    let project = project(&home);
    let _ = overlay(&project, WORK).ok();
    assert_eq!(project.read("edited.txt"), "one\ntwo\n");
    assert!(project.path().join("deleted.txt").exists() && !project.path().join("new").exists());
    let list = project.redoma(["changes"]).run().ok();
    for name in ["edited.txt", "deleted.txt", "new/file.txt"] {
        assert!(list.out().contains(name), "{name}: {list:?}");
    }
    assert!(!list.out().contains("untouched.txt"), "{list:?}");
    let diff = project.redoma(["changes", "diff"]).run().ok();
    assert!(diff.out().contains("+three"), "{diff:?}");
    let _ = project.redoma(["changes", "apply", "--yes"]).run().ok();
    assert_eq!(project.read("edited.txt"), "one\ntwo\nthree\n");
    assert_eq!(project.read("new/file.txt"), "made\n");
    assert!(!project.path().join("deleted.txt").exists());
}

#[test]
fn one_path_can_be_applied_alone() {
    let home = Home::new();
    let project = project(&home);
    let _ = overlay(&project, WORK).ok();
    let _ = project.redoma(["changes", "apply", "--yes", "--path", "new"]).run().ok();
    assert_eq!(project.read("new/file.txt"), "made\n");
    assert_eq!(project.read("edited.txt"), "one\ntwo\n");
}

#[test]
fn discarded_changes_are_gone() {
    let home = Home::new();
    let project = project(&home);
    let _ = overlay(&project, WORK).ok();
    let _ = project.redoma(["changes", "discard", "--yes"]).run().ok();
    let list = project.redoma(["changes"]).run();
    assert!(!list.out().contains("edited.txt"), "{list:?}");
    assert_eq!(project.read("edited.txt"), "one\ntwo\n");
}

#[test]
fn a_file_that_changed_meanwhile_is_a_conflict_and_stays() {
    let home = Home::new();
    let project = project(&home);
    let _ = overlay(&project, WORK).ok();
    project.file("edited.txt", "the user was here\n");
    let ran = project.redoma(["changes", "apply", "--yes"]).run();
    assert_ne!(ran.code(), 0, "{ran:?}");
    assert!(format!("{ran:?}").contains("edited.txt"), "{ran:?}");
    assert_eq!(project.read("edited.txt"), "the user was here\n");
    let hinted = |ran: &Ran| {
        let said = ran.err();
        said.lines().find_map(|line| line.strip_prefix("hint: redoma ")).unwrap().to_owned()
    };
    let unasked = project.redoma(hinted(&ran).split(' ')).run().expect_code(1);
    let _ = project.redoma(hinted(&unasked).split(' ')).run().ok();
    assert_eq!(project.read("edited.txt"), "one\ntwo\nthree\n");
}

#[test]
fn a_hostile_change_set_is_refused_by_name() {
    let home = Home::new();
    let project = project(&home);
    let outside = home.outside();
    fs::write(outside.join("victim"), "host data\n").unwrap();
    let script = format!("ln -s {}/victim escape; mkfifo pipe; echo x > fine.txt", outside.display());
    let _ = overlay(&project, &script).ok();
    let ran = project.redoma(["changes", "apply", "--yes"]).run();
    let said = format!("{ran:?}");
    assert!(said.contains("escape") && said.contains("pipe"), "{said}");
    assert!(project.path().join("escape").symlink_metadata().is_err());
    assert!(project.path().join("pipe").symlink_metadata().is_err());
    assert_eq!(fs::read_to_string(outside.join("victim")).unwrap(), "host data\n");
}

#[test]
fn protected_paths_made_in_an_overlay_are_never_applied() {
    let home = Home::new();
    let project = project(&home);
    let _ = overlay(&project, "echo started; echo evil > .envrc; echo good > fine.txt").started();
    let ran = project.redoma(["changes", "apply", "--yes"]).run();
    assert!(!project.path().join(".envrc").exists(), "{ran:?}");
    assert_eq!(project.read("fine.txt"), "good\n", "the twin: {ran:?}");
}
