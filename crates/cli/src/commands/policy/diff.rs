//! `redoma policy diff [FILE]`: what another policy would change, and whether it widens.

use clap::builder::styling::Style;
use redoma_audit::escape::printable;
use redoma_policy::{CommandLine, Difference, Layer, Source};
use redoma_sandbox::settings::Settings;

use crate::args::PolicyDiffArgs;
use crate::exit::Exit;
use crate::layers;
use crate::printer::{BAD, BOLD, DIM, GOOD, Printer, Table, WARN, paint};

/// Compares the policies that apply here with the same where `FILE` stands for the project's, as if it were trusted;
/// without a file, the built-in profile with what applies here. Exits with 1 when something widens.
pub(crate) fn diff(args: &PolicyDiffArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let settings = Settings::of_process()?;
    let typed = layers::command_line(&args.layers)?;
    let here = settings.sources(args.layers.policy.as_deref())?;
    let (old, new) = match &args.file {
        Some(file) => {
            let other = Source { layer: Layer::Project, trusted: true, ..settings.source(file)? };
            let others = here.iter().filter(|source| source.layer != Layer::Project).cloned();
            let new: Vec<_> = others.chain([other]).collect();
            (settings.resolve(&here, &typed)?, settings.resolve(&new, &typed)?)
        }
        None => (settings.resolve(&[], &CommandLine::default())?, settings.resolve(&here, &typed)?),
    };
    let differences = redoma_policy::diff(&old, &new);
    if args.json {
        printer.json(&differences)?;
    } else if differences.is_empty() {
        printer.note("no difference");
    } else {
        printer.line(table(&differences).render())?;
    }
    Ok(if differences.iter().any(|difference| difference.widens) { Exit::FAILED } else { Exit::OK })
}

fn table(differences: &[Difference]) -> Table {
    let mut table = Table::default();
    for difference in differences {
        let mark = if difference.widens { (WARN, "widens") } else { (GOOD, "narrows") };
        let sides = [(BAD, "-", &difference.before), (GOOD, "+", &difference.after)];
        for (style, sign, text) in sides {
            let Some(text) = text else { continue };
            let origin = difference.origin.as_deref().unwrap_or_default();
            let (text, origin) = (printable(text), paint(DIM, printable(origin)));
            table.row([
                (mark.0, mark.1.to_owned()),
                (BOLD, difference.area.to_owned()),
                (Style::new(), format!("{} {origin}", paint(style, format_args!("{sign} {text}")))),
            ]);
        }
    }
    table
}
