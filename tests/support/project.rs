//! A git repository to run things in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::binary::search_path;
#[cfg(doc)]
use crate::command::Ran;
use crate::command::Redoma;
use crate::home::Home;
use crate::terminal::Terminal;

/// A repository below a [`Home`], gone with it.
pub struct Project<'home> {
    home: &'home Home,
    path: PathBuf,
}

impl<'home> Project<'home> {
    pub(crate) fn create(home: &'home Home, name: &str) -> Self {
        let project = Self::plain(home, name);
        project.git(&["init", "--quiet"]);
        project
    }

    pub(crate) fn plain(home: &'home Home, name: &str) -> Self {
        let project = Self { home, path: home.path().join(name) };
        fs::create_dir_all(&project.path).unwrap();
        project
    }

    /// Its top folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The home it lies in.
    #[must_use]
    pub fn home(&self) -> &'home Home {
        self.home
    }

    /// Writes a file, with its folders.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Reads a file as text.
    ///
    /// # Panics
    /// If it cannot be read.
    #[must_use]
    pub fn read(&self, name: impl AsRef<Path>) -> String {
        let path = self.path.join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Runs git outside any sandbox and returns what it printed.
    ///
    /// # Panics
    /// If git fails.
    pub fn git(&self, args: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(args).current_dir(&self.path).env_clear();
        git.env("HOME", self.home.path()).env("PATH", search_path());
        let output = git.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Commits everything that is there.
    pub fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
    }

    /// `redoma` with these arguments, in this project.
    #[must_use]
    pub fn redoma<'a>(&self, args: impl IntoIterator<Item = &'a str>) -> Redoma {
        Redoma::new(self.home, &self.path, args)
    }

    /// `redoma run --net none -- COMMAND`, in this project. Options go between by [`Redoma::option`].
    #[must_use]
    pub fn inside<'a>(&self, command: impl IntoIterator<Item = &'a str>) -> Redoma {
        let run = Redoma::new(self.home, &self.path, ["run", "--net", "none"]);
        run.command(command)
    }

    /// `redoma run --net none -- sh -c SCRIPT`, in this project.
    #[must_use]
    pub fn shell(&self, script: &str) -> Redoma {
        self.inside(["sh", "-c", script])
    }

    /// As [`Project::shell`], for a script that must come to nothing: it first prints what [`Ran::started`] looks for.
    #[must_use]
    pub fn attempt(&self, script: &str) -> Redoma {
        self.shell(&format!("echo started; {script}"))
    }

    /// A shell script outside any sandbox, on a terminal, with the environment of [`Project::redoma`].
    #[must_use]
    pub fn on_terminal(&self, script: &str) -> Terminal {
        let redoma = self.redoma([]).build();
        let mut command = Command::new("setsid");
        command.args(["--ctty", "sh", "-c", script]).current_dir(&self.path).env_clear();
        command.envs(redoma.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Terminal::start(command)
    }
}
