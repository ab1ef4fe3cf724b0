//! Which variables a command gets. The environment is built anew from a list of names; nothing passes by default.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::Origin;

/// The variable part of a [`crate::ResolvedPolicy`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Environment {
    /// What passes.
    pub pass: Vec<EnvRule>,
    /// What never passes, whatever else is said.
    pub deny: Vec<EnvRule>,
    /// What is set to a value of the policy's own; the last wins.
    pub set: Vec<EnvSet>,
}

/// A rule about names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnvRule {
    /// Which names.
    pub name: NamePattern,
    /// Where it was written.
    pub origin: Origin,
}

/// A variable with a value of the policy's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnvSet {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
    /// Where it was written.
    pub origin: Origin,
}

/// A variable's name, or a glob of names such as `LC_*`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct NamePattern(String);

/// Why a name of a variable was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a variable's name (letters, digits, `_`, and `*` or `?` in a pattern)", .0.escape_debug())]
pub struct InvalidName(String);

/// How much care a variable needs. See `data/variables.toml`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VariableKind {
    /// None.
    Plain,
    /// It looks like a credential.
    Credential,
    /// It makes programs load code or run other programs.
    Loader,
}

// === impl NamePattern ===

impl NamePattern {
    /// As written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is one name, spelled out.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        !self.0.contains(['*', '?'])
    }

    /// Whether it means a name.
    #[must_use]
    pub fn matches(&self, name: &OsStr) -> bool {
        if self.is_exact() {
            name == self.0.as_str()
        } else {
            fast_glob::glob_match(&self.0, name.as_bytes())
        }
    }
}

impl TryFrom<String> for NamePattern {
    type Error = InvalidName;

    fn try_from(name: String) -> Result<Self, InvalidName> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'*' | b'?');
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) || !name.bytes().all(allowed) {
            return Err(InvalidName(name));
        }
        Ok(Self(name))
    }
}

// === impl VariableKind ===

/// The two lists of `data/variables.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    credential: Vec<String>,
    loader: Vec<String>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    toml::from_str(include_str!("../data/variables.toml")).expect("the embedded table is tested")
});

impl VariableKind {
    /// What a name looks like. Case is no disguise: `openai_api_key` is a credential too.
    #[must_use]
    pub fn of(name: &OsStr) -> Self {
        let upper = name.as_bytes().to_ascii_uppercase();
        let listed = |globs: &[String]| globs.iter().any(|glob| fast_glob::glob_match(glob, &upper));
        if listed(&TABLE.loader) {
            Self::Loader
        } else if listed(&TABLE.credential) {
            Self::Credential
        } else {
            Self::Plain
        }
    }
}

// === impl Environment ===

impl Environment {
    /// The variables a command gets, from those the caller has: those that pass, in the caller's order, then those
    /// the policy sets.
    pub fn build(&self, vars: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
        let is_set = |name: &OsStr| self.set.iter().any(|set| name == set.name.as_str());
        let passing = vars.into_iter().filter(|(name, _)| self.passes(name).is_some() && !is_set(name));
        let mut built: Vec<_> = passing.collect();
        for (at, set) in self.set.iter().enumerate() {
            let again = self.set[at + 1..].iter().any(|later| later.name == set.name);
            if !again && self.denied(OsStr::new(&set.name)).is_none() {
                built.push((OsString::from(&set.name), OsString::from(&set.value)));
            }
        }
        built
    }

    /// The rule by which a variable of the caller's passes, if one does.
    #[must_use]
    pub fn passes(&self, name: &OsStr) -> Option<&EnvRule> {
        if self.denied(name).is_some() {
            return None;
        }
        let exact = |rule: &&EnvRule| rule.name.is_exact() && rule.name.matches(name);
        if let Some(rule) = self.pass.iter().find(exact) {
            return Some(rule);
        }
        let rule = self.pass.iter().find(|rule| rule.name.matches(name))?;
        (VariableKind::of(name) == VariableKind::Plain).then_some(rule)
    }

