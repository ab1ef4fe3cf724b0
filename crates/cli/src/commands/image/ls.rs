//! `redoma image ls`.

use clap::builder::styling::Style;
use redoma_image::Image;
use redoma_sandbox::homes::Homes;

use super::{bytes, open};
use crate::args::ImageLsArgs;
use crate::exit::Exit;
use crate::printer::{DIM, Printer, Table};

/// One line for each image.
pub(super) fn ls(args: &ImageLsArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let images = open(&Homes::from_env()?)?.list()?;
    if args.json {
        printer.json(&images)?;
    } else if images.is_empty() {
        printer.note("no image");
        printer.hint("redoma image pull debian:12");
    } else {
        let mut table = Table::headed(&["image", "digest", "layers", "size"]);
        images.iter().for_each(|image| table.row(cells(image)));
        printer.line(table.render())?;
    }
    Ok(Exit::OK)
}

fn cells(image: &Image) -> [(Style, String); 4] {
    let plain = Style::new();
    [
        (plain, image.reference.to_string()),
        (DIM, image.digest.hex()[..12].to_owned()),
        (plain, image.layers.len().to_string()),
        (plain, bytes(image.size)),
    ]
}
