//! `allow`, `deny` and `policy init|diff`: what they write and what they say.

mod support;

use support::User;

#[test]
fn allowing_makes_a_project_policy_that_counts_at_once() {
    let user = User::new();
    let data = user.write("data/x", "");
    let why = ["why", "read", data.to_str().unwrap(), "--tier", "full"];
    assert!(user.say(&why).starts_with("exit 1"));
    insta::assert_snapshot!("allow_read", user.say(&["allow", &format!("read:{}", data.display())]));
    assert!(user.policy().contains(data.to_str().unwrap()));
    assert!(user.say(&why).starts_with("exit 0"));
}

#[test]
fn the_hint_of_why_works_when_pasted() {
    let user = User::new();
    for question in [["connect", "api.example.com"], ["env", "GITHUB_TOKEN"], ["write", "/opt/x y"]] {
        let why = ["why", question[0], question[1], "--tier", "full"];
        let shown = user.say(&why);
        assert!(shown.starts_with("exit 1"), "{shown}");
        let hint = shown.lines().find_map(|line| line.strip_prefix("hint: redoma ")).unwrap();
        let script = format!("'{}' {hint}", env!("CARGO_BIN_EXE_redoma"));
        let pasted = user.shell(&script).status().unwrap();
        assert!(pasted.success(), "{script}");
        if question[0] != "write" {
            let shown = user.say(&why);
            assert!(shown.starts_with("exit 0"), "{question:?}: {shown}");
        }
    }
}

#[test]
fn comments_and_layout_stay() {
    let user = User::new();
    user.write("project/redoma.toml", "# mine\n[filesystem]\nread = [ # why\n    \"~/a\", # first\n]\n");
    user.say(&["policy", "trust", "--yes"]);
    user.say(&["allow", "~/b"]);
    insta::assert_snapshot!("comments_stay", user.policy());
}

#[test]
fn paths_are_written_as_people_would() {
    let user = User::new();
    user.write("home/notes/x", "");
    user.write("project/sub/x", "");
    let home = user.root.join("home/notes");
    user.say(&["deny", "./sub/"]);
    user.say(&["deny", home.to_str().unwrap()]);
    user.say(&["deny", "**/*.key"]);
    insta::assert_snapshot!("spelled_paths", user.policy());
}

#[test]
fn editing_an_untrusted_policy_does_not_trust_it() {
    let user = User::new();
    let secrets = user.write("secrets/x", "");
    user.write("project/redoma.toml", &format!("[filesystem]\nread = [{secrets:?}]\n"));
    insta::assert_snapshot!("untrusted_edit", user.say(&["allow", "example.com"]));
    let why = ["why", "read", secrets.to_str().unwrap(), "--tier", "full"];
    assert!(user.say(&why).starts_with("exit 1"), "what a sandbox may have planted stays without effect");
}

#[test]
fn allowing_what_another_rule_denies_says_so() {
    let user = User::new();
    user.write("home/.ssh/config", "");
    insta::assert_snapshot!("still_denied", user.say(&["allow", "~/.ssh/config"]));
}

#[test]
fn a_target_that_is_nothing_is_refused() {
    let user = User::new();
    insta::assert_snapshot!("bad_target", user.say(&["allow", "exa mple.com"]));
    assert!(!user.project().join("redoma.toml").exists());
}

#[test]
fn the_users_policy_is_private_and_edited_on_request() {
    use std::os::unix::fs::PermissionsExt;
    let user = User::new();
    user.say(&["deny", "--user", "~/private"]);
    let path = user.root.join("redoma/config/policy.toml");
    assert!(std::fs::read_to_string(&path).unwrap().contains("~/private"));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!user.project().join("redoma.toml").exists());
}

#[test]
fn a_link_in_place_of_the_policy_is_neither_read_nor_written_through() {
    let user = User::new();
    let target = user.write("elsewhere.toml", "# theirs\n");
    std::os::unix::fs::symlink(&target, user.project().join("redoma.toml")).unwrap();
    let shown = user.say(&["allow", "example.com"]);
    assert!(shown.contains("it is a symbolic link"), "{shown}");
    assert_eq!(std::fs::read_to_string(target).unwrap(), "# theirs\n");
}

#[test]
fn init_writes_once_and_its_policy_is_trusted() {
    let user = User::new();
    insta::assert_snapshot!("init", user.say(&["policy", "init", "--agent", "claude"]));
    assert!(user.say(&["policy", "show"]).contains("agent"), "it names the agent");
    assert!(!user.say(&["policy", "show"]).contains("not trusted"));
    let before = user.policy();
    insta::assert_snapshot!("init_again", user.say(&["policy", "init"]));
    assert_eq!(user.policy(), before);
}

#[test]
fn diff_says_what_a_file_would_widen() {
    let user = User::new();
    let data = user.write("data/x", "");
    user.write("project/other.toml", &format!("[filesystem]\nread = [{data:?}]\ndeny = [\"target\"]\n"));
    insta::assert_snapshot!("diff", user.say(&["policy", "diff", "other.toml"]));
}

#[test]
fn the_resolved_policy_can_be_read_again() {
    let user = User::new();
    let shown = user.command(&["policy", "show", "--resolved", "-q"]).output().unwrap();
    let path = user.write("again.toml", &String::from_utf8(shown.stdout).unwrap());
    let checked = user.say(&["policy", "check", path.to_str().unwrap()]);
    assert!(checked.starts_with("exit 0"), "{checked}");
}
