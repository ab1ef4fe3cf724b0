use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use redoma_policy::{ByteSize, Cpus, NetworkDefault, Publish, TimeSpan};
use serde::{Deserialize, Serialize};

use super::id::{Name, Owner, SandboxId};

/// What a sandbox is to be: everything that a driver needs to make it, and a fork of it to be made again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Its id.
    pub id: SandboxId,
    /// Its name, unique among all sandboxes.
    pub name: Name,
    /// Whose it is.
    pub owner: Owner,
    /// What its file system begins as.
    pub image: ImageName,
    /// The template it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Name>,
    /// What it may reach.
    pub rules: Rules,
    /// Ports on this machine's loopback that lead to ports inside.
    #[serde(default)]
    pub publish: Vec<Publish>,
    /// Folders and files of the host that are seen inside.
    #[serde(default)]
    pub mounts: Vec<Mount>,
    /// Variables of every command, after those of the image.
    #[serde(default)]
    pub env: Vec<(String, String)>,
    /// Where commands run; none is where the image says.
    #[serde(default)]
    pub workdir: Option<PathBuf>,
    /// Who commands are.
    #[serde(default)]
    pub user: User,
    /// How much it may use.
    #[serde(default)]
    pub amounts: Amounts,
    /// What others sort it by: the group, service or branch it belongs to.
    #[serde(default)]
    pub labels: BTreeMap<Label, String>,
    /// Other sandboxes that it may reach on all their ports: what each is called inside, and the name of the sandbox.
    #[serde(default)]
    pub peers: BTreeMap<Name, Name>,
    /// Seconds since 1970.
    pub created: i64,
}

/// What makes sandboxes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DriverName {
    /// This machine's kernel.
    #[default]
    Native,
    /// Docker or Podman.
    Oci,
    /// Nothing: calls are recorded, for tests.
    Mock,
}

/// What a file system begins as: `host`, a folder, or the name of an image.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ImageName {
    /// This machine's system folders, read-only.
    Host,
    /// A folder of the host, below which nothing is changed.
    Folder(PathBuf),
    /// An image, as `docker.io/library/debian:12`, `debian` or `name@sha256:…`.
    Reference(String),
}

/// What a sandbox may reach, in the words of the command line; resolved anew at each start, under the ceiling of then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    /// Where no rule decides. None is `none` where nothing is allowed, else `deny`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub net: Option<NetworkDefault>,
    /// Hosts, as after `--allow`.
    #[serde(default)]
    pub allow: Vec<String>,
    /// A policy that the user named: its text as it was then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
}

/// A folder or file of the host that is seen inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mount {
    /// On the host; canonical.
    pub from: PathBuf,
    /// Inside; absolute.
    pub to: PathBuf,
    /// Whether it can be written.
    pub writable: bool,
    /// Whether changes are kept aside, in the sandbox, where it can be written.
    #[serde(default)]
    pub overlay: bool,
}

/// Who commands are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum User {
    /// User 0 inside, who is nobody but the caller outside.
    #[default]
    Root,
    /// The caller, under the same number.
    Me,
}

/// How much a sandbox may use. None is no limit of ours.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Amounts {
    /// Processor time per time.
    pub cpus: Option<Cpus>,
    /// Memory, swap included.
    pub memory: Option<ByteSize>,
    /// Processes and threads alive at once.
    pub pids: Option<u32>,
    /// Bytes changed on its file system.
    pub disk: Option<ByteSize>,
    /// From its creation to its end.
    pub time: Option<TimeSpan>,
}

/// What others sort sandboxes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// The group of services.
    Group,
    /// The service in its group.
    Service,
    /// The repository of a preview.
    Repository,
    /// The branch of a preview.
    Branch,
    /// The file of its group: two groups of one name in two folders are two.
    File,
    /// A hash of what its group's file says of it: also of what the rest of the spec does not hold, such as the command.
    Definition,
}

// === text forms ===

impl fmt::Display for DriverName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Native => "native",
            Self::Oci => "oci",
            Self::Mock => "mock",
        })
    }
}

impl From<String> for ImageName {
    fn from(text: String) -> Self {
        match text.as_str() {
            "host" => Self::Host,
            path if path.starts_with('/') => Self::Folder(path.into()),
            _ => Self::Reference(text),
        }
    }
}

impl FromStr for ImageName {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.to_owned().into())
    }
}

impl From<ImageName> for String {
    fn from(image: ImageName) -> Self {
        image.to_string()
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Folder(path) => path.display().fmt(f),
            Self::Reference(name) => f.write_str(name),
        }
    }
}
