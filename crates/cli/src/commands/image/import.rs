//! `redoma image import`.

use std::path::Path;

use redoma_image::Limits;
use redoma_sandbox::homes::Homes;

use super::{keep, open};
use crate::args::ImageImportArgs;
use crate::exit::Exit;
use crate::printer::Printer;

/// Reads, verifies, unpacks.
pub(super) fn import(args: &ImageImportArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let images = open(&Homes::from_env()?)?;
    let path = if args.path == Path::new("-") { Path::new("/dev/stdin") } else { &args.path };
    let fetched = images.import(path, args.name.as_ref(), &Limits::default())?;
    keep(fetched, args.json, printer)
}
