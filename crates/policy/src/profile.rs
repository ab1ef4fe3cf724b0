//! The built-in profiles: files under `data/profiles/`, each entry with its reason.

use crate::document::Document;
use crate::{PolicyError, nearest};

/// What is beneath everything unless something else is named.
pub(crate) const DEFAULT: &str = "default";

/// A built-in profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name, as `extends` and `--profile` take it.
    pub name: &'static str,
    /// What it is for, in one line.
    pub about: &'static str,
    /// Its text, as `redoma policy profiles NAME` shows it.
    pub text: &'static str,
}

static PROFILES: [Profile; 6] = [
    Profile {
        name: DEFAULT,
        about: "the project writable, tools readable, credentials hidden, no host reached",
        text: include_str!("../data/profiles/default.toml"),
    },
    Profile {
        name: "strict",
        about: "the project readable, nothing of the home, no network",
        text: include_str!("../data/profiles/strict.toml"),
    },
    Profile {
        name: "audit",
        about: "as default, with everything recorded",
        text: include_str!("../data/profiles/audit.toml"),
    },
    Profile {
        name: "permissive",
        about: "the home readable but for credentials, the network open",
        text: include_str!("../data/profiles/permissive.toml"),
    },
    Profile {
        name: "base",
        about: "what the others stand on: the system readable, credentials hidden, nothing granted",
        text: include_str!("../data/profiles/base.toml"),
    },
    Profile {
        name: "empty",
        about: "nothing at all: for policies that name everything themselves",
        text: include_str!("../data/profiles/empty.toml"),
    },
];

/// All built-in profiles.
#[must_use]
pub fn profiles() -> &'static [Profile] {
    &PROFILES
}

pub(crate) fn exists(name: &str) -> bool {
    PROFILES.iter().any(|profile| profile.name == name)
}

/// What to name instead.
pub(crate) fn hint(name: &str) -> String {
    let names = || PROFILES.iter().map(|profile| profile.name);
    match nearest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
    }
}

/// The documents of a profile, the one it extends first.
pub(crate) fn documents(name: &str) -> Result<Vec<Document>, PolicyError> {
    let found = PROFILES.iter().find(|profile| profile.name == name);
    let profile = found.ok_or_else(|| PolicyError::Unknown {
        what: "profile",
        name: name.to_owned(),
        hint: hint(name),
    })?;
    let document = Document::embedded(&format!("profile {name}"), profile.text)?;
    let extends = document.file.extends.as_ref().map(|name| name.get_ref().clone());
    let mut documents = match extends {
        Some(beneath) => documents(&beneath)?,
        None => Vec::new(),
    };
    documents.push(document);
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_is_well_formed() {
        for profile in profiles() {
            let documents = documents(profile.name).unwrap_or_else(|error| panic!("{}", error.render(false)));
            for document in &documents {
                crate::check::check(document).unwrap_or_else(|error| panic!("{}", error.render(false)));
            }
        }
    }

    #[test]
    fn every_entry_of_a_profile_has_its_reason() {
        for profile in profiles() {
            for line in profile.text.lines().filter(|line| line.trim_start().starts_with('"')) {
                assert!(line.contains('#'), "{}: {line}", profile.name);
            }
        }
    }
}
