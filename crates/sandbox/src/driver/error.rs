use std::io;
use std::path::PathBuf;

use super::id::Name;
use super::spec::DriverName;
use crate::error::RunError;
use crate::settings::SettingsError;
use crate::shell;

/// Why a driver did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum DriverError {
    #[error("there is no sandbox {0:?}")]
    NoSandbox(String),
    #[error("{0:?} is the beginning of more than one sandbox's id")]
    Ambiguous(String),
    #[error("there is no snapshot {0:?}")]
    NoSnapshot(String),
    #[error("the name {0} is taken")]
    NameTaken(Name),
    #[error("nothing runs in sandbox {0}")]
    NotRunning(String),
    #[error("{path:?} is in use: {by}")]
    InUse { path: PathBuf, by: String },
    #[error("the {driver} driver cannot {what}")]
    Unsupported { driver: DriverName, what: String, hint: String },
    /// Nothing was weakened: it was not made.
    #[error("the sandbox cannot be started: {0}")]
    Start(#[source] RunError),
    #[error("the sandbox ended while it was being used{}", .0.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    Gone(Option<String>),
    /// By a sandbox's keeper, or by an engine.
    #[error("{message}")]
    Told { message: String, hint: String, code: i32 },
    #[error("{0}")]
    Settings(#[from] SettingsError),
    #[error("cannot {what} {path:?}: {source}")]
    Store { what: &'static str, path: PathBuf, source: io::Error },
    #[error("{what} of {path:?} makes no sense: {why}")]
    Unreadable { what: &'static str, path: PathBuf, why: String },
    #[error("cannot copy: {why}")]
    Files { why: String, hint: String },
    #[error("the image cannot be used: {why}")]
    Image { why: String, hint: String },
    #[error("the engine says: {why}")]
    Engine { why: String, hint: String },
    #[error("{what} makes no sense: {why}")]
    Invalid { what: String, why: String, hint: String },
}

impl DriverError {
    /// What the user can do, as one command or change that works.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NoSandbox(_) | Self::Ambiguous(_) => "redoma sandbox ls".into(),
            Self::NoSnapshot(_) => "redoma snapshot ls".into(),
            Self::NameTaken(name) => format!("choose another name, or remove it: `redoma sandbox rm {name}`"),
            Self::NotRunning(id) => format!("redoma sandbox exec {id} -- true"),
            Self::InUse { .. } => "redoma sandbox ls".into(),
            Self::Unsupported { hint, .. }
            | Self::Files { hint, .. }
            | Self::Image { hint, .. }
            | Self::Engine { hint, .. }
            | Self::Told { hint, .. }
            | Self::Invalid { hint, .. } => hint.clone(),
            Self::Start(error) => error.hint(),
            Self::Gone(_) => "redoma log".into(),
            Self::Settings(error) => error.hint().unwrap_or_else(|| "redoma policy check".into()),
            Self::Store { path, .. } => format!("ls -ld {}", shell::word(path)),
            Self::Unreadable { .. } => "redoma doctor --gc".into(),
        }
    }

    /// What `redoma sandbox exec` exits with.
    #[must_use]
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Start(error) => error.exit_code(),
            Self::Told { code, .. } => *code,
            _ => 125,
        }
    }
}
