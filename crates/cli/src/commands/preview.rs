//! `redoma preview`: sandboxes for each branch of a repository.

use redoma_audit::escape::printable;
use redoma_sandbox::Manager;
use redoma_sandbox::driver::{Driver, State};
use redoma_sandbox::preview::{self, Checkout, Preview, PreviewError, Wanted};
use redoma_sandbox::settings::Settings;

use super::sandbox::{manager, now};
use super::{ps, up};
use crate::args::{PreviewArgs, PreviewCommand, PreviewLsArgs, PreviewOneArgs, PreviewUpArgs};
use crate::exit::Exit;
use crate::printer::{DIM, GOOD, Printer, Table};

/// Does what was typed.
pub(crate) fn dispatch(args: PreviewArgs, printer: &Printer) -> anyhow::Result<Exit> {
    match args.command {
        PreviewCommand::Up(args) => start(&args, printer),
        PreviewCommand::Status(args) => status(&args, printer),
        PreviewCommand::Down(args) => remove(&args, printer),
        PreviewCommand::Ls(args) => list(&args, printer),
    }
}

fn start(args: &PreviewUpArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let settings = Settings::of_process()?;
    let checkout = Checkout::of(&settings.project)?;
    let vars = up::variables(&args.env);
    let vars = |name: &str| vars.get(name).cloned();
    let wanted =
        Wanted { checkout: &checkout, settings: &settings, vars: &vars, direct: args.direct, now: now() };
    let manager = manager(args.driver.engine_host.as_deref())?;
    let driver = up::driver(&manager, &args.driver)?;
    let plan = wanted.plan(driver)?;
    let infos = up::bring_up(driver, &plan, args.recreate, printer)?;
    if args.json {
        printer.json(&infos)?;
        return Ok(Exit::OK);
    }
    printer.line(ps::table(&infos))?;
    if let Some(first) = infos.first() {
        printer.hint(format_args!("redoma sandbox shell {}", first.spec.name));
    }
    Ok(Exit::OK)
}

fn status(args: &PreviewOneArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let manager = manager(None)?;
    let (_, preview) = find(&manager, args)?;
    if args.json {
        printer.json(&preview)?;
        return Ok(Exit::OK);
    }
    printer.line(format_args!("{}, {}", preview.name, printable(&preview.branch)))?;
    printer.line(ps::table(&preview.sandboxes))?;
    Ok(Exit::OK)
}

fn remove(args: &PreviewOneArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let manager = manager(None)?;
    let (driver, preview) = find(&manager, args)?;
    preview::remove(driver, &preview)?;
    let gone: Vec<_> = preview.sandboxes.iter().map(|info| &info.spec.name).collect();
    if args.json {
        printer.json(&gone)?;
    } else {
        gone.iter().try_for_each(|name| printer.line(name))?;
    }
    Ok(Exit::OK)
}

fn find<'m>(manager: &'m Manager, args: &PreviewOneArgs) -> Result<(&'m dyn Driver, Preview), anyhow::Error> {
    let project = Settings::of_process()?.project;
    let mut missing = None;
    for driver in manager.drivers() {
        match preview::find(driver, &project, args.branch.as_deref()) {
            Ok(preview) => return Ok((driver, preview)),
            Err(error) => missing = missing.or(Some(error)),
        }
    }
    Err(missing.unwrap_or(PreviewError::NoPreview(String::new())).into())
}

fn list(args: &PreviewLsArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let repository = match args.all {
        true => None,
        false => Some(Checkout::of(&Settings::of_process()?.project)?.repository),
    };
    let mut all = Vec::new();
    for driver in manager(None)?.drivers() {
        all.extend(preview::previews(driver, repository.as_deref())?);
    }
    if args.json {
        printer.json(&all)?;
        return Ok(Exit::OK);
    }
    if all.is_empty() {
        printer.note("there are no previews");
        printer.hint("redoma preview up");
        return Ok(Exit::OK);
    }
    let mut table = Table::headed(&["NAME", "BRANCH", "RUNNING", "PORTS", "REPOSITORY"]);
    for preview in &all {
        let running = preview.sandboxes.iter().filter(|info| info.state == State::Running).count();
        let ports = preview.sandboxes.iter().flat_map(|info| &info.spec.publish);
        let ports: Vec<String> = ports.map(|port| format!("127.0.0.1:{}", port.outside)).collect();
        table.row([
            (GOOD, printable(&preview.name).into_owned()),
            (Default::default(), printable(&preview.branch).into_owned()),
            (DIM, format!("{running} of {}", preview.sandboxes.len())),
            (DIM, ports.join(" ")),
            (DIM, printable(&preview.repository).into_owned()),
        ]);
    }
    printer.line(table.render())?;
    Ok(Exit::OK)
}
