//! `peapod.json`, as users of Peapod have it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use redoma_policy::NetworkDefault;
use serde::Deserialize;

use super::file::{Parsed, Service, Wrong, mount, port};
use crate::driver::Rules;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    services: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    image: String,
    #[serde(default)]
    network: Network,
    #[serde(default)]
    ports: Vec<String>,
    #[serde(default)]
    mounts: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    workdir: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Network {
    None,
    #[default]
    Egress,
}

pub(super) fn parse(text: &str, folder: &Path) -> Result<Parsed, Wrong> {
    let file: File = serde_json::from_str(text).map_err(|error| {
        Wrong::new(
            error.to_string(),
            r#"{"services": {"web": {"image": "python:3", "ports": ["8000:8000"]}}}"#,
        )
    })?;
    let services = file.services.into_iter().map(|(name, entry)| service(name, entry, folder));
    Ok(Parsed { name: file.name, services: services.collect::<Result<_, _>>()? })
}

fn service(name: String, entry: Entry, folder: &Path) -> Result<Service, Wrong> {
    let net = match entry.network {
        Network::None => NetworkDefault::None,
        // To wherever it likes, but not into the host's own networks.
        Network::Egress => NetworkDefault::Allow,
    };
    Ok(Service {
        name,
        image: Some(entry.image.into()),
        rules: Rules { net: Some(net), ..Rules::default() },
        ports: entry.ports.iter().map(|text| port(text)).collect::<Result<_, _>>()?,
        mounts: entry.mounts.iter().map(|text| mount(text, folder)).collect::<Result<_, _>>()?,
        env: entry.env,
        workdir: entry.workdir,
        ..Service::default()
    })
}
