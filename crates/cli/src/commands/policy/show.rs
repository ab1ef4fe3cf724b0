//! `redoma policy show [--resolved]`.

use redoma_audit::escape::{printable, printable_block};
use redoma_policy::Source;
use serde::Serialize;

use crate::args::PolicyShowArgs;
use crate::exit::Exit;
use crate::layers::{self, Resolved};
use crate::printer::{BOLD, DIM, Printer, WARN, paint};

#[derive(Serialize)]
struct ShownSource<'a> {
    layer: redoma_policy::Layer,
    path: Option<&'a std::path::Path>,
    trusted: bool,
    hash: String,
    text: std::borrow::Cow<'a, str>,
}

/// Shows the files, or with `--resolved` what they come to.
pub(crate) fn show(args: &PolicyShowArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let resolved = layers::resolve(&args.layers, None, &[])?;
    match (args.resolved, args.json) {
        (true, true) => printer.json(&resolved.policy)?,
        (true, false) => printer.line(printable_block(&resolved.policy.to_string()).trim_end())?,
        (false, true) => printer.json(&resolved.sources.iter().map(shown).collect::<Vec<_>>())?,
        (false, false) => show_sources(&resolved, printer)?,
    }
    if !args.json {
        super::tell_notices(resolved.policy.notices.iter(), printer);
    }
    Ok(Exit::OK)
}

fn shown(source: &Source) -> ShownSource<'_> {
    ShownSource {
        layer: source.layer,
        path: source.path.as_deref(),
        trusted: source.trusted,
        hash: redoma_policy::content_hash(&source.text).to_string(),
        text: String::from_utf8_lossy(&source.text),
    }
}

fn show_sources(resolved: &Resolved, printer: &Printer) -> anyhow::Result<()> {
    let profile = &resolved.policy.profile;
    printer.line(format_args!(
        "{} {}",
        paint(BOLD, format_args!("profile {profile}")),
        paint(DIM, "built in")
    ))?;
    for source in &resolved.sources {
        let path = source.path.as_deref().map(printable).unwrap_or_default();
        let mark = if source.trusted { String::new() } else { paint(WARN, " not trusted: it only narrows") };
        printer.line(format_args!("\n{} {path}{mark}", paint(BOLD, source.layer)))?;
        printer.line(printable_block(&*String::from_utf8_lossy(&source.text)).trim_end())?;
    }
    Ok(())
}
