//! `redoma image`: what sandboxes are made from.

mod import;
mod ls;
mod prune;
mod pull;
mod rm;

use redoma_audit::escape::printable;
use redoma_image::{Fetched, Image, Images, Reference};
use redoma_sandbox::Manager;
use redoma_sandbox::homes::Homes;

use super::net::bytes;
use crate::args::{ImageArgs, ImageCommand};
use crate::exit::Exit;
use crate::printer::Printer;

/// Does what was typed.
pub(crate) fn dispatch(args: ImageArgs, printer: &Printer) -> anyhow::Result<Exit> {
    match args.command {
        ImageCommand::Pull(args) => pull::pull(&args, printer),
        ImageCommand::Ls(args) => ls::ls(&args, printer),
        ImageCommand::Rm(args) => rm::rm(&args, printer),
        ImageCommand::Import(args) => import::import(&args, printer),
        ImageCommand::Prune(args) => prune::prune(&args, printer),
    }
}

/// Has an image here, fetched if it has to be.
pub(crate) fn need(reference: &Reference, printer: &Printer) -> anyhow::Result<()> {
    if open(&Homes::from_env()?)?.get(reference)?.is_none() {
        printer.note(format_args!("{reference} is not here yet: pulling it"));
        let fetched = pull::fetch(reference, printer)?;
        Manager::new(Homes::from_env()?).native().keep_image(fetched)?;
    }
    Ok(())
}

fn open(homes: &Homes) -> anyhow::Result<Images> {
    Ok(Images::open(&homes.state().join("images"))?)
}

/// Unpacks what was fetched and puts it into the store.
fn keep(fetched: Fetched, json: bool, printer: &Printer) -> anyhow::Result<Exit> {
    let (image, notes) = Manager::new(Homes::from_env()?).native().keep_image(fetched)?;
    notes.iter().for_each(|note| printer.note(printable(note)));
    if json {
        printer.json(&image)?;
    } else {
        printer.line(told(&image))?;
    }
    Ok(Exit::OK)
}

/// One line for one image.
fn told(image: &Image) -> String {
    format!("{}  {}  {}, {}", image.reference, image.digest, layers(image.layers.len()), bytes(image.size))
}

fn layers(count: usize) -> String {
    if count == 1 { "1 layer".to_owned() } else { format!("{count} layers") }
}
