//! `redoma image pull`.

use std::sync::atomic::AtomicBool;

use redoma_image::{Credentials, Limits, Progress};
use redoma_sandbox::homes::Homes;

use super::{bytes, keep, layers, open};
use crate::args::ImagePullArgs;
use crate::exit::Exit;
use crate::printer::Printer;

/// Fetches, verifies, unpacks.
pub(super) fn pull(args: &ImagePullArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let images = open(&Homes::from_env()?)?;
    let credentials = Credentials::find(&args.reference, &|name| std::env::var_os(name))?;
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
    let fetched = images.fetch(&args.reference, credentials, &Limits::default(), &mut watch, &cancel);
    printer.status("");
    keep(fetched?, &images, args.json, printer)
}
