//! `redoma templates`.

use redoma_sandbox::templates;

use crate::args::ListArgs;
use crate::exit::Exit;
use crate::printer::{BOLD, DIM, Printer, Table};

pub(crate) fn templates(args: &ListArgs, printer: &Printer) -> anyhow::Result<Exit> {
    if args.json {
        printer.json(&templates::all())?;
        return Ok(Exit::OK);
    }
    let mut table = Table::headed(&["NAME", "IMAGE", "ALLOWS", "WHAT IT IS"]);
    for template in templates::all() {
        table.row([
            (BOLD, template.name.clone()),
            (DIM, template.image.to_string()),
            (DIM, template.allow.join(" ")),
            (DIM, template.title.clone()),
        ]);
    }
    printer.line(table.render())?;
    Ok(Exit::OK)
}
