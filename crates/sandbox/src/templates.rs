//! What sandboxes can begin from by one word. The list is a file: `data/templates.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use redoma_policy::Publish;
use serde::{Deserialize, Serialize};

use crate::driver::{DriverError, ImageName};
use crate::services::Service;

/// A template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Template {
    /// What it is called.
    #[serde(default)]
    pub name: String,
    /// What people call it.
    pub title: String,
    /// What its file system begins as.
    pub image: ImageName,
    /// What it may reach, as after `--allow`.
    #[serde(default)]
    pub allow: Vec<String>,
    /// Ports that its program serves on.
    #[serde(default)]
    pub publish: Vec<Publish>,
    /// Variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// A command that succeeds when its program does its work.
    #[serde(default)]
    pub health: Option<Vec<String>>,
}

static TEMPLATES: LazyLock<Vec<Template>> = LazyLock::new(|| {
    let table: BTreeMap<String, Template> =
        toml::from_str(include_str!("../data/templates.toml")).expect("the embedded table is tested");
    table.into_iter().map(|(name, template)| Template { name, ..template }).collect()
});

/// All of them.
#[must_use]
pub fn all() -> &'static [Template] {
    &TEMPLATES
}

/// The template of a name.
///
/// # Errors
/// [`DriverError::Invalid`], with the names that there are.
pub fn named(name: &str) -> Result<&'static Template, DriverError> {
    let found = TEMPLATES.iter().find(|template| template.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = TEMPLATES.iter().map(|template| template.name.as_str()).collect();
        DriverError::Invalid {
            what: format!("the template {name:?}"),
            why: format!("there are {}", names.join(", ")),
            hint: "redoma templates".into(),
        }
    })
}

/// A service with what its template says where the file says nothing. Ports are published only where the file says so:
/// two services from one template would want the same.
///
/// # Errors
/// As [`named`].
pub fn filled_in(service: &Service) -> Result<Service, DriverError> {
    let Some(name) = &service.template else { return Ok(service.clone()) };
    let template = named(name)?;
    let mut filled = service.clone();
    filled.image = Some(template.image.clone());
    for (name, value) in &template.env {
        filled.env.entry(name.clone()).or_insert_with(|| value.clone());
    }
    filled.health.command = filled.health.command.or_else(|| template.health.clone());
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_of_the_first_list_is_there_and_names_no_registry() {
        for name in [
            "python", "node", "go", "rust", "ruby", "postgres", "redis", "debian", "ubuntu", "alpine", "host",
        ] {
            let template = named(name).unwrap();
            assert!(!template.image.to_string().contains('/'), "{name}");
        }
        assert!(named("cobol").unwrap_err().to_string().contains("python"));
    }
}
