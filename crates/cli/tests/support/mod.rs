//! A user with a home of their own, for tests of what the command says.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A home, a project and Redoma's folders below one temporary folder.
pub(crate) struct User {
    _dir: tempfile::TempDir,
    /// The canonical temporary folder; shown as `[ROOT]`.
    pub(crate) root: PathBuf,
}

impl User {
    /// A user with an empty git project.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let user = Self { _dir: dir, root };
        user.write("project/.git/HEAD", "ref: refs/heads/main\n");
        std::fs::create_dir_all(user.root.join("home")).unwrap();
        user
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// The project's policy as it is.
    #[allow(dead_code, reason = "not every suite edits")]
    pub(crate) fn policy(&self) -> String {
        std::fs::read_to_string(self.project().join("redoma.toml")).unwrap()
    }

    /// Writes a file below the root, with its folders.
    pub(crate) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The command with nothing of the caller's environment.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_redoma"));
        command.args(args);
        self.at_home(command)
    }

    /// A shell in the same place, for lines to paste.
    #[allow(dead_code, reason = "not every suite pastes")]
    pub(crate) fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("bash");
        command.args(["-c", script]);
        self.at_home(command)
    }

    fn at_home(&self, mut command: Command) -> Command {
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.root.join("home"))
            .env("REDOMA_HOME", self.root.join("redoma"))
            .env("USER", "ana")
            .env("COLUMNS", "100")
            .current_dir(self.project())
            .stdin(Stdio::null());
        command
    }

    /// Runs and shows exit code, output and errors, with what differs from run to run replaced.
    pub(crate) fn say(&self, args: &[&str]) -> String {
        self.show(&self.command(args).output().unwrap())
    }

    /// How a command ends without a network.
    #[allow(dead_code, reason = "not every suite runs")]
    pub(crate) fn exit_code(&self, command: &[&str]) -> Option<i32> {
        let args = ["run", "-q", "--net", "none", "--"].iter().chain(command).copied();
        self.command(&args.collect::<Vec<_>>()).output().unwrap().status.code()
    }

    fn show(&self, output: &Output) -> String {
        let text = |bytes: &[u8]| {
            without_lines(&String::from_utf8_lossy(bytes).replace(self.root.to_str().unwrap(), "[ROOT]"))
        };
        let code = output.status.code().map_or("killed".to_owned(), |code| code.to_string());
        let mut shown = format!("exit {code}\n");
        for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
            if !bytes.is_empty() {
                shown.push_str(&format!("--- {name}\n{}", text(bytes)));
            }
        }
        shown
    }
}

/// `profile base:33` → `profile base:[LINE]`: profiles may grow without changing what is said here.
fn without_lines(text: &str) -> String {
    let mut parts = text.split("profile base:");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push_str("profile base:[LINE]");
        shown.push_str(part.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    }
    shown
}
