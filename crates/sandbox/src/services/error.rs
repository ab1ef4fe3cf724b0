use std::path::PathBuf;

use crate::driver::{DriverError, Name};
use crate::presets::PresetError;
use crate::shell;
use crate::templates::TemplateError;
use crate::trust::TrustError;

/// Why a group of services is not as its file says.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ServicesError {
    #[error("there is no redoma-services.toml, peapod.json or compose.yaml in {}", folder.display())]
    NoFile { folder: PathBuf },
    #[error("cannot read {}: {why}", path.display())]
    Read { path: PathBuf, why: String },
    #[error("{}{}: {what}", path.display(), line.map(|line| format!(":{line}")).unwrap_or_default())]
    File { path: PathBuf, line: Option<usize>, what: String, hint: String },
    #[error("services wait for each other: {}", cycle.iter().map(Name::as_str).collect::<Vec<_>>().join(" → "))]
    Cycle { cycle: Vec<Name> },
    /// Whoever wrote the file could be a sandbox.
    #[error("{} wants to see what is outside its folder: {}", path.display(), places.join(", "))]
    Untrusted { path: PathBuf, places: Vec<String> },
    #[error("service {service} cannot see {from}: {why}")]
    Mount { service: Name, from: String, why: String },
    #[error("service {service} is there, but not as the file says: {}", what.join(", "))]
    Differs { service: Name, what: Vec<String> },
    #[error("the sandbox {name} is there, and not of this group {group}")]
    Foreign { name: Name, group: Name },
    #[error("service {service} {why}{}", told(log))]
    Failed { service: Name, sandbox: Name, why: String, log: Vec<String> },
    #[error("there is no group {0}")]
    NoGroup(String),
    #[error("there is no service {service} in group {group}")]
    NoService { service: String, group: String },
    #[error("{what} makes no sense as a name: {why}")]
    Name { what: String, why: String },
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error(transparent)]
    Preset(#[from] PresetError),
    #[error(transparent)]
    Trust(#[from] TrustError),
    #[error(transparent)]
    Driver(#[from] DriverError),
    #[error("no random bytes: {0}")]
    Random(#[from] redoma_audit::Error),
}

/// The end of a log, below the message.
fn told(log: &[String]) -> String {
    log.iter().map(|line| format!("\n{line}")).collect()
}

impl ServicesError {
    /// What the user can do, as one command or change that works.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NoFile { .. } => "redoma up --file FILE".into(),
            Self::Read { path, .. } => format!("ls -l {}", shell::word(path)),
            Self::File { hint, .. } => hint.clone(),
            Self::Cycle { .. } => "take one name out of `depends_on`".into(),
            Self::Untrusted { path, .. } => format!("redoma policy trust {}", shell::word(path)),
            Self::Mount { from, .. } => format!("ls -ld {}", shell::word(from)),
            Self::Differs { .. } => "redoma up --recreate".into(),
            Self::Foreign { name, .. } => format!("redoma sandbox rm {name}"),
            Self::Failed { sandbox, .. } => format!("redoma sandbox logs {sandbox}"),
            Self::NoGroup(_) | Self::NoService { .. } => "redoma ps --all".into(),
            Self::Name { .. } => "choose another name".into(),
            Self::Template(error) => error.hint(),
            Self::Preset(error) => error.hint(),
            Self::Trust(error) => error.hint(),
            Self::Driver(error) => error.hint(),
            Self::Random(_) => "redoma doctor".into(),
        }
    }
}
