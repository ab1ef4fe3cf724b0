//! Credentials that stay outside.

use serde::Serialize;

use crate::{HostPattern, Origin};

/// One `[secrets.NAME]`: a credential that stays outside and is put in on the way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecretRule {
    /// The variable that holds a placeholder inside.
    pub name: String,
    /// Where the real one is.
    pub source: SecretSource,
    /// The only hosts it is sent to.
    pub hosts: Vec<HostPattern>,
    /// The header it replaces the placeholder in; `None` is any header.
    pub header: Option<String>,
    /// Where it was written.
    pub origin: Origin,
}

/// Where a real credential is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretSource {
    /// A variable of the caller's.
    Env(String),
    /// A file's content.
    File(std::path::PathBuf),
    /// An entry of the desktop keyring.
    Keyring(String),
    /// A command's output.
    Command(Vec<String>),
}
