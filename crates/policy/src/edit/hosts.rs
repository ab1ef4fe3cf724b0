//! Edits of the rules about hosts.

use std::num::NonZeroU16;

use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, TableLike, Value};

use super::EditError;
use crate::{Endpoint, HostPattern, Preset};

/// Whether a host is this machine, of which ports are reached one by one.
pub(super) fn is_local(host: &HostPattern) -> bool {
    host.only_host().is_some_and(|host| host.is_loopback())
}

/// Adds what lets one host of a preset be reached.
pub(super) fn add_endpoint(
    policy: &mut DocumentMut,
    preset: &Preset,
    endpoint: &Endpoint,
) -> Result<(), EditError> {
    if let Some(reaches) = endpoint.reaches() {
        return reaches.iter().try_for_each(|reach| add_reach(policy, reach.port));
    }
    for port in &endpoint.ports {
        // A rule that is there already is the user's own and keeps its words.
        let Some(rule) = add_rule(policy, &endpoint.host, Some(*port), "inspect")? else { continue };
        let comment = format!("\n# {}: {}\n", preset.name, one_line(&endpoint.from));
        rule.decor_mut().set_prefix(comment);
        if endpoint.private {
            rule.insert("private", toml_edit::value(true));
        }
    }
    Ok(())
}

/// A line break would end the comment.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Adds a port of this machine to those that are reached.
pub(super) fn add_reach(policy: &mut DocumentMut, port: NonZeroU16) -> Result<(), EditError> {
    let reaches = reaches(policy)?;
    let text = format!("localhost:{port}");
    if !reaches.iter().any(|value| value.as_str() == Some(&text)) {
        super::push(reaches, &text);
    }
    Ok(())
}

/// Takes a port of this machine out.
pub(super) fn remove_reach(policy: &mut DocumentMut, port: NonZeroU16) -> Result<(), EditError> {
    let present = policy.get("network").and_then(|network| network.get("local"));
    if present.and_then(|local| local.get("reach")).is_none() {
        return Ok(());
    }
    let means = |value: &Value| value.as_str().and_then(|text| text.parse::<crate::Reach>().ok());
    reaches(policy)?.retain(|value| means(value).is_none_or(|reach| reach.port != port));
    Ok(())
}

fn reaches(policy: &mut DocumentMut) -> Result<&mut Array, EditError> {
    let local = network(policy)?.entry("local").or_insert_with(|| Item::Table(Table::new()));
    let local = local.as_table_like_mut().ok_or(EditError::Shape("network.local"))?;
    let reach = local.entry("reach").or_insert_with(|| Item::Value(Value::Array(Array::new())));
    reach.as_array_mut().ok_or(EditError::Shape("reach"))
}

fn network(policy: &mut DocumentMut) -> Result<&mut dyn TableLike, EditError> {
    let network = policy.entry("network").or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    network.as_table_like_mut().ok_or(EditError::Shape("network"))
}

/// Adds a rule, or its port to the one that is there. What was made new comes back.
pub(super) fn add_rule<'a>(
    policy: &'a mut DocumentMut,
    host: &HostPattern,
    port: Option<NonZeroU16>,
    action: &str,
) -> Result<Option<&'a mut Table>, EditError> {
    let network = network(policy)?;
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
    let existing = rules.iter().position(|rule| same(rule) && denies(rule) == (action == "deny"));
    match existing.and_then(|at| rules.get_mut(at)) {
        Some(rule) => add_port(rule, port).map(|()| None),
        None => {
            rules.push(new_rule(host, port, action));
            let last = rules.len() - 1;
            Ok(rules.get_mut(last))
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
