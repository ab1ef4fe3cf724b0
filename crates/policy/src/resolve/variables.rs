//! Merging the rules about variables, and the secrets that stand in for some.

use std::path::PathBuf;

use super::places::literal;
use super::{Merge, expanded};
use crate::document::{Document, Entry};
use crate::file::{SecretKind, SecretSection};
use crate::{
    EnvRule, EnvSet, Environment, NamePattern, Notice, NoticeKind, Origin, PolicyError, SecretPlace,
    SecretRule, SecretSource, VariableKind,
};

impl Merge<'_> {
    pub(super) fn variables(&mut self) -> Result<Environment, PolicyError> {
        let mut merged = Environment::default();
        for document in &self.stack.documents {
            let section = &document.file.environment;
            merged.deny.extend(section.deny.iter().map(|name| written(document, name)));
            if document.trusted {
                merged.pass.extend(section.pass.iter().map(|name| written(document, name)));
                let set = section.set.iter().map(|(name, value)| EnvSet {
                    name: name.get_ref().clone(),
                    value: value.clone(),
                    origin: document.origin(name.span().start, name.get_ref()),
                });
                merged.set.extend(set);
            } else {
                self.weigh_untrusted_variables(document, &merged);
            }
        }
        self.typed_variables(&mut merged)?;
        self.notice_loaders(&merged);
        Ok(merged)
    }

    fn weigh_untrusted_variables(&mut self, document: &Document, merged: &Environment) {
        let section = &document.file.environment;
        let new =
            section.pass.iter().filter(|name| !merged.pass.iter().any(|rule| rule.name == *name.get_ref()));
        let notices = new.map(|name| {
            let rule = written(document, name);
            super::not_heard(&format!("passing the variable {}", rule.name.as_str()), rule.origin)
        });
        self.notices.extend(notices);
        for name in section.set.keys() {
            let origin = document.origin(name.span().start, name.get_ref());
            self.notices.push(super::not_heard(&format!("setting the variable {}", name.get_ref()), origin));
        }
    }

    fn typed_variables(&self, merged: &mut Environment) -> Result<(), PolicyError> {
        for preset in &self.typed.presets {
            let origin = Origin::typed("--allow", &preset.name);
            let set = |(name, value): &(String, String)| EnvSet {
                name: name.clone(),
                value: value.clone(),
                origin: origin.clone(),
            };
            // What somebody wrote about a variable is meant more than what a tool's configuration says.
            let written = |name: &str| {
                let passes =
                    merged.pass.iter().any(|rule| rule.name.is_exact() && rule.name.as_str() == name);
                passes || merged.set.iter().any(|own| own.name == name)
            };
            let new: Vec<_> = preset.variables.iter().filter(|(name, _)| !written(name)).map(set).collect();
            merged.set.extend(new);
        }
        for (name, value) in &self.typed.env {
            let entry = Entry::typed("--env", name);
            let refuse = || entry.error("it is no variable's name", "--env NAME or --env NAME=VALUE");
            let origin = Origin::typed("--env", name);
            match value {
                Some(value) if crate::check::is_variable(name) => {
                    merged.set.push(EnvSet { name: name.clone(), value: value.clone(), origin });
                }
                Some(_) => return Err(refuse()),
                None => {
                    let name = NamePattern::try_from(name.clone()).map_err(|_| refuse())?;
                    merged.pass.push(EnvRule { name, origin });
                }
            }
        }
        Ok(())
    }

    /// Named loaders pass, but not silently.
    fn notice_loaders(&mut self, merged: &Environment) {
        let passed = merged.pass.iter().filter(|rule| rule.name.is_exact());
        let passed = passed.map(|rule| (rule.name.as_str(), &rule.origin));
        let set = merged.set.iter().map(|set| (set.name.as_str(), &set.origin));
        let theirs = passed.chain(set).filter(|(_, origin)| origin.layer != crate::Layer::Builtin);
        let loaders = theirs.filter(|(name, _)| VariableKind::of(name.as_ref()) == VariableKind::Loader);
        self.notices.extend(loaders.map(|(name, origin)| Notice {
            kind: NoticeKind::Loader,
            message: format!("{name} makes programs load code or run others; it passes because it is named"),
            hint: None,
            origin: Some(origin.clone()),
        }));
    }

    pub(super) fn secrets(&mut self) -> Result<Vec<SecretRule>, PolicyError> {
        let mut merged: Vec<SecretRule> = Vec::new();
        for document in &self.stack.documents {
            for (name, section) in &document.file.secrets {
                let origin = document.origin(name.span().start, name.get_ref());
                if !document.trusted {
                    self.not_heard(&format!("the secret {}", name.get_ref()), origin);
                    continue;
                }
                let source = self.secret_source(document, name, section)?;
                let section = section.get_ref();
                merged.retain(|earlier| earlier.name != *name.get_ref());
                merged.push(SecretRule {
                    name: name.get_ref().clone(),
                    source,
                    hosts: section.hosts.clone(),
                    place: place(section),
                    origin,
                });
            }
        }
        Ok(merged)
    }

    fn secret_source(
        &self,
        document: &Document,
        name: &toml::Spanned<String>,
        secret: &toml::Spanned<SecretSection>,
    ) -> Result<SecretSource, PolicyError> {
        let section = secret.get_ref();
        Ok(match section.from {
            SecretKind::Env => {
                SecretSource::Env(section.variable.clone().unwrap_or_else(|| name.get_ref().clone()))
            }
            SecretKind::Keyring => SecretSource::Keyring(section.entry.clone().unwrap_or_default()),
            SecretKind::Command => SecretSource::Command(section.command.clone().unwrap_or_default()),
            SecretKind::File => {
                let written = section.path.as_deref().unwrap_or_default();
                let path = expanded(&document.entry(secret, written), self.world)?;
                SecretSource::File(path.map_or_else(PathBuf::new, |text| literal(&text).0))
            }
        })
    }
}

fn place(section: &SecretSection) -> SecretPlace {
    let SecretSection { header, query, basic, aws, .. } = section;
    match (header, query, basic, aws) {
        (Some(header), ..) => SecretPlace::Header(header.to_ascii_lowercase()),
        (_, Some(query), ..) => SecretPlace::Query(query.clone()),
        (_, _, Some(user), _) => SecretPlace::Basic(Some(user.clone()).filter(|user| user != "*")),
        (.., Some(aws)) => SecretPlace::Aws {
            access_key_id: aws.access_key_id.clone(),
            session_token: aws.session_token.clone(),
        },
        _ => SecretPlace::Headers,
    }
}

fn written(document: &Document, name: &toml::Spanned<NamePattern>) -> EnvRule {
    let pattern = name.get_ref();
    EnvRule { name: pattern.clone(), origin: document.origin(name.span().start, pattern.as_str()) }
}
