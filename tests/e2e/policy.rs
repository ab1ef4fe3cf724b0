//! Policy files: layers, trust, and errors that a person can act on.

use std::fs;

use redoma_tests::Home;

#[test]
fn an_unknown_key_is_shown_with_its_line_and_a_suggestion() {
    let home = Home::new();
    let project = home.project("p");
    let file = project.file("bad.toml", "[filesystem]\nread = [\"/etc\"]\nwirte = [\".\"]\n");
    let ran = project.redoma(["policy", "check", file.to_str().unwrap()]).run();
    assert_ne!(ran.code(), 0);
    let said = ran.err() + &ran.out();
    assert!(said.contains("wirte") && said.contains("write") && said.contains('3'), "{ran:?}");
}

#[test]
fn broken_files_give_clear_errors_and_start_nothing() {
    let home = Home::new();
    let project = home.project("p");
    let large = "#".repeat(10 << 20);
    let cases: [(&str, &[u8]); 5] = [
        ("wrong type", b"[filesystem]\nread = 3\n"),
        ("invalid UTF-8", b"[filesystem]\nread = [\"\xff\xfe\"]\n"),
        ("10 MB", large.as_bytes()),
        ("a typo in the network's default", b"[network]\ndefault = \"alow\"\n"),
        ("extends itself", b"extends = \"./case.toml\"\n"),
    ];
    for (name, content) in cases {
        let file = project.file("case.toml", content);
        let run = project.inside(["touch", "started"]).option("--policy", &file);
        let ran = run.run().expect_code(125);
        assert!(!ran.err().contains("panicked") && ran.err().contains("case.toml"), "{name}: {ran:?}");
        assert!(!project.path().join("started").exists(), "{name}");
    }
}

#[test]
fn a_project_policy_widens_nothing_until_it_is_trusted() {
    let home = Home::new();
    let project = home.project("p");
    let outside = home.outside();
    fs::write(outside.join("data"), "host data\n").unwrap();
    let widening = format!("[filesystem]\nread = [\"{}\"]\n", outside.display());
    project.file("redoma.toml", &widening);
    let path = outside.join("data");
    let read = || project.inside(["cat", path.to_str().unwrap()]).run();
    let untrusted = read();
    assert_ne!(untrusted.code(), 0, "{untrusted:?}");
    assert!(untrusted.err().contains("redoma policy trust"), "{untrusted:?}");
    let _ = project.redoma(["policy", "trust", "--yes"]).run().ok();
    assert_eq!(read().ok().out(), "host data\n");
    project.file("redoma.toml", widening + "# one byte more\n");
    assert_ne!(read().code(), 0, "trust is for exact content");
}

#[test]
fn what_narrows_holds_without_trust() {
    let home = Home::new();
    let project = home.project("p");
    project.file("notes/private.txt", "real-notes\n");
    project.file("redoma.toml", "[filesystem]\ndeny = [\"notes\"]\n");
    let ran = project.attempt("cat notes/private.txt").run().started();
    assert!(!ran.out().contains("real-notes"), "{ran:?}");
}

#[test]
fn the_sandbox_cannot_write_the_policy_of_its_next_start() {
    let home = Home::new();
    let project = home.project("p");
    project.file("redoma.toml", "[filesystem]\n");
    let _ = project.attempt("echo 'read = [\"/\"]' >> redoma.toml; rm -f redoma.toml; true").run().started();
    assert_eq!(project.read("redoma.toml"), "[filesystem]\n");
}

#[test]
fn allow_and_deny_edit_the_file_and_keep_comments() {
    let home = Home::new();
    let project = home.project("p");
    home.policy("# mine\n[filesystem]\n# why\nread = [\"/opt/data\"] # here\n");
    let _ = project.redoma(["allow", "--user", "read:/srv/more"]).run().ok();
    let _ = project.redoma(["deny", "--user", "/srv/secret"]).run().ok();
    let text = fs::read_to_string(home.redoma().join("config/policy.toml")).unwrap();
    for part in ["# mine", "# why", "/opt/data", "/srv/more", "/srv/secret"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn the_built_in_lists_and_the_schema_can_be_printed() {
    let home = Home::new();
    let project = home.project("p");
    let profiles = project.redoma(["policy", "profiles"]).run().ok();
    let agents = project.redoma(["policy", "agents"]).run().ok();
    assert!(["default", "strict", "audit", "permissive"].iter().all(|name| profiles.out().contains(name)));
    assert!(
        ["claude", "codex", "gemini", "aider"].iter().all(|name| agents.out().contains(name)),
        "{agents:?}"
    );
    let schema = project.redoma(["policy", "schema"]).run().ok();
    assert!(schema.json()["properties"]["filesystem"].is_object(), "{schema:?}");
}

#[test]
fn the_initial_policy_is_a_valid_policy() {
    let home = Home::new();
    let project = home.project("p");
    let _ = project.redoma(["policy", "init"]).run().ok();
    let _ = project.redoma(["policy", "check", "redoma.toml"]).run().ok();
}
