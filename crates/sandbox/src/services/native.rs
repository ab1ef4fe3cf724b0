//! `redoma-services.toml`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use redoma_policy::{NetworkDefault, TimeSpan};
use serde::Deserialize;

use super::file::{Health, Parsed, Service, Wrong, mount, port};
use crate::driver::{Amounts, Restart, Rules, User};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    service: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Entry {
    image: Option<String>,
    template: Option<String>,
    entrypoint: Option<Vec<String>>,
    command: Option<Vec<String>>,
    env: BTreeMap<String, String>,
    workdir: Option<PathBuf>,
    user: User,
    net: Option<NetworkDefault>,
    allow: Vec<String>,
    ports: Vec<String>,
    mounts: Vec<String>,
    depends_on: Vec<String>,
    health: Option<Check>,
    restart: Restart,
    limits: Amounts,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Check {
    command: Option<Vec<String>>,
    interval: Option<TimeSpan>,
    timeout: Option<TimeSpan>,
}

pub(super) fn parse(text: &str, folder: &Path) -> Result<Parsed, Wrong> {
    let file: File = toml::from_str(text).map_err(|error| {
        Wrong::new(error.to_string().trim_end().to_owned(), "[service.web]\nimage = \"python:3\"")
    })?;
    let services = file.service.into_iter().map(|(name, entry)| service(name, entry, folder));
    Ok(Parsed { name: file.name, services: services.collect::<Result<_, _>>()? })
}

fn service(name: String, entry: Entry, folder: &Path) -> Result<Service, Wrong> {
    let health = entry.health.map_or_else(Health::default, |check| {
        let usual = Health::default();
        Health {
            command: check.command,
            interval: check.interval.map_or(usual.interval, |span| span.0),
            timeout: check.timeout.map_or(usual.timeout, |span| span.0),
        }
    });
    Ok(Service {
        name,
        image: entry.image.map(Into::into),
        template: entry.template,
        entrypoint: entry.entrypoint,
        command: entry.command,
        env: entry.env,
        workdir: entry.workdir,
        user: entry.user,
        rules: Rules { net: entry.net, allow: entry.allow, policy: None },
        ports: entry.ports.iter().map(|text| port(text)).collect::<Result<_, _>>()?,
        mounts: entry.mounts.iter().map(|text| mount(text, folder)).collect::<Result<_, _>>()?,
        depends_on: entry.depends_on,
        health,
        restart: entry.restart,
        amounts: entry.limits,
    })
}
