//! Hosts by the name of what needs them: `--allow npm`, `--allow git`.
//!
//! Git services are a list of ours. Where packages come from is asked of the tool that is installed, which needs the
//! disk and other programs, so the caller does it and hands in what it found.

use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::{Host, HostPattern, Reach};

/// What a preset came to on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preset {
    /// Its name, as it was typed.
    pub name: String,
    /// The hosts.
    pub endpoints: Vec<Endpoint>,
    /// Variables that tell the tool inside what its configuration outside says, since that is hidden there.
    pub variables: Vec<(String, String)>,
    /// What the user should know beside the hosts.
    pub notes: Vec<String>,
}

/// One host of a preset.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoint {
    /// Which.
    pub host: HostPattern,
    /// Its ports.
    pub ports: Vec<NonZeroU16>,
    /// Where it was found, or what it is for.
    #[serde(rename = "use")]
    pub from: String,
    /// Whether somebody configured it, so that it may well lie in a private network.
    #[serde(skip)]
    pub private: bool,
}

/// A service of `data/hosts.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Service {
    hosts: Vec<Endpoint>,
}

/// All git services.
const GIT: &str = "git";

static SERVICES: LazyLock<BTreeMap<String, Service>> = LazyLock::new(|| {
    toml::from_str(include_str!("../data/hosts.toml")).expect("the embedded table is tested")
});

/// The hosts of a git service by its name, or of all by `git`.
#[must_use]
pub fn git_service(name: &str) -> Option<Preset> {
    let meant = |(own, _): &(&String, &Service)| name == GIT || *own == name;
    let hosts: Vec<_> =
        SERVICES.iter().filter(meant).flat_map(|(_, service)| service.hosts.iter().cloned()).collect();
    let preset = || Preset { name: name.to_owned(), endpoints: hosts.clone(), ..Preset::default() };
    (!hosts.is_empty()).then(preset)
}

/// The names that [`git_service`] knows.
pub fn git_services() -> impl Iterator<Item = &'static str> {
    std::iter::once(GIT).chain(SERVICES.keys().map(String::as_str))
}

// === impl Endpoint ===

impl Endpoint {
    /// The ports of this machine that the endpoint is, if it is on loopback.
    #[must_use]
    pub fn reaches(&self) -> Option<Vec<Reach>> {
        let local = self.host.only_host().as_ref().is_some_and(Host::is_loopback);
        local.then(|| self.ports.iter().map(|port| Reach { port: *port }).collect())
    }
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ports: Vec<String> = self.ports.iter().map(ToString::to_string).collect();
        write!(f, "{} on port {} ({})", self.host, ports.join(" and "), self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_service_is_well_formed_and_git_is_all_of_them() {
        let all = git_service("git").unwrap();
        for name in git_services() {
            let preset = git_service(name).unwrap();
            assert!(!preset.endpoints.is_empty(), "{name}");
            for endpoint in preset.endpoints {
                assert!(!endpoint.ports.is_empty() && !endpoint.from.is_empty(), "{name}");
                assert!(endpoint.reaches().is_none(), "{name}");
                assert!(all.endpoints.contains(&endpoint), "{name}");
            }
        }
        assert_eq!(git_service("nothing"), None);
    }
}
