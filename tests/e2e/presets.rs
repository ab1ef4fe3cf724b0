//! Presets: hosts asked of the tools that are installed, as their user configured them, and never of the project.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use redoma_tests::{Home, Project, Ran, requires};

fn why(project: &Project<'_>, allow: &str, target: &str) -> Ran {
    project.redoma(["why", "connect", target, "--allow", allow, "--json"]).run()
}

fn effect(project: &Project<'_>, allow: &str, target: &str) -> String {
    let answer = why(project, allow, target).json();
    answer["effect"].as_str().unwrap().to_owned()
}

/// A home whose npm fetches from a company's mirror, and a project that would like another one.
fn npm_project(home: &Home) -> Project<'_> {
    home.file(
        ".npmrc",
        "registry=https://registry.example/npm/\n@own:registry=http://127.0.0.1:4873/\n//registry.example/npm/:_authToken=abc\n",
    );
    let project = home.project("p");
    project.file(".npmrc", "registry=https://evil.example/\n");
    project.file("package.json", "{\"packageManager\": \"npm@0.0.0\"}\n");
    project
}

#[test]
fn npms_registry_is_the_one_its_user_configured() {
    requires!("npm");
    let home = Home::new();
    let project = npm_project(&home);
    assert_eq!(effect(&project, "npm", "registry.example"), "allow");
    assert_eq!(effect(&project, "npm", "evil.example"), "deny");
    assert_eq!(effect(&project, "example.com", "registry.example"), "deny", "the twin");
    let local = why(&project, "npm", "localhost:4873").json();
    assert_eq!(local["place"], "host", "a registry of this machine is a port to reach: {local}");
    let shown = project.redoma(["policy", "show", "--resolved", "--allow", "npm"]).run().ok();
    assert!(shown.out().contains("npm_config_registry = \"https://registry.example/npm/\""), "{shown:?}");
    assert!(!shown.out().contains("evil.example") && !shown.out().contains("abc"), "{shown:?}");
}

#[test]
fn what_a_preset_came_to_is_told() {
    requires!("npm");
    let home = Home::new();
    let project = npm_project(&home);
    let ran = project.redoma(["run", "--allow", "npm,other.example"]).command(["true"]).run();
    assert!(ran.err().contains("npm → registry.example on port 443"), "{ran:?}");
    assert!(ran.err().contains("npm → a port of this machine: 127.0.0.1 on port 4873"), "{ran:?}");
}

#[test]
fn a_tool_of_the_projects_own_is_never_run_outside() {
    let home = Home::new();
    let project = home.project("p");
    let marker = home.outside().join("ran");
    let script = format!("#!/bin/sh\necho ran > {}\necho '{{}}'\n", marker.display());
    let tool = project.file("node_modules/.bin/npm", script);
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/nowhere", tool.parent().unwrap().display());
    let asked = || project.redoma(["why", "connect", "a.example", "--allow", "npm"]);
    let ran = asked().env("PATH", &path).run();
    assert!(ran.err().contains("there is no npm outside the project"), "{ran:?}");
    assert!(!marker.exists());
    let outside = home.outside().join("npm");
    fs::copy(&tool, &outside).unwrap();
    let ran = asked().env("PATH", outside.parent().unwrap().as_os_str()).run();
    assert!(marker.exists(), "the twin: the same program elsewhere is run: {ran:?}");
}

#[test]
fn an_allowed_preset_is_written_as_rules() {
    requires!("npm");
    let home = Home::new();
    let project = npm_project(&home);
    let _ = project.redoma(["allow", "npm,db.example:5432", "--user"]).run().ok();
    let policy = fs::read_to_string(home.redoma().join("config/policy.toml")).unwrap();
    assert!(
        policy.contains("# npm: npm's registry\n[[network.rule]]\nhost = \"registry.example\""),
        "{policy}"
    );
    for (target, code) in
        [("registry.example", 0), ("db.example:5432", 0), ("localhost:4873", 0), ("evil.example", 1)]
    {
        let _ = project.redoma(["why", "connect", target]).run().expect_code(code);
    }
    let again = project.redoma(["allow", "npm", "--user"]).run().ok();
    assert!(again.err().contains("says so already"), "{again:?}");
}

#[test]
fn cargo_asks_its_users_configuration_alone() {
    let home = Home::new();
    let project = home.project("p");
    let mirror = |host: &str| {
        format!(
            "[source.built-in]\nreplace-with = \"m\"\n[source.m]\nregistry = \"sparse+https://{host}/\"\n"
        )
    };
    home.file(".cargo/config.toml", mirror("crates.mirror.example"));
    project.file(".cargo/config.toml", mirror("evil.example"));
    assert_eq!(effect(&project, "cargo", "crates.mirror.example"), "allow");
    assert_eq!(effect(&project, "cargo", "evil.example"), "deny");
}

#[test]
fn maven_asks_its_users_settings_alone() {
    requires!("mvn");
    let home = Home::new();
    let project = home.project("p");
    let mirror = |host: &str| {
        format!(
            "<settings><mirrors><mirror><mirrorOf>*</mirrorOf><url>https://{host}/m2</url></mirror></mirrors></settings>"
        )
    };
    home.file(".m2/settings.xml", mirror("maven.example"));
    project.file(".mvn/settings.xml", mirror("evil.example"));
    assert_eq!(effect(&project, "maven", "maven.example"), "allow");
    assert_eq!(effect(&project, "maven", "evil.example"), "deny");
    fs::remove_file(home.path().join(".m2/settings.xml")).unwrap();
    let shown = project.redoma(["policy", "show", "--resolved", "--allow", "maven"]).run().ok();
    assert!(shown.out().contains("[[network.rule]]"), "the default is in maven's own library: {shown:?}");
    assert!(!shown.out().contains("maven.example"), "{shown:?}");
}

#[test]
fn pip_asks_its_users_configuration_alone() {
    requires!("python3");
    let home = Home::new();
    let project = home.project("p");
    // A pip that is sure to be there and to be found: an environment outside the project.
    let folder = home.outside().join("venv");
    let made = std::process::Command::new(redoma_tests::available_tool("python3").unwrap())
        .args(["-m", "venv"])
        .arg(&folder)
        .output()
        .unwrap();
    if !made.status.success() {
        return redoma_tests::skip("pip_asks_its_users_configuration_alone", "python3 has no venv");
    }
    let ask = |target: &str| {
        let asked = project.redoma(["why", "connect", target, "--allow", "pip", "--json"]);
        asked
            .env("PATH", folder.join("bin").as_os_str())
            .env("PIP_CONFIG_FILE", project.path().join("pip.conf"))
            .run()
    };
    project.file("pip.conf", "[global]\nindex-url = https://evil.example/simple\n");
    home.file(".config/pip/pip.conf", "[global]\nindex-url = https://pip.mirror.example/simple\n");
    assert_eq!(ask("pip.mirror.example").json()["effect"], "allow");
    assert_eq!(ask("evil.example").json()["effect"], "deny");
}

#[test]
fn git_services_are_known_by_name() {
    let home = Home::new();
    let project = home.project("p");
    assert_eq!(effect(&project, "git", "github.com:22"), "allow");
    assert_eq!(effect(&project, "github", "raw.githubusercontent.com"), "allow");
    assert_eq!(effect(&project, "github", "gitlab.com"), "deny");
}
