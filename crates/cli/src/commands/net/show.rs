//! `redoma net show FLOW`: everything about one connection.

use anyhow::Context;
use redoma_audit::escape::printable_block;
use redoma_audit::event::{Exchange, Flow, Message};
use redoma_audit::{Event, SessionId, Store};
use serde_json::json;

use super::{bytes, target, visibility};
use crate::args::NetShowArgs;
use crate::commands::log::describe::seconds;
use crate::commands::record;
use crate::exit::Exit;
use crate::failure::hinted;
use crate::printer::{BOLD, DIM, Printer, paint};

/// Shows one connection with its requests.
pub(crate) fn show(args: &NetShowArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let store = record::open()?;
    let (session, number) = pick(&store, &args.flow)?;
    let (mut found, mut exchanges) = (None, Vec::<Exchange>::new());
    for record in store.read(session)? {
        match record?.event {
            Event::Flow(flow) if flow.flow == number => found = Some(flow),
            Event::Exchange(exchange) if exchange.flow == number => {
                exchanges.retain(|known| known.number != exchange.number);
                exchanges.push(exchange);
            }
            _ => {}
        }
    }
    let flow = found.ok_or_else(|| {
        let list = format!("redoma net flows {session}");
        hinted(format!("session {session} has no connection {number}"), list)
    })?;
    exchanges.sort_by_key(|exchange| exchange.number);
    if args.json {
        printer.json(&json!({ "session": session, "flow": flow, "exchanges": exchanges }))?;
        return Ok(Exit::OK);
    }
    tell_flow(&flow, printer)?;
    exchanges.iter().try_for_each(|exchange| tell_exchange(exchange, printer))?;
    Ok(Exit::OK)
}

/// `NUMBER` in the newest session, or `SESSION:NUMBER`.
fn pick(store: &Store, typed: &str) -> anyhow::Result<(SessionId, u64)> {
    let (session, number) = match typed.rsplit_once(':') {
        Some((session, number)) => (Some(session), number),
        None => (None, typed),
    };
    let number = number.parse().with_context(|| {
        hinted(format!("`{typed}` is no number of a connection"), "redoma net flows".to_owned())
    })?;
    Ok((record::pick(store, session)?, number))
}

fn tell_flow(flow: &Flow, printer: &Printer) -> anyhow::Result<()> {
    let (style, seen) = visibility(flow.visibility);
    let head = paint(BOLD, format_args!("#{} {}", flow.flow, target(flow)));
    printer.line(format_args!("{head}  {} ({})", paint(style, seen), flow.reason))?;
    let line = |name: &str, value: String| -> anyhow::Result<()> {
        Ok(printer.line(format_args!("  {} {value}", paint(DIM, format_args!("{name:<9}"))))?)
    };
    if let Some(process) = &flow.process {
        let inside = process.inside.map(|pid| format!(" (process {pid} inside)")).unwrap_or_default();
        line("process", format!("{}{inside}: {}", process.path, process.argv))?;
        for parent in &process.parents {
            line("", format!("started by {parent}"))?;
        }
    }
    if let Some(address) = flow.address {
        line("address", address.to_string())?;
    }
    if let Some(detail) = &flow.detail {
        line("detail", detail.to_string())?;
    }
    if let Some(rule) = &flow.rule {
        line("rule", rule.to_string())?;
    }
    if let Some(change) = &flow.change {
        line("change", change.to_string())?;
    }
    if let Some(tls) = &flow.tls {
        let upstream = tls.upstream_version.as_ref().map(|version| format!(", to the server {version}"));
        line("tls", format!("{} {}{}", tls.version, tls.cipher, upstream.unwrap_or_default()))?;
        if let Some(certificate) = &tls.certificate {
            line("server", format!("certificate sha256:{certificate}"))?;
        }
    }
    let state = if flow.open { "so far" } else { "in all" };
    line(
        "bytes",
        format!(
            "{} out, {} in, {state} {}",
            bytes(flow.sent),
            bytes(flow.received),
            seconds(flow.duration_us)
        ),
    )
}

fn tell_exchange(exchange: &Exchange, printer: &Printer) -> anyhow::Result<()> {
    let status = exchange.status.map_or_else(|| "no answer".to_owned(), |status| status.to_string());
    let refused = exchange.refused.as_ref().map(|reason| format!(" refused: {reason}")).unwrap_or_default();
    let answered = exchange.answered_us.map(|time| format!(", answered after {}", seconds(time)));
    let finished = exchange.finished_us.map(|time| format!(", over after {}", seconds(time)));
    let times = answered.into_iter().chain(finished).collect::<String>();
    let head = paint(BOLD, format_args!("{} {}", exchange.method, exchange.url));
    printer.line(format_args!("\n{head}  {status}{refused}{times}"))?;
    for name in &exchange.credentials {
        printer.line(format_args!("  {} {name}", paint(DIM, "credential put in:")))?;
    }
    tell_message(">", &exchange.request, printer)?;
    exchange.response.as_ref().map_or(Ok(()), |response| tell_message("<", response, printer))
}

fn tell_message(mark: &str, message: &Message, printer: &Printer) -> anyhow::Result<()> {
    let mark = paint(DIM, mark);
    for (name, value) in &message.headers {
        printer.line(format_args!("{mark} {name}: {value}"))?;
    }
    if message.bytes > 0 {
        let digest = message.digest.map(|digest| format!(", blake3:{digest}")).unwrap_or_default();
        printer.line(format_args!(
            "{mark} {}",
            paint(DIM, format_args!("[{}{digest}]", bytes(message.bytes)))
        ))?;
    }
    if let Some(preview) = &message.preview {
        printer.line(printable_block(preview.as_str()))?;
    }
    Ok(())
}
