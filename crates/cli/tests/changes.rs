//! `redoma changes`: an overlay workspace's changes wait until they are applied.

mod support;

use support::User;

fn session(user: &User, script: &str) {
    let shown = user.say(&["run", "--workspace", "overlay", "--net", "none", "--", "sh", "-c", script]);
    assert!(shown.starts_with("exit 0"), "{shown}");
}

fn read(user: &User, path: &str) -> Option<String> {
    std::fs::read_to_string(user.project().join(path)).ok()
}

fn worked() -> User {
    let user = User::new();
    user.write("project/kept", "same\n");
    user.write("project/edit", "one\ntwo\n");
    user.write("project/gone", "x\n");
    session(&user, "sed -i s/two/three/ edit; rm gone; mkdir new; echo hi > new/file");
    user
}

#[test]
fn changes_wait_are_listed_and_applied() {
    let user = worked();
    assert_eq!(read(&user, "edit").as_deref(), Some("one\ntwo\n"), "nothing is applied by itself");
    let listed = user.command(&["changes", "list", "--json"]).output().unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let kinds: Vec<_> = listed.as_array().unwrap().iter().map(|row| (&row["kind"], &row["path"])).collect();
    for row in [("modified", "edit"), ("deleted", "gone"), ("added", "new/file")] {
        assert!(kinds.contains(&(&row.0.into(), &row.1.into())), "{row:?} in {kinds:?}");
    }
    let diff = user.say(&["changes", "diff"]);
    assert!(diff.contains("\n-two\n+three\n"), "{diff}");
    let asked = user.say(&["changes", "apply"]);
    assert!(asked.starts_with("exit 1") && read(&user, "gone").is_some(), "{asked}");
    let applied = user.say(&["changes", "apply", "--yes"]);
    assert!(applied.starts_with("exit 0"), "{applied}");
    assert_eq!(read(&user, "edit").as_deref(), Some("one\nthree\n"));
    assert_eq!(read(&user, "new/file").as_deref(), Some("hi\n"));
    assert_eq!(read(&user, "gone"), None);
    assert_eq!(read(&user, "kept").as_deref(), Some("same\n"));
}

#[test]
fn one_path_can_be_applied_and_the_rest_discarded() {
    let user = worked();
    assert!(user.say(&["changes", "apply", "--yes", "--path", "edit"]).starts_with("exit 0"));
    assert_eq!(read(&user, "edit").as_deref(), Some("one\nthree\n"));
    assert!(read(&user, "gone").is_some());
    assert!(user.say(&["changes", "discard", "--yes"]).starts_with("exit 0"));
    assert!(user.say(&["changes"]).contains("changed nothing that waits"));
    assert!(read(&user, "gone").is_some() && read(&user, "new/file").is_none());
}

#[test]
fn a_change_made_meanwhile_is_not_overwritten_unless_it_is_named() {
    let user = worked();
    user.write("project/edit", "mine\n");
    let applied = user.say(&["changes", "apply", "--yes"]);
    assert!(
        applied.starts_with("exit 1") && applied.contains("changed in the project meanwhile"),
        "{applied}"
    );
    assert_eq!(read(&user, "edit").as_deref(), Some("mine\n"));
    let hint = applied.lines().find_map(|line| line.strip_prefix("hint: redoma ")).expect("a hint");
    let words: Vec<&str> = hint.split(' ').chain(["--yes"]).collect();
    assert!(user.say(&words).starts_with("exit 0"), "{hint}");
    assert_eq!(read(&user, "edit").as_deref(), Some("one\nthree\n"));
}

#[test]
fn a_hostile_change_is_refused_by_name_and_shown_escaped() {
    let user = User::new();
    session(&user, "ln -s /etc/passwd link; echo x > \"$(printf 'a\\033[2Jb')\"");
    let listed = user.say(&["changes"]);
    assert!(listed.contains("refused: a link out of the project"), "{listed}");
    assert!(!listed.contains('\u{1b}') && listed.contains(r"a\u{1b}[2Jb"), "{listed}");
    let applied = user.say(&["changes", "apply", "--yes"]);
    assert!(applied.starts_with("exit 1"), "{applied}");
    assert!(!user.project().join("link").is_symlink());
}
