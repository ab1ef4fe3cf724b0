//! The one decision function. `redoma why` prints its answer, the jail plans mounts and Landlock rules so that the
//! kernel agrees with it, and the gateway asks it about connections.

mod connection;
mod path;

use std::ffi::OsStr;
use std::path::Path;

use serde::Serialize;

use crate::{Host, InvalidHost, Layer, Origin, ResolvedPolicy, Tier, VariableKind};

pub use connection::{Connection, Unreachable};
pub use path::{PRIVATE_FOLDERS, devices};

/// What may be asked. Paths are absolute and canonical; the asker follows links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question<'a> {
    /// See what a path holds, or list a folder.
    Read(&'a Path),
    /// Change, rename or remove what exists.
    Write(&'a Path),
    /// Make a path that did not exist when the session started. Globs mean what existed, so they hold only for `below`.
    Create {
        /// What is made.
        path: &'a Path,
        /// The deepest folder above it that existed. Those between the two would be made as well.
        below: &'a Path,
    },
    /// Run a program.
    Exec(&'a Path),
    /// Connect to a host.
    Connect {
        /// A name or an address.
        host: &'a Host,
        /// TCP port.
        port: u16,
    },
    /// Have a variable of the caller's.
    Env(&'a str),
}

/// The answer to a [`Question`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// Yes, no, or a person decides.
    pub effect: Effect,
    /// The rule that decided; `None` when no rule says anything.
    pub rule: Option<Origin>,
    /// Why, in one plain sentence without a full stop.
    pub because: String,
    /// What would have to change for another answer; `None` when nothing in a policy can.
    pub change: Option<SmallestChange>,
    /// What the action meets inside.
    pub place: Place,
}

/// Yes, no, or a person decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// It works, on what [`Verdict::place`] names.
    Allow,
    /// A person is asked.
    Ask,
    /// What is the host's stays out of reach.
    Deny,
}

/// What an action meets inside the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// The host's own file, host or variable.
    Host,
    /// The session's change set: writes wait for `redoma changes apply`.
    ChangeSet,
    /// Something of the sandbox's own that vanishes with the session.
    Private,
    /// A decoy or an empty stand-in.
    Covered,
    /// Nothing: no such path, or no permission.
    Absent,
    /// What is created there does not stay: it is moved to quarantine at once, with an alert, or, in an overlay
    /// workspace, never leaves the change set.
    Quarantined,
}

/// The smallest change of policy that would give another answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SmallestChange {
    /// A command that makes the change.
    Command(String),
    /// A line to add to a section of a policy file.
    Add {
        /// The section, such as `filesystem`.
        section: &'static str,
        /// The line.
        line: String,
    },
    /// A rule to remove or narrow by hand: Redoma does not undo a deny on its own.
    Remove(Origin),
}

impl ResolvedPolicy {
    /// Answers a question, as the tier enforces it.
    #[must_use]
    pub fn decide(&self, question: &Question<'_>, tier: Tier) -> Verdict {
        match *question {
            Question::Read(path) | Question::Exec(path) => self.decide_path(path, path::Intent::See, tier),
            Question::Write(path) => self.decide_path(path, path::Intent::Change, tier),
            Question::Create { path, below } => self.decide_path(path, path::Intent::Create(below), tier),
            Question::Connect { host, port } => self.connection(host, port, tier).verdict,
            Question::Env(name) => self.decide_variable(name),
        }
    }

    fn decide_variable(&self, name: &str) -> Verdict {
        let (environment, os_name) = (&self.environment, OsStr::new(name));
        if let Some(rule) = environment.denied(os_name) {
            return Verdict::deny(Place::Absent, "a deny rule names the variable")
                .by(&rule.origin)
                .unless(SmallestChange::Remove(rule.origin.clone()));
        }
        if let Some(secret) = self.secrets.iter().find(|secret| secret.name == name) {
            return Verdict::allow(
                Place::Private,
                "it holds a placeholder, which its hosts alone take for the secret",
            )
            .by(&secret.origin);
        }
        if let Some(set) = environment.value_of(os_name) {
            return Verdict::allow(Place::Private, "the policy sets it to a value of its own")
                .by(&set.origin);
        }
        if let Some(rule) = environment.passes(os_name) {
            return Verdict::allow(Place::Host, "a pass rule names the variable").by(&rule.origin);
        }
        let because = match VariableKind::of(os_name) {
            VariableKind::Plain => "no pass rule names the variable",
            VariableKind::Credential => "it looks like a credential, which passes only by its exact name",
            VariableKind::Loader => "it makes programs load code, so it passes only by its exact name",
        };
        Verdict::deny(Place::Absent, because).unless_allowed(&format!("env:{name}"))
    }
}

impl Verdict {
    /// The answer about what is no host: nothing connects there, and no policy can change that.
    #[must_use]
    pub fn no_host(error: &InvalidHost) -> Self {
        Self::deny(Place::Absent, &format!("it is no well-formed host: {}", error.problem))
    }

    fn new(effect: Effect, place: Place, because: &str) -> Self {
        Self { effect, rule: None, because: because.to_owned(), change: None, place }
    }

    fn allow(place: Place, because: &str) -> Self {
        Self::new(Effect::Allow, place, because)
    }

    fn deny(place: Place, because: &str) -> Self {
        Self::new(Effect::Deny, place, because)
    }

    fn by(self, origin: &Origin) -> Self {
        Self { rule: Some(origin.clone()), ..self }
    }

    fn unless(self, change: SmallestChange) -> Self {
        Self { change: Some(change), ..self }
    }

    fn unless_allowed(self, target: &str) -> Self {
        self.unless(SmallestChange::Command(format!("redoma allow {}", shell_word(target))))
    }

    /// For a deny or protect rule: an entry of a built-in file can be left out by its text, one that somebody wrote has
    /// to be taken back where it was written. What Redoma itself adds (no line) stays.
    fn unless_lifted(self, origin: &Origin) -> Self {
        match origin.layer {
            Layer::Builtin if origin.line.is_some() => self.unless_allowed(&format!("rule:{}", origin.text)),
            Layer::Builtin => self,
            _ => self.unless(SmallestChange::Remove(origin.clone())),
        }
    }
}

/// Quotes a word for sh(1) where it needs to be.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:~,+@%=".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

impl std::fmt::Display for SmallestChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Command(command) => f.write_str(command),
            Self::Add { section, line } => write!(f, "add `{line}` under [{section}] in your policy"),
            Self::Remove(origin) => write!(f, "take back `{}` ({origin})", origin.text),
        }
    }
}

impl std::fmt::Display for Effect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod quoting {
    use super::*;

    #[test]
    fn words_are_quoted_for_the_shell_only_where_needed() {
        assert_eq!(shell_word("write:/a/b-c.d"), "write:/a/b-c.d");
        assert_eq!(shell_word("write:/a b"), "'write:/a b'");
        assert_eq!(shell_word("it's$(id)"), r"'it'\''s$(id)'");
    }
}
