//! Edits of a policy file that keep its comments and its layout: what `redoma allow` and `redoma deny` do.

mod hosts;

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use toml_edit::{Array, DocumentMut, Item, Table, Value};

use hosts::{add_reach, add_rule, remove_reach};

use crate::{HostPattern, NamePattern, Preset};

/// What is allowed or denied. Its text form is what the commands take: `read:PATH`, `write:PATH`, `env:NAME`,
/// `rule:TEXT`, `HOST[:PORT]`; a bare path (with a `/` in it, or beginning with `.` or `~`) means reading it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Read a path.
    Read(String),
    /// Change a path.
    Write(String),
    /// Have a variable.
    Env(NamePattern),
    /// Do what an entry of the built-in profile or preset forbids; its text is as it is written there.
    Rule(String),
    /// Connect.
    Host {
        /// To which hosts.
        host: HostPattern,
        /// To which port; `None` is what a rule without ports means.
        port: Option<NonZeroU16>,
    },
    /// Connect to a port of this machine.
    Reach(NonZeroU16),
}

/// Why a file was not edited.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The target is neither path, host nor variable.
    #[error("`{target}` cannot be allowed or denied: {problem}")]
    Target {
        /// As typed.
        target: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The file is no TOML.
    #[error("the policy is not well-formed: {0}")]
    Malformed(String),
    /// A key has another shape than a policy's.
    #[error("`{0}` in the policy is not what a policy has there")]
    Shape(&'static str),
}

/// A list of strings in a section.
#[derive(Clone, Copy)]
struct List {
    section: &'static str,
    key: &'static str,
}

const READ: List = List { section: "filesystem", key: "read" };
const WRITE: List = List { section: "filesystem", key: "write" };
const DENY: List = List { section: "filesystem", key: "deny" };
const WITHOUT: List = List { section: "filesystem", key: "without" };
const PASS: List = List { section: "environment", key: "pass" };
const DENY_ENV: List = List { section: "environment", key: "deny" };

/// Adds the rule that allows a target, and takes out what the same file says against it. The text comes back as it
/// was when it already says so.
///
/// # Errors
/// When the text is no policy.
pub fn allow(text: &str, target: &Target) -> Result<String, EditError> {
    edit(text, |policy| match target {
        Target::Read(path) => {
            remove(policy, DENY, path)?;
            add(policy, READ, path)
        }
        Target::Write(path) => {
            remove(policy, DENY, path)?;
            remove(policy, READ, path)?;
            add(policy, WRITE, path)
        }
        Target::Env(name) => {
            remove(policy, DENY_ENV, name.as_str())?;
            add(policy, PASS, name.as_str())
        }
        Target::Rule(entry) => add(policy, WITHOUT, entry),
        Target::Host { host, port } => add_rule(policy, host, *port, "inspect").map(drop),
        Target::Reach(port) => add_reach(policy, *port),
    })
}

/// Adds the rules that allow what a preset came to, each with a comment that says where its host is from.
///
/// # Errors
/// When the text is no policy.
pub fn allow_preset(text: &str, preset: &Preset) -> Result<String, EditError> {
    edit(text, |policy| preset.endpoints.iter().try_for_each(|one| hosts::add_endpoint(policy, preset, one)))
}

/// Adds the rule that denies a target, and takes out the grant of the same file. Denying to write denies to read: a
/// file that must stay readable is one to protect.
///
/// # Errors
/// When the text is no policy.
pub fn deny(text: &str, target: &Target) -> Result<String, EditError> {
    edit(text, |policy| match target {
        Target::Read(path) | Target::Write(path) => {
            remove(policy, READ, path)?;
            remove(policy, WRITE, path)?;
            add(policy, DENY, path)
        }
        Target::Env(name) => {
            remove(policy, PASS, name.as_str())?;
            add(policy, DENY_ENV, name.as_str())
        }
        Target::Rule(entry) => remove(policy, WITHOUT, entry),
        Target::Host { host, port } => add_rule(policy, host, *port, "deny").map(drop),
        Target::Reach(port) => remove_reach(policy, *port),
    })
}

fn edit(
    text: &str,
    change: impl FnOnce(&mut DocumentMut) -> Result<(), EditError>,
) -> Result<String, EditError> {
    let mut policy: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| EditError::Malformed(error.message().to_owned()))?;
    // Comments alone are what a document ends with, and would stand after whatever is added.
    let mut comments =
        if policy.is_empty() { std::mem::take(&mut policy).to_string() } else { String::new() };
    if !comments.is_empty() && !comments.ends_with('\n') {
        comments.push('\n');
    }
    change(&mut policy)?;
    let edited = policy.to_string();
    // What stands first needs no empty line before it.
    Ok(comments + if text.is_empty() { edited.trim_start_matches('\n') } else { &edited })
}

