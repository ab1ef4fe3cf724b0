//! `redoma policy check [FILE]`.

use redoma_audit::escape::printable;
use redoma_policy::{CommandLine, ResolvedPolicy, Source};
use redoma_sandbox::settings::Settings;

use crate::args::PolicyCheckArgs;
use crate::exit::Exit;
use crate::printer::{GOOD, Printer, paint};

/// Checks one file, or every layer that applies here.
pub(crate) fn check(args: &PolicyCheckArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let settings = Settings::of_process()?;
    let sources = match &args.file {
        Some(file) => vec![settings.source(file)?],
        None => settings.sources(None)?,
    };
    for source in &sources {
        check_source(&settings, source)?;
        let name = source.path.as_deref().map(printable).unwrap_or_default();
        printer.line(format_args!("{} {} policy {name}", paint(GOOD, "ok"), source.layer))?;
    }
    if args.file.is_none() {
        let policy = settings.resolve(&sources, &CommandLine::default())?;
        super::tell_notices(policy.notices.iter(), printer);
        printer.line(format_args!("{} all layers together", paint(GOOD, "ok")))?;
    }
    Ok(Exit::OK)
}

/// Resolves one file alone, as if it were trusted: every line of it must make sense.
pub(crate) fn check_source(settings: &Settings, source: &Source) -> anyhow::Result<ResolvedPolicy> {
    let trusted = Source { trusted: true, ..source.clone() };
    Ok(settings.resolve(&[trusted], &CommandLine::default())?)
}
