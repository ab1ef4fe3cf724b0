//! What a policy must know about the machine and the command line, handed in by the caller.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{AgentName, ByteSize, Cpus, NetworkDefault, Preset, Source, Tier, TimeSpan, Workspace};

/// Everything the world answers while a policy is resolved.
pub struct Surroundings<'a> {
    /// The user's home, as `$HOME` or the password file gives it.
    pub home: &'a Path,
    /// The project's canonical top folder.
    pub project: &'a Path,
    /// The canonical folder that relative paths typed on the command line mean.
    pub cwd: &'a Path,
    /// Canonical git folders outside the project that git needs in order to work in it.
    pub git_dirs: &'a [PathBuf],
    /// `${USER}`.
    pub user: &'a str,
    /// `${UID}`.
    pub uid: u32,
    /// The caller's environment, for `${XDG_CONFIG_HOME}` and the like.
    pub vars: &'a dyn Fn(&str) -> Option<String>,
    /// What lies on the disk.
    pub paths: &'a dyn PathFacts,
    /// Reads the file an `extends = "./base.toml"` names; the path is absolute. The caller bounds the size, decides
    /// about trust, and says in words why a file cannot be read. The layer it returns is ignored.
    pub load: &'a dyn Fn(&Path) -> Result<Source, String>,
}

/// Answers about paths. Asked while resolving, never while deciding.
pub trait PathFacts {
    /// The path with every link followed (realpath(3)), if it exists.
    fn canonicalize(&self, path: &Path) -> Option<PathBuf>;
    /// What stands there, without following a link in the last component (lstat(2)).
    fn kind(&self, path: &Path) -> Option<PathKind>;
}

/// What a directory entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// A socket, FIFO or device node.
    Other,
}

/// What was typed: the last layer. Relative paths mean [`Surroundings::cwd`].
#[derive(Clone, Debug, Default)]
pub struct CommandLine {
    /// `--profile`: the profile to start from, whatever the files extend.
    pub profile: Option<String>,
    /// `--agent`, or found by the command's name.
    pub agent: Option<AgentName>,
    /// `--net`.
    pub net: Option<NetworkDefault>,
    /// `--allow HOST[:PORT],…`, without the presets in it.
    pub allow: Vec<String>,
    /// What the presets among `--allow` came to.
    pub presets: Vec<Preset>,
    /// `--read`.
    pub read: Vec<String>,
    /// `--write`.
    pub write: Vec<String>,
    /// `--deny`: a path or a glob.
    pub deny: Vec<String>,
    /// `--env NAME` passes, `--env NAME=VALUE` sets.
    pub env: Vec<(String, Option<String>)>,
    /// `--workspace`.
    pub workspace: Option<Workspace>,
    /// `--undo`, `--no-undo`.
    pub undo: Option<bool>,
    /// `--memory`.
    pub memory: Option<ByteSize>,
    /// `--cpus`.
    pub cpus: Option<Cpus>,
    /// `--pids`.
    pub pids: Option<u32>,
    /// `--time`.
    pub time: Option<TimeSpan>,
    /// `--tier`.
    pub tier: Option<Tier>,
}
