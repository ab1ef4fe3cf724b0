//! Why a preset came to nothing.

use std::path::PathBuf;

use crate::shell;

/// Why a preset came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum PresetError {
    /// The tool is not installed, or only in the project.
    #[error(
        "--allow {preset} asks {program} where packages come from, and there is no {program} outside the project"
    )]
    NoProgram {
        /// The preset.
        preset: String,
        /// The program.
        program: String,
    },
    /// The tool could not be started or did not do what was asked.
    #[error("cannot ask {} where packages come from: {why}", program.display())]
    Failed {
        /// The program.
        program: PathBuf,
        /// What happened.
        why: String,
    },
    /// A configuration file cannot be read or makes no sense.
    #[error("cannot read {}: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What happened.
        why: String,
    },
    /// The configuration lies where sessions write.
    #[error("--allow {preset}: {} leads into the project, where a session could have changed it", path.display())]
    InProject {
        /// The preset.
        preset: String,
        /// The file.
        path: PathBuf,
    },
    /// Nothing says where packages come from.
    #[error("--allow {preset}: nothing on this machine says where its packages come from")]
    NoHosts {
        /// The preset.
        preset: String,
    },
}

// === impl PresetError ===

impl PresetError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Unreadable { path, .. } => format!("ls -l {}", shell::word(path)),
            Self::InProject { path, .. } => format!("readlink -f {}", shell::word(path)),
            Self::Failed { program, .. } => format!("{} --version", shell::word(program)),
            Self::NoProgram { .. } | Self::NoHosts { .. } => {
                "name the host instead: --allow packages.example.com".to_owned()
            }
        }
    }
}
