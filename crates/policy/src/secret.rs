//! Credentials that stay outside.

use std::ffi::OsStr;
use std::fmt;

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
    /// Where in a request it is put.
    pub place: SecretPlace,
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

/// Where in a request the real credential is put. Nowhere else is the placeholder replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SecretPlace {
    /// In the value of any header.
    Headers,
    /// In the value of this header; its name is in lower case.
    Header(String),
    /// As the value of this key of the query.
    Query(String),
    /// As the password of basic authentication (RFC 7617), for this user; `None` is for any.
    Basic(Option<String>),
    /// As the key that a request is signed with (AWS Signature Version 4): the signature is made again, for the service
    /// and region that the request names.
    Aws {
        /// The caller's variable that holds the key's id.
        access_key_id: String,
        /// The caller's variable that holds the session's token, if the credential is a temporary one.
        session_token: String,
    },
}

// === impl SecretRule ===

impl SecretRule {
    /// Whether this variable of the caller's holds the real one, or what belongs to it, or would stand in the
    /// placeholder's place. Commands do not get it.
    #[must_use]
    pub fn is_in(&self, variable: &OsStr) -> bool {
        let source = matches!(&self.source, SecretSource::Env(name) if variable == name.as_str());
        let aws = match &self.place {
            SecretPlace::Aws { access_key_id, session_token } => {
                variable == access_key_id.as_str() || variable == session_token.as_str()
            }
            _ => false,
        };
        source || aws || variable == self.name.as_str()
    }
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "the variable {name}"),
            Self::File(path) => write!(f, "the file {}", path.display()),
            Self::Keyring(entry) => write!(f, "the keyring's entry {entry}"),
            Self::Command(words) => write!(f, "the command {}", words.join(" ")),
        }
    }
}

impl fmt::Display for SecretPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Headers => f.write_str("any header"),
            Self::Header(name) => write!(f, "the header {name}"),
            Self::Query(key) => write!(f, "the query's {key}"),
            Self::Basic(None) => f.write_str("basic authentication"),
            Self::Basic(Some(user)) => write!(f, "basic authentication as {user}"),
            Self::Aws { access_key_id, .. } => write!(f, "AWS signatures of the key in {access_key_id}"),
        }
    }
}
