//! `peapod.json`, as it is: a name, and of each service its image, network, ports, mounts, variables and folder.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use redoma_policy::NetworkDefault;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::Text;
use crate::driver::ImageName;
use crate::services::error::ServicesError;
use crate::services::model::{Beginning, Group, Service};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    services: Unique<Entry>,
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
    env: Unique<String>,
    workdir: Option<String>,
}

/// What is said of the network.
#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Network {
    None,
    /// Out to everywhere but private addresses.
    #[default]
    Egress,
}

/// An object whose names are said once: of two, which one counts would depend on who reads it.
struct Unique<T>(BTreeMap<String, T>);

pub(super) fn read(text: &Text<'_>) -> Result<Group, ServicesError> {
    let file: File = serde_json::from_str(text.text).map_err(|error| {
        let line = Some(error.line()).filter(|line| *line > 0);
        let said = error.to_string();
        let what = said.rsplit_once(" at line ").map_or(said.as_str(), |(what, _)| what);
        text.wrong(line, what, hint(what))
    })?;
    let mut services = BTreeMap::new();
    for (name, entry) in file.services.0 {
        services.insert(text.name(&name, None)?, entry.read(text)?);
    }
    Ok(Group { name: text.group_name(file.name.as_deref())?, services, notes: Vec::new() })
}

fn hint(what: &str) -> &'static str {
    match what.starts_with("unknown field") {
        true => "take it out, or describe the group in redoma-services.toml, which knows more",
        false => "mend that line",
    }
}

impl Entry {
    fn read(self, text: &Text<'_>) -> Result<Service, ServicesError> {
        let mut service = Service::new(Beginning::Image(ImageName::from(self.image)));
        service.net = Some(match self.network {
            Network::None => NetworkDefault::None,
            Network::Egress => NetworkDefault::Allow,
        });
        service.ports = self.ports.iter().map(|port| text.port(port, None)).collect::<Result<_, _>>()?;
        service.mounts = self.mounts.iter().map(|mount| text.bind(mount, None)).collect::<Result<_, _>>()?;
        service.env = self.env.0;
        service.workdir = self.workdir.map(Into::into);
        Ok(service)
    }
}

impl<T> Default for Unique<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Unique<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Names<T> {
            type Value = Unique<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Unique<T>, A::Error> {
                let mut all = BTreeMap::new();
                while let Some((name, value)) = map.next_entry::<String, T>()? {
                    if all.contains_key(&name) {
                        return Err(A::Error::custom(format_args!("{name:?} is said twice")));
                    }
                    all.insert(name, value);
                }
                Ok(Unique(all))
            }
        }

        deserializer.deserialize_map(Names(PhantomData))
    }
}
