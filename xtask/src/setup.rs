//! `cargo xtask setup`: what the tests need, on Debian or Ubuntu. Only what is missing is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::process::{self, cargo, find};
use crate::user;

/// A program the tests call, and the Debian package that brings it.
const PROGRAMS: &[(&str, &str)] = &[
    ("busybox", "busybox-static"),
    ("bwrap", "bubblewrap"),
    ("cc", "gcc"),
    ("conmon", "conmon"),
    ("curl", "curl"),
    ("debootstrap", "debootstrap"),
    ("docker", "docker.io"),
    ("docker-registry", "docker-registry"),
    ("dockerd", "docker.io"),
    ("gdb", "gdb"),
    ("git", "git"),
    ("htop", "htop"),
    ("htpasswd", "apache2-utils"),
    ("ip", "iproute2"),
    ("less", "less"),
    ("make", "make"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("nsenter", "util-linux"),
    ("podman", "podman"),
    ("runc", "runc"),
    ("setpriv", "util-linux"),
    ("skopeo", "skopeo"),
    ("sqlite3", "sqlite3"),
    ("strace", "strace"),
    ("sudo", "sudo"),
    ("top", "procps"),
    ("tshark", "tshark"),
    ("umoci", "umoci"),
    ("useradd", "passwd"),
    ("vim", "vim"),
    ("zsh", "zsh"),
];

/// Debian's own Python, whatever else is on PATH: a version manager's Python lies in root's home,
/// where the ordinary user cannot look.
const DEBIAN_PYTHON: &str = "/usr/bin/python3";

/// Cargo subcommands that `cargo xtask test` calls.
const CARGO_TOOLS: &[&str] = &["cargo-nextest", "cargo-deny"];

/// Where a toolchain is put that every user of the machine can read. rustup keeps it in a home.
pub(crate) const TOOLCHAIN: &str = "/opt/redoma-test/toolchain";

/// Where the peers that `cargo xtask bench` measures are put.
pub(crate) const PEERS: &str = "/opt/redoma-test/peers";

/// Where the validators of formats are put that the tests ask for a second opinion.
const VALIDATORS: &str = "/opt/redoma-test/node";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Also install the programs that `cargo xtask bench` compares with (some minutes)
    #[arg(long)]
    peers: bool,
}

/// Installs what is missing and says what it did.
pub(crate) fn run(options: &Options) -> Result<()> {
    let packages = missing_packages();
    if user::is_root() {
        install_packages(&packages)?;
        ensure_user()?;
        share_toolchain()?;
        install_validators()?;
    } else {
        advise(&packages)?;
    }
    CARGO_TOOLS.iter().try_for_each(|tool| ensure_cargo_tool(tool))?;
    if options.peers {
        install_peers()?;
    }
    println!("setup: done");
    Ok(())
}

fn missing_packages() -> Vec<&'static str> {
    let absent = PROGRAMS.iter().filter(|(program, _)| find(program).is_none());
    let mut packages: Vec<&str> = absent.map(|&(_, package)| package).collect();
    packages.sort_unstable();
    packages.dedup();
    if !Path::new(DEBIAN_PYTHON).exists() {
        packages.push("python3");
    }
    if !python_has("ensurepip") {
        packages.push("python3-venv");
    }
    packages
}

fn python_has(module: &str) -> bool {
    let tried = Command::new(DEBIAN_PYTHON).args(["-c", &format!("import {module}")]).output();
    tried.is_ok_and(|output| output.status.success())
}

fn install_packages(packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        println!("setup: every program the tests call is here");
        return Ok(());
    }
    if find("apt-get").is_none() {
        bail!(
            "no apt-get here; install by other means what these Debian packages bring: {}",
            packages.join(" ")
        );
    }
    println!("setup: installing {}", packages.join(" "));
    let mut install = Command::new("apt-get");
    install.env("DEBIAN_FRONTEND", "noninteractive");
    process::run(install.args(["install", "-y", "--no-install-recommends"]).args(packages))
        .context("apt-get could not install; `apt-get update` first if its lists are old")
}

