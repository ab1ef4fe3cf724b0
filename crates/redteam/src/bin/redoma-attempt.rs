//! Runs one attempt and prints its outcome as JSON: `redoma-attempt NAME STAGE`.
//!
//! What `redoma redteam --attempt` does inside a sandbox, without the rest of Redoma: for seeing attempts
//! succeed where nothing is around them, and for trying them under other sandboxes.

use std::io::{self, Write};
use std::process::ExitCode;

use redoma_redteam::{Stage, run_attempt};

fn main() -> ExitCode {
    match report() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(io::stderr(), "error: {error}"));
            ExitCode::from(2)
        }
    }
}

fn report() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(stage)) = (arguments.next(), arguments.next()) else {
        return Err("usage: redoma-attempt NAME STAGE".into());
    };
    let outcome = run_attempt(&name, &Stage::from_json(&stage)?).ok_or("no such attempt")?;
    writeln!(io::stdout(), "{}", serde_json::to_string(&outcome)?)?;
    Ok(())
}
