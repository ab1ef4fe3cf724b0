//! `redoma up`: a group of services from its file.

use std::collections::BTreeMap;

use redoma_audit::escape::printable;
use redoma_sandbox::Manager;
use redoma_sandbox::driver::{Driver, DriverName, ImageName, Info};
use redoma_sandbox::services::{Plan, Ready, Step, Up, load};
use redoma_sandbox::settings::Settings;

use super::ps;
use super::sandbox::{manager, now};
use crate::args::{DriverArgs, UpArgs};
use crate::exit::Exit;
use crate::layers::variable;
use crate::printer::Printer;

pub(crate) fn up(args: &UpArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let settings = Settings::of_process()?;
    let vars = variables(&args.file.env);
    let vars = |name: &str| vars.get(name).cloned();
    let loaded = load(args.file.file.as_deref(), &settings.project.cwd, &settings, &vars)?;
    let ready = Ready { loaded: &loaded, settings: &settings, now: now(), labels: BTreeMap::new() };
    let plan = ready.plan()?;
    let manager = manager(args.driver.engine_host.as_deref())?;
    let infos = bring_up(driver(&manager, &args.driver)?, &plan, args.recreate, printer)?;
    if args.json {
        printer.json(&infos)?;
    } else {
        printer.line(ps::table(&infos))?;
    }
    Ok(Exit::OK)
}

pub(super) fn driver<'m>(manager: &'m Manager, args: &DriverArgs) -> anyhow::Result<&'m dyn Driver> {
    Ok(manager.driver(args.driver.map_or(DriverName::Native, Into::into))?)
}

/// The variables that were named; nothing else of the environment is known to a file.
pub(super) fn variables(typed: &[String]) -> BTreeMap<String, String> {
    let known = |typed: &String| {
        let (name, value) = variable(typed);
        let value = value.or_else(|| std::env::var(&name).ok())?;
        Some((name, value))
    };
    typed.iter().filter_map(known).collect()
}

/// Images first: nothing is made before all are there.
pub(super) fn bring_up(
    driver: &dyn Driver,
    plan: &Plan,
    recreate: bool,
    printer: &Printer,
) -> anyhow::Result<Vec<Info>> {
    plan.notes.iter().for_each(|note| printer.note(printable(note)));
    for planned in &plan.services {
        if let (ImageName::Reference(name), DriverName::Native) = (&planned.spec.image, driver.name()) {
            super::image::need(&name.parse()?, printer)?;
        }
    }
    let tell = &mut |step: Step<'_>| printer.note(told(step));
    let infos = Up { driver, plan, recreate, tell }.run()?;
    infos.iter().flat_map(|info| &info.notes).for_each(|note| printer.note(format_args!("note: {note}")));
    Ok(infos)
}

fn told(step: Step<'_>) -> String {
    match step {
        Step::Created(name) => format!("{name}: made"),
        Step::Started(name) => format!("{name}: started"),
        Step::Runs(name) => format!("{name}: runs already"),
        Step::Idle(name) => format!("{name}: nothing is to be started in it"),
        Step::Waiting(name) => format!("{name}: waiting for it"),
        Step::Works(name) => format!("{name}: works"),
        Step::Ended(name) => format!("{name}: ended"),
        Step::Silent(name) => format!("{name}: does not answer on its port yet"),
        Step::Surplus(name) => format!("{}: is there, and not in the file any more", printable(name)),
    }
}
