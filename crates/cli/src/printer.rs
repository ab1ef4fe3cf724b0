//! The only way to the terminal: standard output for answers, standard error for everything said beside them.
//!
//! Colours are decided by anstream (`NO_COLOR`, `CLICOLOR_FORCE`, whether a terminal reads). Text that came from a
//! sandbox, a file or a path goes through [`redoma_audit::escape`] before it gets here.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;

/// What is allowed, fine or new.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// What is denied, missing or broken.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// What is asked or needs a look.
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
/// What can be pasted.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();
/// Headings.
pub(crate) const BOLD: Style = Style::new().bold();
/// What only explains.
pub(crate) const DIM: Style = Style::new().dimmed();

/// `text` in `style`, reset at its end.
pub(crate) fn paint(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Prints for one command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Printer {
    quiet: bool,
}

// === impl Printer ===

impl Printer {
    /// A quiet printer says nothing on standard error but errors.
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// The answer: one line, or several, on standard output.
    pub(crate) fn line(&self, text: impl Display) -> io::Result<()> {
        writeln!(anstream::stdout(), "{text}")
    }

    /// The answer as bytes that must not change: a schema, a script, a page.
    pub(crate) fn raw(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    /// The answer for a program: one JSON document.
    pub(crate) fn json(&self, value: &impl Serialize) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec_pretty(value)?;
        text.push(b'\n');
        Ok(self.raw(&text)?)
    }

    /// One compact JSON line.
    pub(crate) fn json_line(&self, value: &impl Serialize) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec(value)?;
        text.push(b'\n');
        Ok(self.raw(&text)?)
    }

    /// Something beside the answer, on standard error; unless quiet.
    ///
    /// A standard error that is closed must not end a command that works.
    pub(crate) fn note(&self, text: impl Display) {
        if !self.quiet {
            let _ = writeln!(anstream::stderr(), "{text}");
        }
    }

    /// How far it is, on the last line of a terminal, in place of what was said so before; nothing takes it away.
    pub(crate) fn status(&self, text: impl Display) {
        if !self.quiet && io::stderr().is_terminal() {
            // Carriage return and "erase in line": ECMA-48, 8.3.41.
            let _ = write!(anstream::stderr(), "\r\u{1b}[K{text}");
        }
    }

    /// A line to paste, on standard error; unless quiet.
    pub(crate) fn hint(&self, text: impl Display) {
        self.note(format_args!("{HINT}hint:{HINT:#} {text}"));
    }
}

/// Rows padded to columns, two spaces between, the last column left as it is.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<Cell>>,
}

#[derive(Debug)]
struct Cell {
    style: Style,
    text: String,
}

// === impl Table ===

impl Table {
    /// A table that begins with a heading.
    pub(crate) fn headed(names: &[&str]) -> Self {
        let mut table = Self::default();
        table.row(names.iter().map(|name| (BOLD, (*name).to_owned())));
        table
    }

    /// Adds a row of styled cells.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (Style, String)>) {
        self.rows.push(cells.into_iter().map(|(style, text)| Cell { style, text }).collect());
    }

    /// The lines, without a line feed at the end.
    pub(crate) fn render(&self) -> String {
        let widths = self.widths();
        let lines: Vec<String> = self.rows.iter().map(|row| render_row(row, &widths)).collect();
        lines.join("\n")
    }

    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(Cell::width).max();
        (0..columns).map(|column| width(column).unwrap_or(0)).collect()
    }
}

impl Cell {
    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

fn render_row(row: &[Cell], widths: &[usize]) -> String {
    let mut line = String::new();
    for (index, cell) in row.iter().enumerate() {
        line.push_str(&paint(cell.style, &cell.text));
        if index + 1 < row.len() {
            line.push_str(&" ".repeat(widths[index] - cell.width() + 2));
        }
    }
    line.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_the_last_is_not_padded() {
        let mut table = Table::default();
        table.row([(Style::new(), "a".into()), (Style::new(), "bb".into())]);
        table.row([(Style::new(), "açaí".into()), (Style::new(), "c".into())]);
        assert_eq!(table.render(), "a     bb\naçaí  c");
    }
}
