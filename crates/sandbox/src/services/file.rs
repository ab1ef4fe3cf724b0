//! Files that describe groups of services, as text. Whoever wrote them may be a sandbox: everything is bounded, and what is
//! not understood is refused by name, since leaving it out would make another service than the one that was meant.

mod compose;
mod own;
mod peapod;
mod words;
mod yaml;

use std::path::Path;

use super::error::ServicesError;
use super::model::{Group, Service};
use super::variables::{self, Unexpanded};
use crate::driver::Name;

/// More services than this are no group.
const MOST_SERVICES: usize = 100;
/// A description is a few lines for each service.
pub const FILE_LIMIT: usize = 1 << 20;

/// The kinds of files, in the order in which a folder is searched.
pub const NAMES: [&str; 6] = [
    "redoma-services.toml",
    "peapod.json",
    "compose.yaml",
    "compose.yml",
    "docker-compose.yaml",
    "docker-compose.yml",
];

/// A text, and what it is read with.
pub(super) struct Text<'t> {
    pub(super) path: &'t Path,
    pub(super) text: &'t str,
    pub(super) vars: &'t dyn Fn(&str) -> Option<String>,
}

/// Reads the group that `text`, the content of the file at `path`, describes. The kind of file follows from its name.
///
/// `vars` are the variables that the user named. Nothing but the arguments is looked at.
///
/// # Errors
/// [`ServicesError::File`], with the line where it is known; [`ServicesError::Cycle`].
pub fn parse(path: &Path, text: &str, vars: &dyn Fn(&str) -> Option<String>) -> Result<Group, ServicesError> {
    let text = Text { path, text, vars };
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let group = match extension {
        "json" => peapod::read(&text),
        "yaml" | "yml" => compose::read(&text),
        _ => own::read(&text),
    }?;
    text.check(&group)?;
    super::order::order(&group)?;
    Ok(group)
}

impl Text<'_> {
    pub(super) fn wrong(
        &self,
        line: Option<usize>,
        what: impl Into<String>,
        hint: impl Into<String>,
    ) -> ServicesError {
        ServicesError::File { path: self.path.to_owned(), line, what: what.into(), hint: hint.into() }
    }

    /// The line of a byte.
    fn line_of(&self, at: usize) -> Option<usize> {
        let before = self.text.as_bytes().get(..at)?;
        Some(before.iter().filter(|byte| **byte == b'\n').count() + 1)
    }

    /// A value with its variables.
    fn expand(&self, text: &str, line: Option<usize>) -> Result<String, ServicesError> {
        variables::expand(text, self.vars).map_err(|why| match why {
            Unexpanded::Unset { name, said } => {
                let said = said.filter(|said| !said.is_empty()).map(|said| format!(": {said}"));
                let what = format!("variable {name} was not passed{}", said.unwrap_or_default());
                self.wrong(line, what, format!("redoma up --env {name}"))
            }
            Unexpanded::Syntax => self.wrong(
                line,
                format!("a `$` in {text:?} begins no variable"),
                "write `$$` for a `$`, or `${NAME:-default}`",
            ),
        })
    }

    /// The name of a service or of the group.
    fn name(&self, text: &str, line: Option<usize>) -> Result<Name, ServicesError> {
        text.parse().map_err(|error: crate::driver::InvalidName| {
            self.wrong(line, error.to_string(), "choose another name")
        })
    }

    /// What the group is called: what the file says, or else its folder.
    fn group_name(&self, said: Option<&str>) -> Result<Name, ServicesError> {
        if let Some(said) = said {
            return self.name(said, None);
        }
        let folder = self.path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let name: String = folder.chars().take(40).map(plain).collect();
        let name = name.trim_matches('-');
        name.parse().map_err(|_| {
            self.wrong(
                None,
                "the file does not say `name`, and its folder's is none",
                "add `name = \"shop\"`",
            )
        })
    }

    fn check(&self, group: &Group) -> Result<(), ServicesError> {
        if group.services.is_empty() {
            return Err(self.wrong(None, "it describes no service", "redoma man up"));
        }
        if group.services.len() > MOST_SERVICES {
            return Err(self.wrong(
                None,
                format!("more than {MOST_SERVICES} services"),
                "make several groups",
            ));
        }
        self.check_names(group)?;
        let mut taken = std::collections::BTreeMap::new();
        for (name, service) in &group.services {
            self.check_service(group, name, service)?;
            for port in &service.ports {
                if let Some(other) = taken.insert(port.outside, name) {
                    let what = format!(
                        "services {other} and {name} both want port {} of this machine",
                        port.outside
                    );
                    return Err(self.wrong(None, what, "choose another port"));
                }
            }
        }
        Ok(())
    }

    /// Names of hosts have no case.
    fn check_names(&self, group: &Group) -> Result<(), ServicesError> {
        let mut taken = std::collections::BTreeSet::new();
        let twice = group.services.keys().find(|name| !taken.insert(name.as_str().to_ascii_lowercase()));
        twice.map_or(Ok(()), |name| {
            Err(self.wrong(None, format!("there are two services {name}"), "choose another name"))
        })
    }

    fn check_service(&self, group: &Group, name: &Name, service: &Service) -> Result<(), ServicesError> {
        for after in service.after.keys() {
            if !group.services.contains_key(after) {
                let what = format!("service {name} waits for {after}, which is not there");
                return Err(self.wrong(None, what, "add it, or take it out of `depends_on`"));
            }
        }
        if let Some(key) = service.env.keys().find(|key| key.is_empty() || key.contains(['=', '\0'])) {
            return Err(self.wrong(None, format!("{key:?} is no variable's name"), "rename it"));
        }
        let relative = service.workdir.iter().chain(service.mounts.iter().map(|mount| &mount.to));
        match relative.into_iter().find(|path| !path.is_absolute()) {
            Some(path) => {
                let what =
                    format!("{} is a path inside service {name} and has to begin with /", path.display());
                Err(self.wrong(None, what, format!("write /{}", path.display())))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
