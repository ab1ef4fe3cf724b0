//! The tools that agents use all day work inside.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use redoma_tests::{Home, Project, Tier, requires, toolchain};

fn rust_project(home: &Home, tier: Tier) -> Project<'_> {
    let project = home.project_for(tier);
    project.file("Cargo.toml", "[package]\nname = \"inside\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    project.file("src/main.rs", "fn main() { println!(\"built inside\"); }\n#[test]\nfn works() {}\n");
    project
}

#[test]
fn cargo_builds_tests_and_runs() {
    if toolchain().is_none() {
        return redoma_tests::skip(module_path!(), "no Rust toolchain");
    }
    let home = Home::new();
    for tier in Tier::ALL {
        let project = rust_project(&home, tier);
        let script = "cargo test -q --offline >/dev/null && cargo run -q --offline";
        let ran = project.shell(script).tier(tier).with_toolchain().run().ok();
        assert_eq!(ran.out(), "built inside\n", "{tier:?}");
    }
}

#[test]
fn npm_installs_from_a_local_folder_and_node_tests() {
    requires!("node", "npm");
    let home = Home::new();
    let project = home.project("p");
    project.file("vendor/greet/package.json", "{\"name\": \"greet\", \"version\": \"1.0.0\"}");
    project.file("vendor/greet/index.js", "module.exports = () => 'greeted inside'");
    project.file("package.json", "{\"dependencies\": {\"greet\": \"file:vendor/greet\"}}");
    let test = "const test = require('node:test'); test('works', () => require('greet')())";
    project.file("greet.test.js", test);
    let script = "npm install --install-links --offline --no-audit --no-fund >/dev/null
        node --test greet.test.js >/dev/null && node -p 'require(\"greet\")()'";
    let ran = project.shell(script).run().ok();
    assert_eq!(ran.out(), "greeted inside\n");
}

#[test]
fn pip_installs_a_local_wheel() {
    requires!("python3");
    let home = Home::new();
    let project = home.project("p");
    project.file("make_wheel.py", MAKE_WHEEL);
    let script = "set -e
        python3 make_wheel.py
        python3 -m venv venv
        venv/bin/pip install -q --no-index --disable-pip-version-check ./inside-1.0-py3-none-any.whl
        venv/bin/python -c 'import inside; print(inside.WHERE)'";
    let ran = project.inside(["sh", "-c", &format!("PATH=/usr/bin:/bin; {script}")]).run().ok();
    assert_eq!(ran.out(), "imported inside\n");
}

/// A wheel is a zip file with three fixed members (PEP 427).
const MAKE_WHEEL: &str = "import zipfile
info = 'inside-1.0.dist-info/'
members = {
    'inside.py': 'WHERE = \"imported inside\"\\n',
    info + 'METADATA': 'Metadata-Version: 2.1\\nName: inside\\nVersion: 1.0\\n',
    info + 'WHEEL': 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n',
    info + 'RECORD': '',
}
with zipfile.ZipFile('inside-1.0-py3-none-any.whl', 'w') as wheel:
    for name, text in members.items():
        wheel.writestr(name, text)
";

#[test]
fn make_and_a_compiler_work() {
    requires!("make", "cc");
    let home = Home::new();
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        project.file("hello.c", "#include <stdio.h>\nint main(void) { puts(\"compiled\"); return 0; }\n");
        project.file("Makefile", "run: hello\n\t./hello\nhello: hello.c\n\t$(CC) -o hello hello.c\n");
        let ran = project.inside(["make", "-s", "run"]).tier(tier).run().ok();
        assert_eq!(ran.out(), "compiled\n", "{tier:?}");
    }
}

#[test]
fn sqlite_locks_and_journals() {
    requires!("sqlite3");
    let home = Home::new();
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        let sql = "PRAGMA journal_mode=WAL; CREATE TABLE t(x); INSERT INTO t VALUES (42); SELECT x FROM t;";
        let ran = project.inside(["sqlite3", &format!("{}.db", tier.name()), sql]).tier(tier).run().ok();
        assert!(ran.out().ends_with("42\n"), "{tier:?} {ran:?}");
    }
}

#[test]
fn sudo_fails_cleanly() {
    requires!("sudo");
    let home = Home::new();
    let ran = home.project("p").attempt("sudo -n id").option("--time", "30s").run().started();
    assert_ne!(ran.code(), 124, "it must not hang: {ran:?}");
    assert_ne!(ran.code(), 0, "{ran:?}");
    assert!(!ran.out().contains("uid=0"), "{ran:?}");
}

#[test]
fn strace_follows_an_own_child() {
    requires!("strace");
    let home = Home::new();
    let ran = home.project("p").inside(["strace", "-f", "-e", "trace=execve", "true"]).run().ok();
    assert!(ran.err().contains("execve("), "{ran:?}");
}

#[test]
fn gdb_runs_an_own_child() {
    requires!("gdb");
    let home = Home::new();
    let gdb = ["gdb", "-q", "-batch", "-nx", "-ex", "run", "--args", "/bin/sh", "-c", "exit 7"];
    let ran = home.project("p").inside(gdb).run().ok();
    assert!(ran.out().contains("exited with code 07"), "{ran:?}");
}

#[test]
fn a_nested_bubblewrap_needs_the_policys_word() {
    requires!("bwrap");
    let home = Home::new();
    let project = home.project("p");
    let bwrap = [
        "bwrap",
        "--unshare-user",
        "--unshare-pid",
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "echo",
        "nested",
    ];
    let refused = project.attempt(&bwrap.join(" ")).run().started();
    assert_ne!(refused.code(), 0, "{refused:?}");
    if rustix::process::geteuid().is_root() {
        // The kernel lets only a process with CAP_SETFCAP map user 0 into a new namespace (Linux 5.12,
        // user_namespaces(7)), and inside nobody has a capability.
        return;
    }
    home.policy("[kernel]\nnested_userns = true\n[filesystem]\nworkspace = \"overlay\"\n");
    assert_eq!(project.inside(bwrap).run().ok().out(), "nested\n");
}

#[test]
fn file_modes_and_links_made_inside_arrive() {
    let home = Home::new();
    let project = home.project("p");
    let script = "umask 022; echo x > f; chmod 750 f; ln -s f link; ln f hard; mkfifo pipe";
    let _ = project.shell(script).run().ok();
    let mode = |name: &str| fs::symlink_metadata(project.path().join(name)).unwrap().permissions().mode();
    assert_eq!(mode("f") & 0o7777, 0o750);
    assert_eq!(fs::read_link(project.path().join("link")).unwrap().to_str(), Some("f"));
    assert_eq!(mode("pipe") & 0o170_000, 0o010_000);
}

#[test]
fn a_zsh_heredoc_works() {
    requires!("zsh");
    let home = Home::new();
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        let ran = project.inside(["zsh", "-f", "-c", "cat <<END\nfrom a heredoc\nEND"]).tier(tier).run().ok();
        assert_eq!(ran.out(), "from a heredoc\n", "{tier:?}");
    }
}
