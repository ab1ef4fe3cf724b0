//! Edits of a policy file that keep its comments and its layout: what `redoma allow` and `redoma deny` do.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, Value};

use crate::{HostPattern, NamePattern};

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
        Target::Host { host, port } => add_rule(policy, host, *port, "inspect"),
    })
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
        Target::Host { host, port } => add_rule(policy, host, *port, "deny"),
    })
}

fn edit(
    text: &str,
    change: impl FnOnce(&mut DocumentMut) -> Result<(), EditError>,
) -> Result<String, EditError> {
    let mut policy: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| EditError::Malformed(error.message().to_owned()))?;
    change(&mut policy)?;
    Ok(policy.to_string())
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

// === hosts ===

fn add_rule(
    policy: &mut DocumentMut,
    host: &HostPattern,
    port: Option<NonZeroU16>,
    action: &str,
) -> Result<(), EditError> {
    let network = policy.entry("network").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let network = network.as_table_like_mut().ok_or(EditError::Shape("network"))?;
    let rules = network.entry("rule").or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
    let rules = rules.as_array_of_tables_mut().ok_or(EditError::Shape("network.rule"))?;
    let denies = |rule: &Table| rule.get("action").and_then(Item::as_str) == Some("deny");
    let same = |rule: &Table| {
        let own = rule.get("host").and_then(Item::as_str).and_then(|host| host.parse::<HostPattern>().ok());
        own.as_ref() == Some(host)
    };
    if action != "deny" {
        // Deny beats allow, so a rule of this file against the host must go; one on other ports may stay.
        rules.retain(|rule| !(same(rule) && denies(rule) && ports_overlap(rule, port)));
    }
    let existing = rules.iter_mut().find(|rule| same(rule) && denies(rule) == (action == "deny"));
    match existing {
        Some(rule) => add_port(rule, port),
        None => {
            rules.push(new_rule(host, port, action));
            Ok(())
        }
    }
}

fn ports_overlap(rule: &Table, port: Option<NonZeroU16>) -> bool {
    match (rule.get("ports").and_then(Item::as_array), port) {
        (Some(ports), Some(port)) => has_port(ports, port),
        _ => true,
    }
}

fn has_port(ports: &Array, port: NonZeroU16) -> bool {
    ports.iter().any(|own| own.as_integer() == Some(i64::from(port.get())))
}

fn add_port(rule: &mut Table, port: Option<NonZeroU16>) -> Result<(), EditError> {
    let Some(port) = port else {
        rule.remove("ports");
        return Ok(());
    };
    if let Some(ports) = rule.get_mut("ports") {
        let ports = ports.as_array_mut().ok_or(EditError::Shape("ports"))?;
        if !has_port(ports, port) {
            ports.push(i64::from(port.get()));
        }
        return Ok(());
    }
    // Left out, ports are the web's, or for a deny rule all: naming one more must not take those away.
    let denies = rule.get("action").and_then(Item::as_str) == Some("deny");
    if !denies && ![80, 443].contains(&port.get()) {
        let ports: Array = [443, 80, i64::from(port.get())].into_iter().collect();
        rule.insert("ports", Item::Value(Value::Array(ports)));
    }
    Ok(())
}

fn new_rule(host: &HostPattern, port: Option<NonZeroU16>, action: &str) -> Table {
    let mut rule = Table::new();
    rule.insert("host", toml_edit::value(host.to_string()));
    if let Some(port) = port {
        let ports: Array = std::iter::once(i64::from(port.get())).collect();
        rule.insert("ports", Item::Value(Value::Array(ports)));
    }
    rule.insert("action", toml_edit::value(action));
    rule
}

// === impl Target ===

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
        let host = host.parse().map_err(|error: crate::InvalidHost| refuse(error.problem.to_owned()))?;
        let port = port
            .map(|port| port.parse().map_err(|_| refuse("the port is no number from 1 to 65535".to_owned())));
        Ok(Self::Host { host, port: port.transpose()? })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path) => write!(f, "read:{path}"),
            Self::Write(path) => write!(f, "write:{path}"),
            Self::Env(name) => write!(f, "env:{}", name.as_str()),
            Self::Rule(entry) => write!(f, "rule:{entry}"),
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
