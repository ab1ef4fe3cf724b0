//! `redoma image pull`.

use std::sync::atomic::AtomicBool;

use redoma_image::{Credentials, Fetched, Limits, Progress, Reference};
use redoma_sandbox::homes::Homes;

use super::{bytes, keep, layers, open};
use crate::args::ImagePullArgs;
use crate::exit::Exit;
use crate::printer::Printer;

/// Fetches, verifies, unpacks.
pub(super) fn pull(args: &ImagePullArgs, printer: &Printer) -> anyhow::Result<Exit> {
    keep(fetch(&args.reference, printer)?, args.json, printer)
}

/// Fetches and verifies, and shows how far it is.
pub(super) fn fetch(reference: &Reference, printer: &Printer) -> anyhow::Result<Fetched> {
    let images = open(&Homes::from_env()?)?;
    let credentials = Credentials::find(reference, &|name| std::env::var_os(name))?;
    let mut received = 0;
    let mut all = 0;
    let mut watch = |progress| match progress {
        Progress::Planned { layers: count, missing, bytes: size } => {
            all = size;
            printer.note(format_args!("{}, {missing} to fetch ({})", layers(count), bytes(size)));
        }
        Progress::Received(more) => {
            received += more;
            printer.status(format_args!("{} of {}", bytes(received), bytes(all)));
        }
        Progress::Layer => {}
    };
    // Whoever interrupts this ends the process: nothing of a pull is seen before it is whole.
    let cancel = AtomicBool::new(false);
    let fetched = images.fetch(reference, credentials, &Limits::default(), &mut watch, &cancel);
    printer.status("");
    Ok(fetched?)
}
