//! `redoma image rm`.

use redoma_sandbox::homes::Homes;

use super::{open, told};
use crate::args::ImageRmArgs;
use crate::exit::Exit;
use crate::printer::Printer;

/// Forgets each image that was named; the first that is not here ends it.
pub(super) fn rm(args: &ImageRmArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let images = open(&Homes::from_env()?)?;
    let removed = args.references.iter().map(|reference| images.remove(reference));
    let removed = removed.collect::<Result<Vec<_>, _>>()?;
    if args.json {
        printer.json(&removed)?;
    } else {
        removed.iter().try_for_each(|image| printer.line(format_args!("forgot {}", told(image))))?;
        printer.hint("redoma image prune");
    }
    Ok(Exit::OK)
}