// === lists ===

fn add(policy: &mut DocumentMut, list: List, entry: &str) -> Result<(), EditError> {
    let array = array(policy, list)?;
    if !array.iter().any(|value| value.as_str() == Some(entry)) {
        push(array, entry);
    }
    Ok(())
}

fn remove(policy: &mut DocumentMut, list: List, entry: &str) -> Result<(), EditError> {
    let present = policy.get(list.section).and_then(|section| section.get(list.key)).is_some();
    if present {
        array(policy, list)?.retain(|value| value.as_str() != Some(entry));
    }
    Ok(())
}

fn array(policy: &mut DocumentMut, list: List) -> Result<&mut Array, EditError> {
    let section = policy.entry(list.section).or_insert_with(|| Item::Table(Table::new()));
    let section = section.as_table_like_mut().ok_or(EditError::Shape(list.section))?;
    let item = section.entry(list.key).or_insert_with(|| Item::Value(Value::Array(Array::new())));
    item.as_array_mut().ok_or(EditError::Shape(list.key))
}

/// Appends an entry the way the others stand: on a line of its own where they do.
fn push(array: &mut Array, entry: &str) {
    let own_lines = array.iter().last().and_then(|value| {
        let prefix = value.decor().prefix()?.as_str()?;
        let indent = prefix.rsplit_once('\n')?.1;
        Some(format!("\n{indent}"))
    });
    let Some(prefix) = own_lines else {
        array.push(entry);
        return;
    };
    // What follows the last entry (a comment beside it, say) is the array's trailing text, or the entry's own suffix
    // if no comma ends it: either way it stays where it is, and the new entry comes after.
    let trailing = array.trailing().as_str().unwrap_or_default().to_owned();
    let beside = trailing.rsplit_once('\n').map_or("", |(beside, _)| beside).to_owned();
    array.push_formatted(Value::from(entry).decorated(format!("{beside}{prefix}"), ""));
    array.set_trailing("\n");
    array.set_trailing_comma(true);
}

// === impl Target ===

/// Reads one target, or hosts with commas between them.
///
/// # Errors
/// When one of them is none.
pub fn targets(text: &str) -> Result<Vec<Target>, EditError> {
    match text.parse() {
        Ok(one) => Ok(vec![one]),
        Err(_) if text.contains(',') => text.split(',').map(str::parse).collect(),
        Err(error) => Err(error),
    }
}

impl FromStr for Target {
    type Err = EditError;

    fn from_str(text: &str) -> Result<Self, EditError> {
        let refuse = |problem: String| EditError::Target { target: text.to_owned(), problem };
        if let Some(path) = text.strip_prefix("read:").filter(|path| !path.is_empty()) {
            return Ok(Self::Read(path.to_owned()));
        }
        if let Some(path) = text.strip_prefix("write:").filter(|path| !path.is_empty()) {
            return Ok(Self::Write(path.to_owned()));
        }
        if let Some(name) = text.strip_prefix("env:") {
            let name = NamePattern::try_from(name.to_owned()).map_err(|error| refuse(error.to_string()))?;
            return Ok(Self::Env(name));
        }
        if let Some(entry) = text.strip_prefix("rule:").filter(|entry| !entry.is_empty()) {
            return Ok(Self::Rule(entry.to_owned()));
        }
        if text.contains('/') || text.starts_with(['.', '~']) {
            return Ok(Self::Read(text.to_owned()));
        }
        let (host, port) = crate::resolve::split_port(text);
        let host: HostPattern =
            host.parse().map_err(|error: crate::InvalidHost| refuse(error.problem.to_owned()))?;
        let port = port
            .map(|port| port.parse().map_err(|_| refuse("the port is no number from 1 to 65535".to_owned())));
        let port = port.transpose()?;
        match port {
            Some(port) if hosts::is_local(&host) => Ok(Self::Reach(port)),
            None if hosts::is_local(&host) => {
                Err(refuse("ports of this machine are reached one by one, as localhost:5432".to_owned()))
            }
            port => Ok(Self::Host { host, port }),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path) => write!(f, "read:{path}"),
            Self::Write(path) => write!(f, "write:{path}"),
            Self::Env(name) => write!(f, "env:{}", name.as_str()),
            Self::Rule(entry) => write!(f, "rule:{entry}"),
            Self::Reach(port) => write!(f, "localhost:{port}"),
            Self::Host { host, port: None } => host.fmt(f),
            Self::Host { host: HostPattern::Address(address), port: Some(port) } if address.is_ipv6() => {
                write!(f, "[{address}]:{port}")
            }
            Self::Host { host, port: Some(port) } => write!(f, "{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests;