    /// The rule that keeps a variable out, if one does.
    #[must_use]
    pub fn denied(&self, name: &OsStr) -> Option<&EnvRule> {
        self.deny.iter().find(|rule| rule.name.matches(name))
    }

    /// The value the policy sets a variable to, if it does.
    #[must_use]
    pub fn value_of(&self, name: &OsStr) -> Option<&EnvSet> {
        self.set.iter().rev().find(|set| name == set.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(names: &[&str]) -> Vec<EnvRule> {
        let rule = |name: &&str| EnvRule {
            name: NamePattern::try_from((*name).to_owned()).unwrap(),
            origin: Origin::typed("--env", name),
        };
        names.iter().map(rule).collect()
    }

    fn built(environment: &Environment, vars: &[(&str, &str)]) -> Vec<String> {
        let vars = vars.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let text = |(name, value): (OsString, OsString)| {
            format!("{}={}", name.to_string_lossy(), value.to_string_lossy())
        };
        environment.build(vars).into_iter().map(text).collect()
    }

    #[test]
    fn only_what_is_named_passes() {
        let environment = Environment { pass: rules(&["TERM", "LC_*"]), ..Environment::default() };
        let vars = [("TERM", "dumb"), ("LC_ALL", "C"), ("HOSTNAME", "h"), ("XLC_ALL", "x")];
        assert_eq!(built(&environment, &vars), ["TERM=dumb", "LC_ALL=C"]);
    }

    #[test]
    fn a_glob_lets_no_credential_and_no_loader_through() {
        let vars = [("GITHUB_TOKEN", "t"), ("openai_api_key", "k"), ("LD_PRELOAD", "l"), ("PWD", "/")];
        let all = Environment { pass: rules(&["*"]), ..Environment::default() };
        assert_eq!(built(&all, &vars), ["PWD=/"]);
        let named = Environment { pass: rules(&["GITHUB_TOKEN", "LD_PRELOAD"]), ..Environment::default() };
        assert_eq!(built(&named, &vars), ["GITHUB_TOKEN=t", "LD_PRELOAD=l"]);
    }

    #[test]
    fn deny_beats_pass_and_set() {
        let set = EnvSet { name: "A".into(), value: "1".into(), origin: Origin::typed("--env", "A=1") };
        let environment = Environment { pass: rules(&["A", "B"]), deny: rules(&["A"]), set: vec![set] };
        assert_eq!(built(&environment, &[("A", "x"), ("B", "y")]), ["B=y"]);
    }

    #[test]
    fn a_set_value_replaces_the_callers() {
        let set = |value: &str| EnvSet {
            name: "A".into(),
            value: value.into(),
            origin: Origin::typed("--env", "A"),
        };
        let environment =
            Environment { pass: rules(&["A"]), set: vec![set("1"), set("2")], ..Environment::default() };
        assert_eq!(built(&environment, &[("A", "x")]), ["A=2"]);
    }

    #[test]
    fn names_are_sorted_by_care() {
        for name in ["AWS_PROFILE", "STRIPE_KEY", "MySecretThing", "SSH_AUTH_SOCK", "DB_PASS", "SENTRY_DSN"] {
            assert_eq!(VariableKind::of(OsStr::new(name)), VariableKind::Credential, "{name}");
        }
        for name in ["LD_LIBRARY_PATH", "BASH_ENV", "NODE_OPTIONS", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT"] {
            assert_eq!(VariableKind::of(OsStr::new(name)), VariableKind::Loader, "{name}");
        }
        for name in ["LC_ALL", "GIT_AUTHOR_NAME", "TERM", "PWD", "KEYBOARD", "CARGO_HOME", "PATH", "EDITOR"] {
            assert_eq!(VariableKind::of(OsStr::new(name)), VariableKind::Plain, "{name}");
        }
    }

    #[test]
    fn names_are_checked() {
        for name in ["", "A=B", "1A", "A B", "A\0", "{A,B}", "!A"] {
            assert!(NamePattern::try_from(name.to_owned()).is_err(), "{name:?}");
        }
    }
}
