//! Files in and out of sandboxes that outlive one command.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use redoma_tests::{Home, Project, Ran};

/// One sandbox, which goes with the test.
struct Sandbox<'h> {
    project: Project<'h>,
}

impl<'h> Sandbox<'h> {
    fn new(home: &'h Home) -> Self {
        let sandbox = Self { project: home.folder("p") };
        let _ = sandbox.redoma("sandbox create --name box").ok();
        sandbox
    }

    fn redoma(&self, words: &str) -> Ran {
        self.project.redoma(words.split_whitespace()).run()
    }

    fn shell(&self, script: &str) -> Ran {
        self.project.redoma(["sandbox", "exec", "box", "--", "sh", "-c", script]).run()
    }
}

impl Drop for Sandbox<'_> {
    fn drop(&mut self) {
        let _ = self.redoma("sandbox rm --all");
    }
}

#[test]
fn a_tree_goes_in_before_the_first_command_and_comes_back() {
    let home = Home::new();
    let sandbox = Sandbox::new(&home);
    let here = sandbox.project.path();
    fs::create_dir_all(here.join("tree/below")).unwrap();
    fs::write(here.join("tree/below/run"), "#!/bin/sh\necho ran\n").unwrap();
    fs::set_permissions(here.join("tree/below/run"), fs::Permissions::from_mode(0o750)).unwrap();
    symlink("below/run", here.join("tree/link")).unwrap();
    let copied = sandbox.redoma("sandbox cp tree box:/app --json").ok().json();
    assert_eq!(copied["entries"], 4);
    assert_eq!(sandbox.shell("/app/link").ok().out(), "ran\n");
    let _ = sandbox.shell("mkfifo /app/fifo").ok();
    let copied = sandbox.redoma("sandbox cp box:/app back --json").ok().json();
    assert_eq!(copied["notes"].as_array().map(Vec::len), Some(1), "{copied}");
    assert_eq!(fs::metadata(here.join("back/below/run")).unwrap().mode() & 0o7777, 0o750);
    assert_eq!(fs::read_link(here.join("back/link")).unwrap().to_str(), Some("below/run"));
}

#[test]
fn one_file_goes_through_pipes() {
    let home = Home::new();
    let sandbox = Sandbox::new(&home);
    let sent = sandbox.project.redoma(["sandbox", "cp", "-", "box:/srv/new/file"]).stdin("piped\n").run();
    let _ = sent.ok();
    assert_eq!(sandbox.shell("cat /srv/new/file").ok().out(), "piped\n");
    assert_eq!(sandbox.redoma("sandbox cp box:/srv/new/file -").ok().out(), "piped\n");
}

#[test]
fn a_link_inside_never_leads_out() {
    let home = Home::new();
    let sandbox = Sandbox::new(&home);
    let here = sandbox.project.path();
    fs::write(here.join("secret"), "the host's own\n").unwrap();
    let plant = format!("ln -s {0}/secret /tmp/secret; ln -s {0} /tmp/folder", here.display());
    let _ = sandbox.shell(&plant).ok();
    let read = sandbox.redoma("sandbox cp box:/tmp/secret -");
    assert!(!read.out().contains("the host's own"));
    fs::write(here.join("planted"), "planted\n").unwrap();
    let _ = sandbox.redoma("sandbox cp planted box:/tmp/folder/secret");
    assert_eq!(fs::read_to_string(here.join("secret")).unwrap(), "the host's own\n");
    // Its twin: a link to a place inside works.
    let _ = sandbox.shell("mkdir /tmp/real; ln -s /tmp/real /tmp/inner").ok();
    let _ = sandbox.redoma("sandbox cp planted box:/tmp/inner/secret").ok();
    assert_eq!(sandbox.shell("cat /tmp/real/secret").ok().out(), "planted\n");
}

#[test]
fn what_is_frozen_while_a_command_runs_is_what_was_there() {
    let home = Home::new();
    let sandbox = Sandbox::new(&home);
    let script = "mkdir -p /srv/x; echo one > /srv/x/a; ln /srv/x/a /srv/x/b; echo ready; sleep 60";
    let held = sandbox.project.redoma(["sandbox", "exec", "box", "--", "sh", "-c", script]).until_ready();
    let _ = sandbox.redoma("sandbox snapshot box frozen").ok();
    let _ = sandbox.shell("echo two > /srv/x/a").ok();
    let _ = sandbox.redoma("sandbox fork frozen --name other").ok();
    assert_eq!(sandbox.redoma("sandbox exec other -- cat /srv/x/a").ok().out(), "one\n");
    assert_eq!(sandbox.redoma("sandbox exec other -- stat -c %h /srv/x/b").ok().out(), "2\n");
    assert_eq!(sandbox.shell("cat /srv/x/b").ok().out(), "two\n");
    held.kill();
}
