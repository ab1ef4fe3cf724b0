//! What is measured on: projects of a known size, in a home of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::process;
use crate::setup::TOOLCHAIN;
use crate::stage::PATH;

/// The staged programs and a home, gone at the end.
pub(crate) struct Bed {
    stage: PathBuf,
    home: tempfile::TempDir,
}

impl Bed {
    pub(crate) fn new(stage: PathBuf) -> Result<Self> {
        let home = tempfile::Builder::new().prefix("home-").tempdir_in(stage.join("out"))?;
        let bed = Self { stage, home };
        fs::write(bed.home().join(".gitconfig"), "[user]\n\tname = Bench\n\temail = bench@example.com\n")?;
        Ok(bed)
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// The folder of the staged programs; nothing else lies in it, so that a sandbox may read it.
    pub(crate) fn programs(&self) -> String {
        self.stage.join("bin").display().to_string()
    }

    pub(crate) fn program(&self, name: &str) -> String {
        format!("{}/{name}", self.programs())
    }

    /// Where results and settings go.
    pub(crate) fn out(&self) -> PathBuf {
        self.stage.join("out")
    }

    /// Redoma's own folders: config, state, run.
    pub(crate) fn redoma_home(&self) -> PathBuf {
        self.home().join(".redoma")
    }

    /// A program in `project`, with this bed's homes.
    pub(crate) fn command(&self, project: &Path, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(project).env("HOME", self.home()).env("REDOMA_HOME", self.redoma_home());
        command.env("PATH", format!("{TOOLCHAIN}/bin:{PATH}"));
        command
    }

    /// A repository with one file.
    pub(crate) fn small(&self) -> Result<PathBuf> {
        self.repository("small", 1, 1)
    }

    /// A repository of 10,000 files in 100 folders, all committed.
    pub(crate) fn ten_thousand(&self) -> Result<PathBuf> {
        self.repository("ten-thousand", 100, 100)
    }

    /// 278,000 files in 27,800 folders: a monorepo with its node_modules.
    pub(crate) fn monorepo(&self) -> Result<PathBuf> {
        self.repository("monorepo", 27_800, 10)
    }

    /// Made at first use, so that `--only` pays only for its own row.
    fn repository(&self, name: &str, folders: usize, files: usize) -> Result<PathBuf> {
        let top = self.home().join(name);
        if top.exists() {
            return Ok(top);
        }
        for folder in 0..folders {
            let path = top.join(format!("part{:03}", folder / 100)).join(format!("module{folder:05}"));
            fs::create_dir_all(&path)?;
            (0..files)
                .try_for_each(|file| fs::write(path.join(format!("file{file:03}.rs")), "fn f() {}\n"))?;
        }
        self.git(&top, &["init", "--quiet"])?;
        self.git(&top, &["add", "--all"])?;
        self.git(&top, &["commit", "--quiet", "--message", "All files"])?;
        Ok(top)
    }

    fn git(&self, top: &Path, args: &[&str]) -> Result<()> {
        process::output(self.command(top, "git").args(args)).map(drop)
    }

    /// A crate without dependencies and no repository, which every tier can run in; large enough for `cargo check` to read a few hundred files.
    pub(crate) fn rust_crate(&self) -> Result<PathBuf> {
        let top = self.home().join("crate");
        fs::create_dir_all(top.join("src"))?;
        fs::write(
            top.join("Cargo.toml"),
            "[package]\nname = \"bench\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
        )?;
        let modules: String = (0..300).map(|number| format!("pub mod m{number};\n")).collect();
        fs::write(top.join("src/lib.rs"), modules)?;
        for number in 0..300 {
            let body =
                format!("pub fn f{number}(x: u64) -> u64 {{ x.wrapping_mul({number}).rotate_left(7) }}\n");
            fs::write(top.join(format!("src/m{number}.rs")), body)?;
        }
        Ok(top)
    }

    /// A Node project whose fifty dependencies are local folders: `npm ci` without a network.
    pub(crate) fn node_project(&self) -> Result<PathBuf> {
        let top = self.home().join("node");
        let mut dependencies = serde_json::Map::new();
        for number in 0..50 {
            let name = format!("dependency{number}");
            let folder = top.join("vendor").join(&name);
            fs::create_dir_all(&folder)?;
            let manifest = serde_json::json!({"name": name, "version": "1.0.0"});
            fs::write(folder.join("package.json"), manifest.to_string())?;
            (0..40)
                .try_for_each(|file| fs::write(folder.join(format!("{file}.js")), "module.exports = 1\n"))?;
            dependencies.insert(name.clone(), format!("file:vendor/{name}").into());
        }
        let manifest = serde_json::json!({"name": "bench", "version": "1.0.0", "dependencies": dependencies});
        fs::write(top.join("package.json"), manifest.to_string())?;
        let lock =
            ["install", "--package-lock-only", "--install-links", "--offline", "--no-audit", "--no-fund"];
        process::output(self.command(&top, "npm").args(lock))?;
        Ok(top)
    }
}
