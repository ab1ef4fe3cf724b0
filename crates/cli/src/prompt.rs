//! Asking the person at the terminal.

use std::io::{BufRead, IsTerminal, Write};

use crate::failure::hinted;

/// Asks a question that is answered with `y` or anything else for no.
///
/// Without a terminal there is nobody to ask: that is an error with `instead` as the way to say yes beforehand.
pub(crate) fn confirm(question: &str, instead: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(hinted("there is no terminal to ask at", instead));
    }
    write!(anstream::stderr(), "{question} [y/N] ")?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
