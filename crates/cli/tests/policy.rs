//! What the policy commands say, to a user with a home of their own.

mod support;

use support::User;

#[test]
fn help_names_every_command() {
    insta::assert_snapshot!(User::new().say(&["--help"]));
}

#[test]
fn a_mistyped_command_is_a_usage_error() {
    insta::assert_snapshot!(User::new().say(&["polcy"]));
}

#[test]
fn what_needs_no_home_works_without_one() {
    let user = User::new();
    for args in [&["version"][..], &["man", "policy"], &["completions", "bash"], &["policy", "profiles"]] {
        assert!(user.command(args).env_remove("HOME").status().unwrap().success(), "{args:?}");
    }
    let output = user.command(&["policy", "show"]).env_remove("HOME").output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: the variable HOME names no absolute folder\nhint: export HOME=/path/to/your/home\n"
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let user = User::new();
    let mut child =
        user.command(&["completions", "zsh"]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

#[test]
fn an_unknown_key_is_shown_with_its_line_and_what_was_meant() {
    let user = User::new();
    user.write("project/redoma.toml", "[filesystem]\nraed = [\"~/data\"]\n");
    insta::assert_snapshot!(user.say(&["policy", "check"]));
}

#[test]
fn a_hostile_policy_cannot_reach_the_terminal() {
    let user = User::new();
    user.write("project/redoma.toml", "[filesystem]\nread = [\"\u{1b}[2J\u{1b}]52;c;eA==\u{7}\"]\n");
    let shown = user.say(&["policy", "check"]);
    assert!(!shown.contains(['\u{1b}', '\u{7}']), "{shown:?}");
    assert!(shown.contains(r"\u{1b}[2J"), "{shown}");
    let shown = user.say(&["policy", "show"]);
    assert!(!shown.contains(['\u{1b}', '\u{7}']), "{shown:?}");
}

#[test]
fn bad_bytes_and_ten_megabytes_are_refused_clearly() {
    let user = User::new();
    let path = user.project().join("redoma.toml");
    std::fs::write(&path, b"# \xff\n").unwrap();
    insta::assert_snapshot!("not_utf8", user.say(&["policy", "check"]));
    std::fs::File::create(&path).unwrap().set_len(10 << 20).unwrap();
    insta::assert_snapshot!("too_large", user.say(&["policy", "check"]));
}

#[test]
fn an_untrusted_project_widens_nothing_until_its_content_is_trusted() {
    let user = User::new();
    std::fs::create_dir(user.root.join("data")).unwrap();
    let data = user.root.join("data");
    let read = ["why", "read", data.to_str().unwrap(), "--tier", "full"];
    let policy = format!("[filesystem]\nread = [{data:?}]\n");
    user.write("project/redoma.toml", &policy);
    assert!(user.say(&read).starts_with("exit 1"), "not trusted yet");
    insta::assert_snapshot!("untrusted_check", user.say(&["policy", "check"]));
    insta::assert_snapshot!("trust_without_terminal", user.say(&["policy", "trust"]));
    let trusted = user.say(&["policy", "trust", "--yes"]);
    assert!(trusted.contains("trusted [ROOT]/project/redoma.toml with content "), "{trusted}");
    assert!(user.say(&read).starts_with("exit 0"), "trusted now");
    user.write("project/redoma.toml", &(policy.clone() + "# touched\n"));
    assert!(user.say(&read).starts_with("exit 1"), "the content is another one");
    user.write("project/redoma.toml", &policy);
    assert!(user.say(&read).starts_with("exit 0"), "the trusted content again");
    user.say(&["policy", "trust", "--forget"]);
    assert!(user.say(&read).starts_with("exit 1"), "forgotten");
}

#[test]
fn why_names_the_rule_and_the_smallest_change() {
    let user = User::new();
    user.write("home/.ssh/id_ed25519", "secret");
    user.write("project/.env", "KEY=1");
    let why = |action: &str, target: &str| user.say(&["why", action, target, "--tier", "full"]);
    insta::assert_snapshot!("why_read_ssh", why("read", "~/.ssh/id_ed25519"));
    insta::assert_snapshot!("why_read_dotenv", why("read", ".env"));
    insta::assert_snapshot!("why_write_project", why("write", "src/main.rs"));
    insta::assert_snapshot!("why_write_hook", why("write", ".git/hooks/post-checkout"));
    insta::assert_snapshot!("why_connect", why("connect", "example.com:22"));
    insta::assert_snapshot!("why_env_token", why("env", "GITHUB_TOKEN"));
    insta::assert_snapshot!("why_env_lang", why("env", "LANG"));
}

#[test]
fn why_follows_a_link_to_where_it_leads() {
    let user = User::new();
    user.write("home/.ssh/id_ed25519", "secret");
    std::os::unix::fs::symlink(user.root.join("home/.ssh"), user.project().join("innocent")).unwrap();
    let shown = user.say(&["why", "read", "innocent/id_ed25519", "--tier", "full"]);
    assert!(shown.contains("[ROOT]/home/.ssh/id_ed25519: denied"), "{shown}");
}

#[test]
fn why_in_json_has_the_verdict_and_its_rule() {
    let user = User::new();
    let output = user.command(&["why", "env", "LANG", "--json", "--tier", "full"]).output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&answer["effect"], &answer["target"]), (&"allow".into(), &"LANG".into()));
    assert_eq!(answer["rule"]["text"], "LANG");
}

#[test]
fn a_typed_deny_beats_a_typed_grant() {
    let user = User::new();
    let typed = ["--write", "out", "--deny", "out/secret"];
    let why = |target| {
        let mut args = vec!["why", "write", target, "--tier", "full"];
        args.extend(typed);
        user.say(&args)
    };
    std::fs::create_dir_all(user.project().join("out/secret")).unwrap();
    assert!(why("out/x").starts_with("exit 0"));
    assert!(why("out/secret/x").starts_with("exit 1"));
}

#[test]
fn a_bad_amount_and_an_unknown_agent_are_refused() {
    let user = User::new();
    insta::assert_snapshot!("bad_amount", user.say(&["policy", "show", "--memory", "lots"]));
    insta::assert_snapshot!("unknown_agent", user.say(&["policy", "show", "--agent", "cluade"]));
}

#[test]
fn the_log_of_nothing_says_how_to_begin() {
    let user = User::new();
    insta::assert_snapshot!("no_sessions", user.say(&["sessions"]));
    insta::assert_snapshot!("no_log", user.say(&["log"]));
}
