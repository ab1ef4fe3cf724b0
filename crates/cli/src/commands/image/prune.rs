//! `redoma image prune`.

use redoma_sandbox::Manager;
use redoma_sandbox::homes::Homes;

use super::{bytes, layers};
use crate::args::ImagePruneArgs;
use crate::exit::Exit;
use crate::printer::Printer;

/// Frees what nothing refers to.
pub(super) fn prune(args: &ImagePruneArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let pruned = Manager::new(Homes::from_env()?).native().prune_images()?;
    if args.json {
        printer.json(&pruned)?;
        return Ok(Exit::OK);
    }
    printer.line(format_args!("{} removed, {} freed", layers(pruned.layers), bytes(pruned.bytes)))?;
    if pruned.unfinished > 0 {
        printer.note(format_args!("{} unfinished pulls cleared away", pruned.unfinished));
    }
    Ok(Exit::OK)
}
