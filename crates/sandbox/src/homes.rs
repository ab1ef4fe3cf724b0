//! Where Redoma keeps its own things: configuration, state and sockets.
//!
//! Follows the XDG Base Directory Specification: `$XDG_CONFIG_HOME/redoma`, `$XDG_STATE_HOME/redoma` and
//! `$XDG_RUNTIME_DIR/redoma`. `REDOMA_HOME` moves all three below one folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::shell;

/// The three folders that hold everything Redoma keeps.
///
/// Making this value reads nothing from the disk and makes no folder: each part makes what it needs when it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Homes {
    home: PathBuf,
    /// What `REDOMA_HOME` says.
    root: Option<PathBuf>,
    config: PathBuf,
    state: PathBuf,
    run: PathBuf,
}

/// Why the folders could not be told.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum HomesError {
    /// `HOME` is unset, empty or relative, so that no user folder is known.
    #[error("the variable HOME names no absolute folder")]
    NoHome,
    /// `REDOMA_HOME` is set to something that is not an absolute path.
    #[error("the variable REDOMA_HOME is not an absolute path: {}", .0.display())]
    RelativeRedomaHome(PathBuf),
}

impl HomesError {
    /// What to do about it, as one command line.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NoHome => "export HOME=/path/to/your/home".to_owned(),
            Self::RelativeRedomaHome(path) => format!("export REDOMA_HOME=\"$PWD\"/{}", shell::word(path)),
        }
    }
}

// === impl Homes ===

impl Homes {
    /// Derives the folders from variables, asked for through `var` so that callers decide which environment counts.
    ///
    /// A relative XDG variable is ignored, as the specification demands. Without `XDG_RUNTIME_DIR` sockets go below
    /// the state folder.
    pub fn from_vars(var: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, HomesError> {
        let absolute = |name: &str| var(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute("HOME").ok_or(HomesError::NoHome)?;
        if let Some(root) = var("REDOMA_HOME").filter(|value| !value.is_empty()) {
            return Self::below(home, PathBuf::from(root));
        }
        let config = absolute("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")).join("redoma");
        let state = absolute("XDG_STATE_HOME").unwrap_or_else(|| home.join(".local/state")).join("redoma");
        let run = absolute("XDG_RUNTIME_DIR").map_or_else(|| state.join("run"), |dir| dir.join("redoma"));
        Ok(Self { home, root: None, config, state, run })
    }

    /// The same, from this process's environment.
    pub fn from_env() -> Result<Self, HomesError> {
        Self::from_vars(&|name| std::env::var_os(name))
    }

    fn below(home: PathBuf, root: PathBuf) -> Result<Self, HomesError> {
        if !root.is_absolute() {
            return Err(HomesError::RelativeRedomaHome(root));
        }
        let (config, state, run) = (root.join("config"), root.join("state"), root.join("run"));
        Ok(Self { home, root: Some(root), config, state, run })
    }

    /// The user's own home folder, as `HOME` spells it.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The folder that holds the three others, if `REDOMA_HOME` names one.
    #[must_use]
    pub fn root(&self) -> Option<&Path> {
        self.root.as_deref()
    }

    /// The folder of configuration: the user's policy and the keys.
    #[must_use]
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// The folder of everything that must outlive a boot: sessions, the record, undo, trust.
    #[must_use]
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The folder of sockets.
    #[must_use]
    pub fn run(&self) -> &Path {
        &self.run
    }

    /// The user's policy file; it need not exist.
    #[must_use]
    pub fn user_policy(&self) -> PathBuf {
        self.config.join("policy.toml")
    }

    /// The folder of signing keys.
    #[must_use]
    pub fn keys(&self) -> PathBuf {
        self.config.join("keys")
    }

    /// The folder with one folder per session.
    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.state.join("sessions")
    }

    /// The folder of what sessions have still to do when they end.
    pub(crate) fn unfinished(&self) -> PathBuf {
        self.state.join("unfinished")
    }

    /// The file that lists the policy files whose content the user trusts.
    #[must_use]
    pub fn trust(&self) -> PathBuf {
        self.state.join("trust.json")
    }

    /// The folder of things that can be made again.
    #[must_use]
    pub fn cache(&self) -> PathBuf {
        self.state.join("cache")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn homes(vars: &[(&str, &str)]) -> Result<Homes, HomesError> {
        Homes::from_vars(&|name| vars.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into()))
    }

    #[test]
    fn without_xdg_variables_the_defaults_of_the_specification_hold() {
        let homes = homes(&[("HOME", "/home/ana")]).unwrap();
        assert_eq!(homes.user_policy(), Path::new("/home/ana/.config/redoma/policy.toml"));
        assert_eq!(homes.trust(), Path::new("/home/ana/.local/state/redoma/trust.json"));
        assert_eq!(homes.run(), Path::new("/home/ana/.local/state/redoma/run"));
    }

    #[test]
    fn xdg_variables_move_each_folder_and_relative_ones_are_ignored() {
        let homes = homes(&[
            ("HOME", "/home/ana"),
            ("XDG_CONFIG_HOME", "/c"),
            ("XDG_STATE_HOME", "relative"),
            ("XDG_RUNTIME_DIR", "/run/user/7"),
        ])
        .unwrap();
        assert_eq!(homes.config(), Path::new("/c/redoma"));
        assert_eq!(homes.state(), Path::new("/home/ana/.local/state/redoma"));
        assert_eq!(homes.run(), Path::new("/run/user/7/redoma"));
    }

    #[test]
    fn redoma_home_moves_all_three_and_must_be_absolute() {
        let moved = homes(&[("HOME", "/h"), ("REDOMA_HOME", "/r"), ("XDG_CONFIG_HOME", "/c")]).unwrap();
        assert_eq!((moved.config(), moved.state()), (Path::new("/r/config"), Path::new("/r/state")));
        assert_eq!(moved.run(), Path::new("/r/run"));
        assert_eq!(
            homes(&[("HOME", "/h"), ("REDOMA_HOME", "r")]),
            Err(HomesError::RelativeRedomaHome("r".into()))
        );
        assert_eq!(homes(&[("REDOMA_HOME", "/r")]), Err(HomesError::NoHome));
    }
}
