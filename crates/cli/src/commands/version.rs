//! `redoma version`.

use serde::Serialize;

use crate::args::VersionArgs;
use crate::exit::Exit;
use crate::printer::Printer;

#[derive(Serialize)]
struct Version {
    version: &'static str,
    target: String,
}

/// Prints the version and what it was built for.
pub(crate) fn version(args: &VersionArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let target = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let version = Version { version: env!("CARGO_PKG_VERSION"), target };
    if args.json {
        printer.json(&version)?;
    } else {
        printer.line(format_args!("redoma {} ({})", version.version, version.target))?;
    }
    Ok(Exit::OK)
}
