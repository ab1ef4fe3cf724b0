//! `redoma policy trust [FILE]`: the user says that a policy file's exact content may widen.

use std::path::Path;

use redoma_audit::escape::{printable, printable_block};
use redoma_policy::Source;
use redoma_sandbox::services;
use redoma_sandbox::settings::Settings;
use redoma_sandbox::trust::TrustStore;

use crate::args::PolicyTrustArgs;
use crate::exit::Exit;
use crate::printer::{BOLD, Printer, paint};
use crate::prompt;

/// Shows the file, asks, and remembers its hash.
pub(crate) fn trust(args: &PolicyTrustArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let settings = Settings::of_process()?;
    let file = args.file.clone().unwrap_or_else(|| settings.project_policy());
    if args.forget {
        let path = file.canonicalize().unwrap_or(file);
        TrustStore::forget(&settings.homes.trust(), &path)?;
        printer.note(format_args!("{} is not trusted", printable(&path)));
        return Ok(Exit::OK);
    }
    let source = settings.source(&file)?;
    let path = source.path.as_deref().unwrap_or(&file);
    check(&settings, &source, path)?;
    if !args.yes && !confirmed(path, &source.text, printer)? {
        return Ok(Exit::FAILED);
    }
    // The bytes that were shown are those that are trusted: the file itself may have changed since.
    let hash = TrustStore::trust(&settings.homes.trust(), path, &source.text)?;
    printer.note(format_args!("trusted {} with content {hash}", printable(path)));
    Ok(Exit::OK)
}

/// What has no meaning is not worth trust. Of a file that describes services, variables do not matter for that.
fn check(settings: &Settings, source: &Source, path: &Path) -> anyhow::Result<()> {
    if services::is_services_file(path) {
        services::parse(path, std::str::from_utf8(&source.text)?, &|_| Some("1".to_owned()))?;
        return Ok(());
    }
    super::check::check_source(settings, source).map(drop)
}

fn confirmed(path: &Path, text: &[u8], printer: &Printer) -> anyhow::Result<bool> {
    printer.line(paint(BOLD, printable(path)))?;
    printer.line(printable_block(std::str::from_utf8(text)?).trim_end())?;
    prompt::confirm("Trust this content?", "redoma policy trust --yes")
}
