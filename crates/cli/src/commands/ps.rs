//! `redoma ps`: the services of a group, as their drivers find them.

use redoma_audit::escape::printable;
use redoma_sandbox::Manager;
use redoma_sandbox::driver::{Driver, Info, InvalidName, Label};
use redoma_sandbox::services::{self, ServicesError, Which, load};
use redoma_sandbox::settings::Settings;

use super::sandbox::{manager, now, span, style};
use crate::args::{GroupArgs, PsArgs};
use crate::exit::Exit;
use crate::printer::{DIM, GOOD, Printer, Table};

pub(crate) fn ps(args: &PsArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let which = if args.all { Which::default() } else { which(&args.group)? };
    let infos: Vec<Info> = members(&manager(None)?, &which)?.into_iter().map(|(_, info)| info).collect();
    if args.json {
        printer.json(&infos)?;
        return Ok(Exit::OK);
    }
    if infos.is_empty() {
        printer.note("no services are there");
        printer.hint("redoma up");
        return Ok(Exit::OK);
    }
    printer.line(table(&infos))?;
    Ok(Exit::OK)
}

/// The sandboxes of a group, or of all groups, each with its driver.
pub(super) fn members<'m>(
    manager: &'m Manager,
    which: &Which,
) -> anyhow::Result<Vec<(&'m dyn Driver, Info)>> {
    let mut all = Vec::new();
    for driver in manager.drivers() {
        all.extend(services::services_of(driver, which)?.into_iter().map(|info| (driver, info)));
    }
    Ok(all)
}

/// The group that is meant. What its file wants from the environment is no matter for that.
pub(super) fn which(args: &GroupArgs) -> anyhow::Result<Which> {
    if let Some(name) = &args.group {
        let invalid = |error: InvalidName| ServicesError::Name { what: name.clone(), why: error.to_string() };
        return Ok(Which { group: Some(name.parse().map_err(invalid)?), file: None });
    }
    let settings = Settings::of_process()?;
    let anything = |_: &str| Some("1".to_owned());
    let loaded = load(args.file.as_deref(), &settings.project.cwd, &settings, &anything)?;
    Ok(Which { file: Some(loaded.place()), group: Some(loaded.group.name) })
}

pub(super) fn table(infos: &[Info]) -> String {
    let mut table = Table::headed(&["SERVICE", "GROUP", "STATE", "PORTS", "IMAGE", "AGE"]);
    for info in infos {
        let spec = &info.spec;
        let label = |label| printable(spec.labels.get(&label).map_or("", String::as_str)).into_owned();
        let ports: Vec<String> =
            spec.publish.iter().map(|port| format!("127.0.0.1:{}", port.outside)).collect();
        table.row([
            (GOOD, label(Label::Service)),
            (DIM, label(Label::Group)),
            (style(info.state), info.state.to_string()),
            (DIM, ports.join(" ")),
            (DIM, printable(&spec.image.to_string()).into_owned()),
            (DIM, span(now() - spec.created)),
        ]);
    }
    table.render()
}
