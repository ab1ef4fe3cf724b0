//! One archive of every test binary, laid out where an ordinary user can read it.
//!
//! A checkout often lies in a home that others cannot enter. Both runs (as root and as the ordinary
//! user) start from the same archive, so that they run the same bytes.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::process::{self, cargo, find, root};
use crate::setup::TOOLCHAIN;
use crate::user::User;

/// Folders with programs on which the tests may rely; a version manager's shims in root's home are no use.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the second run repeats: whatever asks the kernel for something. Parsers and formats are the same for everybody.
const WHERE_RIGHTS_MATTER: &str = "package(redoma-tests) + package(redoma-jail) + package(redoma-sandbox) \
    + package(redoma-sys) + package(redoma-redteam)";

/// The laid-out archive. Removed when dropped.
pub(crate) struct Stage {
    folder: tempfile::TempDir,
    strict: bool,
}

impl Stage {
    /// Builds the tests, archives them, and copies `redoma` and the sources the tests read.
    pub(crate) fn build(strict: bool) -> Result<Self> {
        // Not /tmp: that is private inside a sandbox, and a red-team run starts `redoma` itself inside.
        let folder = tempfile::Builder::new().prefix("redoma-stage-").tempdir_in("/var/tmp")?;
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        let stage = Self { folder, strict };
        stage.archive()?;
        stage.copy_programs()?;
        stage.copy_sources()?;
        stage.make_skip_log()?;
        Ok(stage)
    }

    fn archive(&self) -> Result<()> {
        let mut archive = cargo();
        archive.args(["nextest", "archive", "--locked", "--workspace", "--archive-file"]);
        process::run(archive.arg(self.path("tests.tar.zst")))
    }

    fn copy_programs(&self) -> Result<()> {
        fs::create_dir(self.path("bin"))?;
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
        copy(&target.join("debug/redoma"), &self.path("bin/redoma"))?;
        let nextest = find("cargo-nextest").context("cargo-nextest is missing: cargo xtask setup")?;
        copy(&nextest, &self.path("bin/cargo-nextest"))
    }

    /// The files git knows and the new ones it would know: fixtures and snapshots, not `target/`.
    fn copy_sources(&self) -> Result<()> {
        let sources = self.path("src");
        fs::create_dir(&sources)?;
        let mut list = Command::new("git");
        list.args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]).current_dir(root());
        for name in process::output(&mut list)?.split_terminator('\0') {
            copy_if_there(&root().join(name), &sources.join(name))?;
        }
        Ok(())
    }

    /// World-writable on purpose: both users append to it.
    fn make_skip_log(&self) -> Result<()> {
        fs::write(self.skip_log(), "")?;
        Ok(fs::set_permissions(self.skip_log(), Permissions::from_mode(0o666))?)
    }

    /// Runs the archive as who we are.
    pub(crate) fn run_here(&self) -> Result<()> {
        let mut nextest = Command::new(self.path("bin/cargo-nextest"));
        nextest.current_dir(self.path("src"));
        self.run_archive(nextest, &self.path("here"), &[])
    }

    /// Runs the archive as `user`.
    pub(crate) fn run_as(&self, user: &User) -> Result<()> {
        let extracted = self.path("user");
        fs::create_dir(&extracted)?;
        user.give(&extracted)?;
        let mut nextest = user.command(self.path("bin/cargo-nextest"), PATH.as_ref());
        nextest.current_dir(self.path("src"));
        self.run_archive(nextest, &extracted, &["-E", WHERE_RIGHTS_MATTER])
    }

    fn run_archive(&self, mut nextest: Command, extracted: &Path, filter: &[&str]) -> Result<()> {
        fs::create_dir_all(extracted)?;
        nextest.args(["nextest", "run", "--no-fail-fast", "--archive-file"]);
        nextest.arg(self.path("tests.tar.zst")).arg("--extract-to").arg(extracted);
        nextest.arg("--workspace-remap").arg(self.path("src")).args(filter);
        nextest.env("REDOMA_BIN", self.path("bin/redoma")).env("REDOMA_SKIP_LOG", self.skip_log());
        nextest.env("REDOMA_TEST_TOOLCHAIN", toolchain()?).env("REDOMA_TEST_PATH", PATH);
        // Without cargo on PATH insta cannot find it out.
        nextest.env("INSTA_WORKSPACE_ROOT", self.path("src"));
        // A snapshot that differs is a failure, never a new file.
        nextest.env("INSTA_UPDATE", "no");
        if self.strict {
            nextest.env("REDOMA_REQUIRE_ALL", "1");
        }
        process::run(&mut nextest)
    }

    /// What tests said they could not do, without repeats.
    pub(crate) fn skips(&self) -> Result<Vec<String>> {
        let log = fs::read_to_string(self.skip_log())?;
        let mut lines: Vec<String> = log.lines().map(str::to_owned).collect();
        lines.sort();
        lines.dedup();
        Ok(lines)
    }

    fn skip_log(&self) -> PathBuf {
        self.path("skipped")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The toolchain that tests build with: the shared one, or for a contributor without root, their own.
fn toolchain() -> Result<OsString> {
    if Path::new(TOOLCHAIN).exists() {
        return Ok(TOOLCHAIN.into());
    }
    Ok(process::output(Command::new("rustc").args(["--print", "sysroot"]))?.trim().into())
}

/// Copies a file; an error names both.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Listed by git, yet deleted in the work tree: not there to copy.
fn copy_if_there(from: &Path, to: &Path) -> Result<()> {
    if !from.is_file() {
        return Ok(());
    }
    fs::create_dir_all(to.parent().expect("a file below a folder"))?;
    copy(from, to)
}
