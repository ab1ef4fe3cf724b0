//! The only way to the terminal: standard output for answers, standard error for everything said beside them.
//!
//! Colours are decided by anstream (`NO_COLOR`, `CLICOLOR_FORCE`, whether a terminal reads). Text that came from a
//! sandbox, a file or a path goes through [`redoma_audit::escape`] before it gets here.

use std::fmt::Display;
use std::io::{self, Write};

use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;

/// What is denied, missing or broken.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// What can be pasted.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default();
/// What only explains.
pub(crate) const DIM: Style = Style::new().dimmed();

/// Prints for one command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Printer;

// === impl Printer ===

impl Printer {
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
}
