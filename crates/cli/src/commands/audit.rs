//! `redoma audit`: the record as a whole.

use anyhow::Context;
use redoma_policy::TimeSpan;
use redoma_sandbox::retention;
use serde_json::json;

use super::{record, sessions};
use crate::args::{AuditArgs, AuditCommand, AuditPurgeArgs, LayerArgs};
use crate::exit::Exit;
use crate::failure::hinted;
use crate::layers;
use crate::printer::Printer;

/// Does what was typed.
pub(crate) fn dispatch(args: AuditArgs, printer: &Printer) -> anyhow::Result<Exit> {
    match args.command {
        AuditCommand::Purge(args) => purge(&args, printer),
        AuditCommand::Verify(args) => sessions::verify(&record::open()?, args.json, printer),
    }
}

fn purge(args: &AuditPurgeArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let resolved = layers::resolve(&LayerArgs::default(), None, &[])?;
    let typed = args
        .older_than
        .as_deref()
        .map(|text| text.parse::<TimeSpan>().with_context(|| format!("--older-than {text} has no meaning")));
    let keep = typed.transpose()?.or(resolved.policy.audit.retention).ok_or_else(|| {
        hinted("the policy does not say how long sessions are kept", "redoma audit purge --older-than 90d")
    })?;
    let store = record::open_in(&resolved.settings.homes)?;
    let purged = retention::purge(&store, keep)?;
    if args.json {
        printer.json(&json!({ "sessions": purged.sessions, "bytes": purged.bytes }))?;
    } else {
        let (count, room) = (purged.sessions.len(), redoma_policy::ByteSize(purged.bytes));
        printer.line(format_args!("removed {count} sessions older than {keep}, {room}"))?;
    }
    Ok(Exit::OK)
}
