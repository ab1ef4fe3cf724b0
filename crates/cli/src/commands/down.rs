//! `redoma down`.

use redoma_sandbox::driver::Name;
use redoma_sandbox::services;

use super::ps;
use super::sandbox::manager;
use crate::args::DownArgs;
use crate::exit::Exit;
use crate::printer::Printer;

pub(crate) fn down(args: &DownArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let which = ps::which(&args.group)?;
    let end = if args.keep { services::stop_all } else { services::down };
    let mut ended: Vec<Name> = Vec::new();
    for driver in manager(None)?.drivers() {
        ended.extend(end(driver, &which)?);
    }
    if args.json {
        printer.json(&ended)?;
    } else {
        ended.iter().try_for_each(|name| printer.line(name))?;
    }
    Ok(Exit::OK)
}
