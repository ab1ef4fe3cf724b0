//! `redoma net flows`: one line for each connection.

use std::collections::BTreeMap;

use redoma_audit::Event;
use redoma_audit::event::{Flow, Visibility};

use super::{bytes, target, visibility};
use crate::args::NetFlowsArgs;
use crate::commands::record;
use crate::exit::Exit;
use crate::printer::{DIM, Printer, Table, paint};

/// How many there are, each kind by itself.
#[derive(Default)]
struct Counts {
    inspected: u64,
    opaque: u64,
    blocked: u64,
}

/// Lists the connections of one session; with `--follow`, each as it ends, until the session does.
pub(crate) fn flows(args: &NetFlowsArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let store = record::open()?;
    let session = record::pick(&store, args.session.as_deref())?;
    if args.follow {
        return follow(args, store.follow(session)?, printer);
    }
    let mut last = BTreeMap::new();
    for record in store.read(session)? {
        if let Event::Flow(flow) = record?.event {
            last.insert(flow.flow, flow);
        }
    }
    let shown: Vec<Flow> = last.into_values().filter(|flow| is_wanted(args, flow)).collect();
    if args.json {
        shown.iter().try_for_each(|flow| printer.json_line(&Event::Flow(flow.clone())))?;
        return Ok(Exit::OK);
    }
    if shown.is_empty() {
        printer.note("no connection");
        return Ok(Exit::OK);
    }
    printer.line(table(&shown).render())?;
    printer.line(Counts::of(&shown).line())?;
    Ok(Exit::OK)
}

fn follow(
    args: &NetFlowsArgs,
    records: impl Iterator<Item = Result<redoma_audit::Record, redoma_audit::Error>>,
    printer: &Printer,
) -> anyhow::Result<Exit> {
    for record in records {
        let record = record?;
        let Event::Flow(flow) = &record.event else { continue };
        if flow.open || !is_wanted(args, flow) {
            continue;
        }
        if args.json {
            printer.json_line(&record.event)?;
        } else {
            let cells = cells(flow).into_iter().map(|(style, text)| paint(style, text)).collect::<Vec<_>>();
            printer.line(format_args!(
                "{} {}",
                paint(DIM, record::local_clock(record.at)),
                cells.join("  ")
            ))?;
        }
    }
    Ok(Exit::OK)
}

fn is_wanted(args: &NetFlowsArgs, flow: &Flow) -> bool {
    let any = args.inspected || args.opaque || args.blocked;
    let kind = match flow.visibility {
        Visibility::Inspected => args.inspected,
        Visibility::Opaque => args.opaque,
        Visibility::Blocked => args.blocked,
    };
    let host = || {
        let name = flow.host.as_ref().map(|host| host.as_str().to_owned());
        name.or_else(|| flow.address.map(|address| address.to_string())).unwrap_or_default()
    };
    let named = args.host.as_ref().is_none_or(|glob| fast_glob::glob_match(glob, host()));
    (kind || !any) && named
}

fn table(flows: &[Flow]) -> Table {
    let mut table = Table::headed(&["#", "process", "to", "protocol", "out", "in", "seen", "why"]);
    flows.iter().for_each(|flow| table.row(cells(flow)));
    table
}

fn cells(flow: &Flow) -> Vec<(clap::builder::styling::Style, String)> {
    let plain = |text: String| (clap::builder::styling::Style::new(), text);
    let (style, seen) = visibility(flow.visibility);
    vec![
        (DIM, flow.flow.to_string()),
        plain(program(flow)),
        plain(target(flow)),
        plain(flow.protocol.to_string()),
        plain(bytes(flow.sent)),
        plain(bytes(flow.received)),
        (style, seen.to_owned()),
        plain(flow.reason.to_string()),
    ]
}

/// The name of the program's file and its number inside.
fn program(flow: &Flow) -> String {
    let Some(process) = &flow.process else { return "-".to_owned() };
    let path = process.path.to_string();
    let name = path.rsplit('/').next().unwrap_or_default();
    format!("{name}[{}]", process.inside.unwrap_or(process.pid))
}

impl Counts {
    fn of(flows: &[Flow]) -> Self {
        let mut counts = Self::default();
        for flow in flows {
            match flow.visibility {
                Visibility::Inspected => counts.inspected += 1,
                Visibility::Opaque => counts.opaque += 1,
                Visibility::Blocked => counts.blocked += 1,
            }
        }
        counts
    }

    fn line(&self) -> String {
        let unseen = if self.opaque > 0 { " (nobody saw what they carried)" } else { "" };
        format!("{} inspected, {} opaque{unseen}, {} blocked", self.inspected, self.opaque, self.blocked)
    }
}
