//! Paths in JSON, byte for byte: a name need not be UTF-8, and a session must not fail over one. To be named in
//! `#[serde(with = …)]`.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_os_str().serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    OsString::deserialize(deserializer).map(PathBuf::from)
}

/// Several.
pub(crate) mod list {
    use super::{Deserialize, Deserializer, OsString, PathBuf, Serializer};

    pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| path.as_os_str()))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
        let paths = Vec::<OsString>::deserialize(deserializer)?;
        Ok(paths.into_iter().map(PathBuf::from).collect())
    }
}

/// What is known by path, as pairs.
pub(crate) mod map {
    use super::{Deserialize, Deserializer, HashMap, OsString, PathBuf, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer, V: Serialize>(
        map: &HashMap<PathBuf, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map.iter().map(|(path, value)| (path.as_os_str(), value)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, V: Deserialize<'de>>(
        deserializer: D,
    ) -> Result<HashMap<PathBuf, V>, D::Error> {
        let pairs = Vec::<(OsString, V)>::deserialize(deserializer)?;
        Ok(pairs.into_iter().map(|(path, value)| (path.into(), value)).collect())
    }
}
