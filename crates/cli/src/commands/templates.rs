//! `redoma templates`.

use redoma_sandbox::templates;

use crate::args::TemplatesArgs;
use crate::exit::Exit;
use crate::printer::{DIM, GOOD, Printer, Table};

pub(crate) fn templates(args: &TemplatesArgs, printer: &Printer) -> anyhow::Result<Exit> {
    if args.json {
        printer.json(templates::all())?;
        return Ok(Exit::OK);
    }
    let mut table = Table::headed(&["NAME", "IMAGE", "PORTS", "ALLOWS", "WHAT"]);
    for (name, template) in templates::all() {
        let ports: Vec<String> = template.ports.iter().map(ToString::to_string).collect();
        table.row([
            (GOOD, name.clone()),
            (DIM, template.image.to_string()),
            (DIM, ports.join(" ")),
            (DIM, template.allow.join(" ")),
            (Default::default(), template.about.clone()),
        ]);
    }
    printer.line(table.render())?;
    Ok(Exit::OK)
}
