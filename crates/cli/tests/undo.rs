//! `redoma undo`: everything a session did to its project, gone again.

mod support;

use support::User;

fn wreck(user: &User) {
    user.write("project/src/main.rs", "fn main() {}\n");
    user.write("project/README", "read me\n");
    let script = "rm -rf .git src; echo changed > README; mkdir new; echo x > new/file; ls -A";
    let shown = user.say(&["run", "--net", "none", "--", "sh", "-c", script]);
    assert!(shown.starts_with("exit 0"), "{shown}");
    assert!(!user.project().join("src").exists(), "{shown}");
}

fn is_whole(user: &User) -> bool {
    let read = |path: &str| std::fs::read_to_string(user.project().join(path)).unwrap_or_default();
    read("src/main.rs") == "fn main() {}\n"
        && read("README") == "read me\n"
        && read(".git/HEAD") == "ref: refs/heads/main\n"
        && !user.project().join("new").exists()
}

#[test]
fn a_wrecked_project_is_brought_back_and_the_undo_can_be_undone() {
    let user = User::new();
    wreck(&user);
    let dry = user.say(&["undo", "--dry-run"]);
    assert!(dry.contains("restore") && dry.contains("src/main.rs") && dry.contains("remove"), "{dry}");
    assert!(!is_whole(&user), "a dry run changes nothing");
    let asked = user.say(&["undo"]);
    assert!(asked.contains("hint: redoma undo --yes") && !is_whole(&user), "{asked}");
    let undone = user.say(&["undo", "--yes"]);
    assert!(undone.starts_with("exit 0") && is_whole(&user), "{undone}");
    let again = undone.lines().find_map(|line| line.strip_prefix("hint: redoma undo ")).expect("a way back");
    let back = user.say(&["undo", "--yes", again]);
    assert!(back.starts_with("exit 0"), "{back}");
    assert_eq!(std::fs::read_to_string(user.project().join("README")).ok().as_deref(), Some("changed\n"));
    assert!(!user.project().join("src").exists());
}

#[test]
fn nothing_to_undo_is_said_and_is_no_error() {
    let user = User::new();
    let shown = user.say(&["undo"]);
    assert!(shown.starts_with("exit 1") && shown.contains("no session here"), "{shown}");
    user.say(&["run", "--net", "none", "--", "true"]);
    let shown = user.say(&["undo", "--yes"]);
    assert!(shown.starts_with("exit 0") && shown.contains("is as it was before session"), "{shown}");
}

#[test]
fn a_file_changed_after_the_session_is_pointed_out() {
    let user = User::new();
    user.write("project/a", "one");
    user.say(&["run", "--net", "none", "--", "sh", "-c", "echo two > a"]);
    // The file system's clock ticks every few milliseconds: write until the file is later than now.
    let ended = std::time::SystemTime::now();
    loop {
        let later = user.write("project/b", "mine, later");
        if std::fs::metadata(later).unwrap().modified().unwrap() > ended {
            break;
        }
    }
    let shown = user.say(&["undo", "--dry-run"]);
    let line = |name: &str| shown.lines().find(|line| line.ends_with(name)).expect(name).to_owned();
    assert!(line(" b").contains("changed after the session"), "{shown}");
    assert!(!line(" a").contains("changed after the session"), "{shown}");
}

#[test]
fn no_undo_keeps_nothing() {
    let user = User::new();
    user.say(&["run", "--no-undo", "--net", "none", "--", "sh", "-c", "echo x > a"]);
    assert!(user.say(&["undo", "--yes"]).contains("no session here"));
}
