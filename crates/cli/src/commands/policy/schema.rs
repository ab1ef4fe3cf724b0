//! `redoma policy schema`.

use crate::exit::Exit;
use crate::printer::Printer;

/// Prints the JSON schema that editors check a `redoma.toml` with.
pub(crate) fn schema(printer: &Printer) -> anyhow::Result<Exit> {
    printer.raw(redoma_policy::schema().as_bytes())?;
    Ok(Exit::OK)
}
