//! `redoma policy init`: a commented policy to begin from.

use anyhow::Context;
use redoma_audit::escape::printable;
use redoma_policy::{Layer, Source};
use redoma_sandbox::settings::Settings;
use redoma_sandbox::trust::TrustStore;

use crate::args::PolicyInitArgs;
use crate::exit::Exit;
use crate::failure::hinted;
use crate::printer::Printer;

/// Writes a new file; an old one stays as it is.
pub(crate) fn init(args: &PolicyInitArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let settings = Settings::of_process()?;
    let path = if args.user { settings.homes.user_policy() } else { settings.project_policy() };
    if path.symlink_metadata().is_ok() {
        let shown = redoma_sandbox::shell::word(&path);
        return Err(hinted(
            format!("there is a policy already: {shown}"),
            format!("redoma policy check {shown}"),
        ));
    }
    let agent = args.agent.as_deref().map(str::parse).transpose().context("--agent")?;
    let text = redoma_policy::template(&args.profile, agent.as_ref());
    let layer = if args.user { Layer::User } else { Layer::Project };
    let source = Source { layer, path: Some(path.clone()), text: text.clone().into_bytes(), trusted: true };
    super::check_source(&settings, &source)?;
    settings.write_policy(&path, &text)?;
    if !args.user {
        TrustStore::trust(&settings.homes.trust(), &path, text.as_bytes())?;
    }
    printer.note(format_args!("wrote {}", printable(&path)));
    printer.hint("redoma policy show --resolved");
    Ok(Exit::OK)
}
