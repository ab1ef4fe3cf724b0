//! git inside, with its hooks protected: plain repositories, linked worktrees, submodules.

use redoma_tests::{Home, Tier};

#[test]
fn a_commit_inside_works() {
    let home = Home::new();
    let project = home.project("p");
    project.file("a.txt", "one\n");
    project.commit("first");
    let _ = project.shell("echo two >> a.txt && git add -A && git commit -q -m inside").run().ok();
    assert_eq!(project.git(&["log", "-1", "--format=%s %an"]).trim(), "inside Test");
}

#[test]
fn branches_stash_rebase_and_merge_work() {
    let home = Home::new();
    let project = home.project("p");
    project.file("a.txt", "one\n");
    project.commit("first");
    let script = "set -e
        git switch -q -c topic; echo two > b.txt; git add b.txt; git commit -q -m topic
        git switch -q main; echo three > c.txt; git add c.txt; git commit -q -m main
        git rebase -q main topic; git switch -q main; git merge -q topic
        echo dirty >> a.txt; git stash -q; git stash pop -q; git gc -q";
    let _ = project.shell(script).run().ok();
    assert_eq!(project.git(&["log", "--format=%s"]).lines().collect::<Vec<_>>(), ["topic", "main", "first"]);
    project.git(&["fsck", "--strict"]);
}

#[test]
fn a_commit_inside_a_linked_worktree_works() {
    let home = Home::new();
    let project = home.project("main");
    project.file("a.txt", "one\n");
    project.commit("first");
    let linked = home.path().join("linked");
    project.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    let script = "echo two > b.txt && git add b.txt && git commit -q -m linked";
    let _ = project.shell(script).current_dir(&linked).run().ok();
    assert_eq!(project.git(&["log", "-1", "--format=%s", "side"]).trim(), "linked");
}

#[test]
fn the_main_repositorys_hooks_are_protected_from_a_linked_worktree() {
    let home = Home::new();
    let project = home.project("main");
    project.commit("first");
    let linked = home.path().join("linked");
    project.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    let hook = project.path().join(".git/hooks/post-checkout");
    let script = format!(
        "echo started; echo touch pwned > {0}; git config core.hooksPath /tmp/evil; true",
        hook.display()
    );
    let _ = project.shell(&script).current_dir(&linked).run().started();
    assert!(!hook.exists());
    assert!(!project.read(".git/config").contains("evil"));
}

#[test]
fn a_commit_inside_a_submodule_works() {
    let home = Home::new();
    let library = home.project("library");
    library.file("lib.txt", "one\n");
    library.commit("library");
    let project = home.project("p");
    project.commit("first");
    let source = library.path().to_str().unwrap();
    project.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", source, "vendor"]);
    let script = "echo two >> lib.txt && git commit -q -a -m inside";
    let vendor = project.path().join("vendor");
    let _ = project.shell(script).current_dir(&vendor).run().ok();
    assert_eq!(project.git(&["-C", "vendor", "log", "-1", "--format=%s"]).trim(), "inside");
}

#[test]
fn the_landlock_tier_refuses_a_repository_by_name_and_its_hint_works() {
    let home = Home::new();
    let project = home.project("p");
    project.file("src/a.txt", "one\n");
    project.commit("first");
    let refused = project.shell("echo two > src/a.txt").tier(Tier::Landlock).run().expect_code(125);
    assert!(refused.err().contains(".git/") && refused.err().contains("--profile strict"), "{refused:?}");
    if !rustix::process::geteuid().is_root() {
        // The strict profile is strict about limits too. Without a pid namespace, and with version 1 of cgroups,
        // only root can have a limit on processes; that refusal has its own test and is not what is tried here.
        home.policy("[limits]\nstrict = false\n");
    }
    let hinted = project.shell("echo two > src/a.txt && git diff --stat").tier(Tier::Landlock);
    let ran = hinted.option("--profile", "strict").option("--write", "src").run().ok();
    assert!(ran.out().contains("src/a.txt"), "{ran:?}");
}

#[test]
fn a_linked_worktree_gets_no_config_of_its_own_from_inside() {
    let home = Home::new();
    let project = home.project("main");
    project.commit("first");
    project.git(&["config", "extensions.worktreeConfig", "true"]);
    let linked = home.path().join("linked");
    project.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    let script = "echo started; echo '[core] fsmonitor = evil' > $(git rev-parse --git-dir)/config.worktree";
    let _ = project.shell(script).current_dir(&linked).run().started();
    assert!(!project.path().join(".git/worktrees/linked/config.worktree").exists());
}
