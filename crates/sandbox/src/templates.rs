//! Beginnings by name: `redoma sandbox create --template python`, `template = "postgres"`. They are data.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use redoma_policy::NetworkDefault;
use serde::{Deserialize, Serialize};

use crate::driver::ImageName;
use crate::services::{Beginning, Health, Probe, Service};

/// What a template says.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// What it is, in a few words.
    pub about: String,
    /// What its file system begins as.
    pub image: ImageName,
    /// Where commands run; none is where the image says.
    #[serde(default)]
    pub workdir: Option<PathBuf>,
    /// Variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// What a service of it starts, instead of what the image says.
    #[serde(default)]
    pub command: Vec<String>,
    /// Ports inside where it listens.
    #[serde(default)]
    pub ports: Vec<u16>,
    /// Hosts and presets that it is of little use without.
    #[serde(default)]
    pub allow: Vec<String>,
    /// When a service of it is taken to work.
    #[serde(default)]
    health: Option<Check>,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Check {
    #[serde(default)]
    cmd: Vec<String>,
    #[serde(default)]
    port: Option<u16>,
    #[serde(default)]
    retries: Option<u32>,
}

/// Why there is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no template {0:?}")]
pub struct TemplateError(String);

static TEMPLATES: LazyLock<BTreeMap<String, Template>> = LazyLock::new(|| {
    toml::from_str(include_str!("../data/templates.toml")).expect("the embedded table is tested")
});

/// Every template by its name.
#[must_use]
pub fn all() -> &'static BTreeMap<String, Template> {
    &TEMPLATES
}

/// The template of this name.
///
/// # Errors
/// [`TemplateError`] where there is none.
pub fn named(name: &str) -> Result<&'static Template, TemplateError> {
    TEMPLATES.get(name).ok_or_else(|| TemplateError(name.to_owned()))
}

// === impl TemplateError ===

impl TemplateError {
    /// What the user can do.
    #[must_use]
    pub fn hint(&self) -> String {
        "redoma templates".into()
    }
}

// === impl Template ===

impl Template {
    /// The service with what the template says wherever it says nothing itself. Who wants no network gets none.
    #[must_use]
    pub fn fill(&self, service: &Service) -> Service {
        let mut filled = service.clone();
        filled.begins = Beginning::Image(self.image.clone());
        filled.workdir = filled.workdir.or_else(|| self.workdir.clone());
        for (name, value) in &self.env {
            filled.env.entry(name.clone()).or_insert_with(|| value.clone());
        }
        if filled.command.is_none() && filled.entrypoint.is_none() && !self.command.is_empty() {
            filled.command = Some(self.command.clone());
        }
        filled.health = filled.health.or_else(|| self.health());
        if filled.net != Some(NetworkDefault::None) {
            filled.allow.extend(self.allow.iter().filter(|host| !service.allow.contains(host)).cloned());
        }
        filled
    }

    fn health(&self) -> Option<Health> {
        let check = self.health.as_ref()?;
        let probe = match check.port {
            Some(port) => Probe::Port(port),
            None => Probe::Command(check.cmd.clone()),
        };
        let health = Health::new(probe);
        Some(Health { retries: check.retries.unwrap_or(health.retries), ..health })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    #[test]
    fn every_promised_template_is_there_and_whole() {
        let promised = [
            "alpine", "debian", "go", "host", "node", "postgres", "python", "redis", "ruby", "rust", "ubuntu",
        ];
        assert_eq!(all().keys().collect::<Vec<_>>(), promised);
        for (name, template) in all() {
            assert!(!template.about.is_empty());
            let image = template.image.to_string();
            assert!(!image.contains('/'), "{image} names a registry");
            assert!(image == "host" || image.contains(':'), "{image} is another one every day");
            assert!(template.allow.iter().all(|allow| presets::is_preset(allow)), "{name}");
            let check = template.health.as_ref();
            assert!(check.is_none_or(|check| check.cmd.is_empty() == check.port.is_some()), "{name}");
        }
        assert_eq!(named("cobol").unwrap_err().to_string(), "there is no template \"cobol\"");
    }

    #[test]
    fn a_service_keeps_what_it_says_and_gets_the_rest() {
        let mut service = Service::new(Beginning::Template("postgres".parse().unwrap()));
        service.env.insert("POSTGRES_PASSWORD".into(), "own".into());
        let filled = named("postgres").unwrap().fill(&service);
        assert_eq!(filled.begins, Beginning::Image(ImageName::Reference("postgres:16".into())));
        assert_eq!(filled.env["POSTGRES_PASSWORD"], "own");
        assert!(filled.health.is_some());
        let mut alone = Service::new(Beginning::Template("python".parse().unwrap()));
        assert_eq!(named("python").unwrap().fill(&alone).allow, ["pip"]);
        alone.net = Some(NetworkDefault::None);
        assert!(named("python").unwrap().fill(&alone).allow.is_empty(), "no network stays no network");
    }
}
