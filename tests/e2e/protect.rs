//! Files that run code on the host later: readable, but not to be written, made or moved.

use std::fs;

use redoma_tests::Home;

/// Inside, tries to plant a hook by every road a shell has.
const PLANT: &str = "
    echo 'touch pwned' > .git/hooks/pre-commit
    echo 'touch pwned' >> .git/config
    mv .git .git-away && mkdir -p .git/hooks && echo 'touch pwned' > .git/hooks/pre-commit
    mv .git/hooks .git/hooks-away
    rm -rf .git/hooks
    mkdir -p .git/hooks
    ln -sf /tmp/evil .git/hooks/pre-commit
    true";

#[test]
fn git_hooks_and_config_cannot_be_planted() {
    let home = Home::new();
    let project = home.project("p");
    project.commit("first");
    let config = project.read(".git/config");
    let _ = project.attempt(PLANT).run().started();
    assert!(!project.path().join(".git/hooks/pre-commit").exists());
    assert_eq!(project.read(".git/config"), config);
    project.git(&["status"]);
    assert!(!project.path().join("pwned").exists());
}

#[test]
fn the_twin_without_a_sandbox_plants_it() {
    let home = Home::new();
    let project = home.project("p");
    let shell = std::process::Command::new("sh").args(["-c", PLANT]).current_dir(project.path()).output();
    assert!(shell.unwrap().status.success());
    assert!(project.path().join(".git/hooks/pre-commit").symlink_metadata().is_ok());
}

#[test]
fn a_protected_file_can_be_read() {
    let home = Home::new();
    let project = home.project("p");
    project.file(".envrc", "export A=1\n");
    let ran = project.inside(["cat", ".envrc"]).run().ok();
    assert_eq!(ran.out(), "export A=1\n");
    let ran = project.attempt("echo evil > .envrc").run().started();
    assert_ne!(ran.code(), 0, "{ran:?}");
    assert_eq!(project.read(".envrc"), "export A=1\n");
}

#[test]
fn a_protected_file_that_was_absent_is_gone_when_the_session_ends() {
    let home = Home::new();
    let project = home.project("p");
    let script = "echo '{\"mcpServers\":{}}' > .mcp.json; echo 'touch pwned' > .envrc; true";
    let ran = project.attempt(script).run().started();
    assert!(!project.path().join(".mcp.json").exists(), "{ran:?}");
    assert!(!project.path().join(".envrc").exists(), "{ran:?}");
    assert!(ran.err().contains(".mcp.json") && ran.err().contains(".envrc"), "named at the end: {ran:?}");
}

#[test]
fn a_protected_file_deep_in_folders_that_were_absent_is_gone_too() {
    let home = Home::new();
    let project = home.project("p");
    let script = "mkdir -p .claude && echo '{\"hooks\":{}}' > .claude/settings.json; true";
    let ran = project.attempt(script).run().started();
    assert!(!project.path().join(".claude/settings.json").exists(), "{ran:?}");
}

#[test]
fn nothing_is_left_in_the_host_tree_by_protecting() {
    let home = Home::new();
    let project = home.project("p");
    project.commit("first");
    let before = listing(&project);
    let _ = project.inside(["true"]).run().ok();
    assert_eq!(before, listing(&project));
}

fn listing(project: &redoma_tests::Project<'_>) -> Vec<String> {
    let mut names = Vec::new();
    let mut folders = vec![project.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            names.push(entry.path().display().to_string());
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
        }
    }
    names.sort();
    names
}