/// Without root nothing can be installed for the machine: say exactly what root has to type.
fn advise(packages: &[&str]) -> Result<()> {
    if packages.is_empty() {
        println!("setup: every program the tests call is here");
    } else {
        println!("setup: missing programs; run:\n  sudo apt-get install -y {}", packages.join(" "));
    }
    if user::find()?.is_none() {
        println!("setup: the runs as root and as an ordinary user need `sudo -E cargo xtask setup` once");
    }
    Ok(())
}

fn ensure_user() -> Result<()> {
    if user::find()?.is_some() {
        println!("setup: user {} is here", user::NAME);
        return Ok(());
    }
    println!("setup: making the ordinary user {}", user::NAME);
    process::run(Command::new("useradd").args(["--create-home", "--shell", "/bin/sh", user::NAME]))
}

fn ensure_cargo_tool(tool: &str) -> Result<()> {
    if find(tool).is_some() {
        println!("setup: {tool} is here");
        return Ok(());
    }
    // --debug: they run for seconds and are built on every fresh CI machine, so building fast matters more.
    println!("setup: building {tool}");
    process::run(cargo().args(["install", "--locked", "--debug", tool]))
}

fn install_validators() -> Result<()> {
    if Path::new(VALIDATORS).join("node_modules/har-validator").exists() {
        println!("setup: {VALIDATORS} is here");
        return Ok(());
    }
    println!("setup: installing validators of formats as {VALIDATORS}");
    process::run(Command::new("npm").args(["install", "--no-audit", "--prefix", VALIDATORS, "har-validator"]))
}

/// bubblewrap is among the tests' programs already; srt also calls socat and ripgrep, nono links libdbus.
fn install_peers() -> Result<()> {
    if user::is_root() {
        install_packages(&["libdbus-1-dev", "pkg-config", "ripgrep", "socat"])?;
    }
    let bin = Path::new(PEERS).join("bin");
    if !bin.join("srt").exists() || !bin.join("codex").exists() {
        let packages = ["@anthropic-ai/sandbox-runtime", "@openai/codex"];
        process::run(Command::new("npm").args(["install", "--global", "--prefix", PEERS]).args(packages))?;
    }
    if !bin.join("nono").exists() {
        // Without --locked: its lock file names a release that was withdrawn.
        process::run(cargo().args(["install", "--root", PEERS, "nono-cli"]))?;
    }
    Ok(())
}

/// Hard links (or, across file systems, copies) of the toolchain in use, for users who cannot look
/// into the home that rustup installed it in. The files stay root's: nobody else can change them.
fn share_toolchain() -> Result<()> {
    let sysroot = PathBuf::from(process::output(Command::new("rustc").args(["--print", "sysroot"]))?.trim());
    let shared = Path::new(TOOLCHAIN);
    if sysroot == shared || same_compiler(&sysroot, shared) {
        println!("setup: {TOOLCHAIN} is here");
        return Ok(());
    }
    println!("setup: sharing the toolchain as {TOOLCHAIN}");
    let holder = shared.parent().expect("TOOLCHAIN has a parent");
    std::fs::create_dir_all(holder).with_context(|| format!("cannot make {}", holder.display()))?;
    if shared.exists() {
        std::fs::remove_dir_all(shared).with_context(|| format!("cannot replace {TOOLCHAIN}"))?;
    }
    let linked = Command::new("cp").arg("-al").arg(&sysroot).arg(shared).output();
    if linked.is_ok_and(|output| output.status.success()) {
        return Ok(());
    }
    process::run(Command::new("cp").arg("-a").arg("--").arg(format!("{}/.", sysroot.display())).arg(shared))
}

fn same_compiler(one: &Path, other: &Path) -> bool {
    let version = |sysroot: &Path| Command::new(sysroot.join("bin/rustc")).arg("-vV").output().ok();
    matches!((version(one), version(other)), (Some(a), Some(b)) if a.stdout == b.stdout)
}
