//! `redoma image prune`.

use redoma_sandbox::homes::Homes;

use super::in_use::in_use;
use super::{bytes, layers, open};
use crate::args::ImagePruneArgs;
use crate::exit::Exit;
use crate::printer::Printer;

/// Frees what nothing refers to.
pub(super) fn prune(args: &ImagePruneArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let homes = Homes::from_env()?;
    let images = open(&homes)?;
    let exclusive = images.exclusive()?;
    // Only now nobody can begin to use a layer.
    let pruned = exclusive.prune(&in_use(homes.state())?)?;
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
