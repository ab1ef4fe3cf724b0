//! `redoma policy profiles [NAME]` and `redoma policy agents [NAME]`.

use clap::builder::styling::Style;
use redoma_policy::AgentPreset;
use serde::Serialize;

use crate::args::PolicyListArgs;
use crate::exit::Exit;
use crate::failure::hinted;
use crate::printer::{BOLD, Printer, Table};

#[derive(Serialize)]
struct ProfileRow {
    name: &'static str,
    about: &'static str,
}

#[derive(Serialize)]
struct AgentRow {
    name: &'static str,
    title: String,
    programs: &'static [&'static str],
    notes: String,
}

/// Lists the built-in profiles, or prints one.
pub(crate) fn profiles(args: &PolicyListArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let profiles = redoma_policy::profiles();
    if let Some(name) = &args.name {
        let found = profiles.iter().find(|profile| profile.name == name).map(|profile| profile.text);
        return text("profile", name, found, printer);
    }
    let rows = profiles.iter().map(|profile| ProfileRow { name: profile.name, about: profile.about });
    if args.json {
        printer.json(&rows.collect::<Vec<_>>())?;
        return Ok(Exit::OK);
    }
    let mut table = Table::default();
    rows.for_each(|row| table.row([(BOLD, row.name.to_owned()), (Style::new(), row.about.to_owned())]));
    printer.line(table.render())?;
    Ok(Exit::OK)
}

/// Lists the agents with a preset, or prints one preset.
pub(crate) fn agents(args: &PolicyListArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let agents = redoma_policy::agents();
    if let Some(name) = &args.name {
        let found = agents.iter().find(|agent| agent.name == name).map(|agent| agent.text);
        return text("agent", name, found, printer);
    }
    let rows = agents.iter().map(agent_row).collect::<anyhow::Result<Vec<_>>>()?;
    if args.json {
        printer.json(&rows)?;
        return Ok(Exit::OK);
    }
    let mut table = Table::headed(&["NAME", "AGENT", "PICKED BY"]);
    for row in rows {
        let cells = [(BOLD, row.name.to_owned()), (Style::new(), row.title)];
        table.row(cells.into_iter().chain([(Style::new(), row.programs.join(" "))]));
    }
    printer.line(table.render())?;
    Ok(Exit::OK)
}

fn agent_row(agent: &AgentPreset) -> anyhow::Result<AgentRow> {
    let about = agent.describe()?;
    Ok(AgentRow { name: agent.name, title: about.title, programs: agent.programs, notes: about.notes })
}

fn text(what: &str, name: &str, found: Option<&str>, printer: &Printer) -> anyhow::Result<Exit> {
    let text = found
        .ok_or_else(|| hinted(format!("there is no {what} {name}"), format!("redoma policy {what}s")))?;
    printer.raw(text.as_bytes())?;
    Ok(Exit::OK)
}
