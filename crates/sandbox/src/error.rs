use std::path::PathBuf;

use redoma_gateway::SecretError;
use redoma_jail::{JailError, Missing, Step};
use redoma_sys::Errno;

use crate::quarantine::QuarantineError;
use crate::undo::UndoError;
use crate::walk::WalkError;

/// Why nothing ran, or why a session was ended.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum RunError {
    #[error("this machine cannot hold a sandbox: {} is missing: {}", .missing.what, .missing.why)]
    NoBoundary { missing: Missing },
    #[error("[secrets.{name}] is for commands in a sandbox: a proxy by itself puts no credentials in")]
    NoCredentials { name: String },
    #[error("{0}")]
    Proxy(#[from] redoma_policy::InvalidProxy),
    #[error("{0}")]
    Secret(#[from] SecretError),
    #[error("the gateway cannot work: {0}")]
    Gateway(std::io::Error),
    #[error("port {port} of this machine cannot be listened on: {source}")]
    Listen { port: u16, source: std::io::Error },
    #[error("port {port} of this machine cannot be published on: {source}")]
    Publish { port: u16, source: std::io::Error },
    #[error("{0}")]
    Jail(#[from] JailError),
    #[error("{0}")]
    Walk(#[from] WalkError),
    #[error("{0}")]
    Quarantine(#[from] QuarantineError),
    #[error("cannot keep what `redoma undo` would need: {0}")]
    Undo(#[from] UndoError),
    #[error("the record cannot be written: {0}")]
    Record(#[from] redoma_audit::Error),
    #[error("cannot prepare {what} at {path:?}: {source}")]
    Prepare { what: &'static str, path: PathBuf, source: std::io::Error },
    #[error("cannot hold {path:?} as it is: it is a symbolic link, and a link's name cannot be held")]
    HeldLink { path: PathBuf },
    #[error(
        "cannot keep changes to {path:?} aside: the project it lies in is not granted for writing as a whole"
    )]
    PartOfOverlay { path: PathBuf },
    #[error("{name} is a {what}, which would be a way out of the sandbox")]
    Stream { name: &'static str, what: &'static str },
    #[error("a command made protected paths {limit} times, so the session was ended")]
    Flood { limit: usize },
    #[error("the terminal cannot be used: {0}")]
    Terminal(Errno),
    #[error("waiting for the sandbox failed: {0}")]
    Wait(Errno),
}

impl RunError {
    /// What the user can do, as a command or a change that works.
    pub fn hint(&self) -> String {
        match self {
            Self::NoBoundary { missing } => missing.hint.clone(),
            Self::NoCredentials { name } => format!("take [secrets.{name}] out of the policy"),
            Self::Proxy(error) => format!(
                "set {} to http://HOST:PORT, or `upstream_proxy = \"none\"` under [network]",
                error.place
            ),
            Self::Secret(error) => error.hint(),
            Self::Gateway(_) => "try again, or add `--net none` to run without network".into(),
            Self::Listen { .. } => "choose another port, as in `--listen 127.0.0.1:0`".into(),
            Self::Publish { port, .. } => {
                format!(
                    "publish on another port, as in `publish = [\"{}:{port}\"]`",
                    port.saturating_add(1).max(1024)
                )
            }
            Self::Jail(error) => error.hint(),
            Self::Walk(error) => error.hint(),
            Self::Quarantine(error) => error.hint(),
            Self::Undo(error) => error.hint(),
            Self::Record(error) => {
                error.hint().unwrap_or_else(|| "make room on the disk that holds the record".into())
            }
            Self::Prepare { path, .. } => {
                format!("make sure that {path:?} can be written, and that the disk is not full")
            }
            Self::HeldLink { path } => {
                format!(
                    "replace the link by what it leads to, or leave the rule out: `without = [{path:?}]` under [filesystem]"
                )
            }
            Self::PartOfOverlay { .. } => "add `--write .`, or use `--workspace direct`".into(),
            Self::Stream { name, .. } => format!("redirect {name} to or from a file or a pipe"),
            Self::Flood { .. } => "run `redoma log` to see which; they were all moved to quarantine".into(),
            Self::Terminal(_) => {
                "run it with its streams redirected, as in `redoma run … </dev/null | cat`".into()
            }
            Self::Wait(_) => "run `redoma doctor --gc`, then try again".into(),
        }
    }

    /// The exit code of `redoma run`: 125 no boundary, 126 not executable, 127 not found.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Jail(JailError::Step(failure)) if failure.step == Step::Program => match failure.errno() {
                Errno::NOENT | Errno::NOTDIR => 127,
                _ => 126,
            },
            _ => 125,
        }
    }
}
