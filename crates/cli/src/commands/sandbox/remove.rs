//! `redoma sandbox rm`.

use redoma_sandbox::Manager;
use redoma_sandbox::driver::DriverError;

use crate::args::RemoveArgs;
use crate::exit::Exit;
use crate::printer::Printer;

/// All are tried before a failure is told: what could be removed was.
pub(super) fn remove(manager: &Manager, args: &RemoveArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let mut removed = Vec::new();
    let mut first = Ok(());
    if args.all {
        // One driver after the other: what speaks to an engine has threads, and the native one forks.
        for driver in manager.drivers() {
            for info in driver.list()? {
                match driver.destroy(&info.spec.id) {
                    Ok(()) => removed.push(info.spec.name.to_string()),
                    Err(error) => first = first.and(Err(error)),
                }
            }
        }
    }
    for text in args.ids.clone() {
        let one = || -> Result<(), DriverError> {
            let driven = super::find(manager, &text)?;
            driven.driver.destroy(&driven.id)
        };
        match one() {
            Ok(()) => removed.push(text),
            Err(error) => first = first.and(Err(error)),
        }
    }
    if args.json {
        printer.json(&removed)?;
    } else {
        removed.iter().try_for_each(|name| printer.line(name))?;
    }
    first?;
    Ok(Exit::OK)
}
