//! What an image says about running it.
//!
//! <https://github.com/opencontainers/image-spec/blob/main/config.md>. Nothing of it is obeyed here: it is hostile input for
//! whoever starts the image.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// How an image wants to be started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The beginning of the command.
    pub entrypoint: Vec<String>,
    /// The rest of the command, or all of it without an entrypoint.
    pub cmd: Vec<String>,
    /// `NAME=VALUE`, in order.
    pub env: Vec<String>,
    /// Where the command starts; empty for `/`.
    pub workdir: String,
    /// `user`, `uid`, `user:group` or `uid:gid`; empty for root.
    pub user: String,
    /// `PORT/PROTOCOL`.
    pub exposed_ports: BTreeSet<String>,
    /// Folders whose content is not part of the image.
    pub volumes: BTreeSet<String>,
    /// The signal that asks the command to end, such as `SIGTERM` or `15`.
    pub stop_signal: Option<String>,
    /// How to tell whether the command does its work.
    pub healthcheck: Option<Healthcheck>,
    /// What the image's author wrote on it.
    pub labels: BTreeMap<String, String>,
}

/// A test that is run now and then. Times are nanoseconds; 0 is for the runtime to choose.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Healthcheck {
    /// `["NONE"]`, `["CMD", …]` or `["CMD-SHELL", TEXT]`.
    pub test: Vec<String>,
    /// Between two tests.
    pub interval: u64,
    /// How long one may take.
    pub timeout: u64,
    /// How long failures do not count.
    pub start_period: u64,
    /// Between two tests meanwhile.
    pub start_interval: u64,
    /// Failures in a row that mean unhealthy.
    pub retries: u64,
}

/// The configuration blob, as far as it is used here.
#[derive(Debug, Deserialize)]
pub(crate) struct ConfigFile {
    #[serde(default)]
    pub(crate) architecture: String,
    #[serde(default)]
    pub(crate) os: String,
    #[serde(default)]
    pub(crate) created: Option<String>,
    #[serde(default)]
    config: Option<Wire>,
    pub(crate) rootfs: RootFs,
}

/// The layers' contents, bottom first.
#[derive(Debug, Deserialize)]
pub(crate) struct RootFs {
    pub(crate) diff_ids: Vec<crate::DiffId>,
}

/// Docker's names. Its programs write `null` for what is empty.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Wire {
    entrypoint: Option<Words>,
    cmd: Option<Words>,
    env: Option<Vec<String>>,
    working_dir: Option<String>,
    user: Option<String>,
    exposed_ports: Option<BTreeMap<String, serde_json::Value>>,
    volumes: Option<BTreeMap<String, serde_json::Value>>,
    stop_signal: Option<String>,
    healthcheck: Option<WireHealth>,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct WireHealth {
    test: Option<Vec<String>>,
    interval: u64,
    timeout: u64,
    start_period: u64,
    start_interval: u64,
    retries: u64,
}

/// Old images have one string where a list belongs.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Words {
    Many(Vec<String>),
    One(String),
}

// === impl ConfigFile ===

impl ConfigFile {
    /// What is kept of it.
    pub(crate) fn config(self) -> Config {
        self.config.unwrap_or_default().into()
    }
}

impl From<Wire> for Config {
    fn from(wire: Wire) -> Self {
        let keys = |map: Option<BTreeMap<String, _>>| map.unwrap_or_default().into_keys().collect();
        Self {
            entrypoint: wire.entrypoint.map(Words::list).unwrap_or_default(),
            cmd: wire.cmd.map(Words::list).unwrap_or_default(),
            env: wire.env.unwrap_or_default(),
            workdir: wire.working_dir.unwrap_or_default(),
            user: wire.user.unwrap_or_default(),
            exposed_ports: keys(wire.exposed_ports),
            volumes: keys(wire.volumes),
            stop_signal: wire.stop_signal.filter(|signal| !signal.is_empty()),
            healthcheck: wire.healthcheck.map(Into::into),
            labels: wire.labels.unwrap_or_default(),
        }
    }
}

impl From<WireHealth> for Healthcheck {
    fn from(wire: WireHealth) -> Self {
        Self {
            test: wire.test.unwrap_or_default(),
            interval: wire.interval,
            timeout: wire.timeout,
            start_period: wire.start_period,
            start_interval: wire.start_interval,
            retries: wire.retries,
        }
    }
}

impl Words {
    fn list(self) -> Vec<String> {
        match self {
            Self::Many(words) => words,
            Self::One(word) => vec![word],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Config {
        serde_json::from_str::<ConfigFile>(text).unwrap().config()
    }

    #[test]
    fn what_docker_writes_is_read() {
        let config = read(
            r#"{"architecture":"amd64","os":"linux","config":{"Entrypoint":["docker-entrypoint.sh"],"Cmd":["postgres"],
            "Env":["PATH=/bin","PGDATA=/data"],"WorkingDir":"/","User":"999:999","ExposedPorts":{"5432/tcp":{}},
            "Volumes":{"/data":{}},"StopSignal":"SIGINT","Healthcheck":{"Test":["CMD","x"],"Interval":5000000000},
            "Labels":{"a":"b"},"OnBuild":null},"rootfs":{"type":"layers","diff_ids":[]}}"#,
        );
        assert_eq!(
            (config.entrypoint, config.cmd),
            (vec!["docker-entrypoint.sh".into()], vec!["postgres".into()])
        );
        assert_eq!(config.env, ["PATH=/bin", "PGDATA=/data"]);
        assert_eq!((config.workdir, config.user), ("/".into(), "999:999".into()));
        assert!(config.exposed_ports.contains("5432/tcp") && config.volumes.contains("/data"));
        assert_eq!(config.stop_signal.as_deref(), Some("SIGINT"));
        assert_eq!(config.healthcheck.unwrap().interval, 5_000_000_000);
        assert_eq!(config.labels["a"], "b");
    }

    #[test]
    fn null_and_nothing_mean_the_same() {
        let empty = r#"{"config":{"Entrypoint":null,"Cmd":null,"Env":null,"Volumes":null,"StopSignal":"","Labels":null},
            "rootfs":{"diff_ids":[]}}"#;
        assert_eq!(read(empty), Config::default());
        assert_eq!(read(r#"{"rootfs":{"diff_ids":[]}}"#), Config::default());
        assert_eq!(read(r#"{"config":{"Cmd":"sh"},"rootfs":{"diff_ids":[]}}"#).cmd, ["sh"]);
    }

    #[test]
    fn a_layer_that_names_a_file_is_refused() {
        assert!(serde_json::from_str::<ConfigFile>(r#"{"rootfs":{"diff_ids":["sha256:../x"]}}"#).is_err());
    }
}
