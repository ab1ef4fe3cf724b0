//! Time measured inside: `xtask clock -- CMD` prints how long CMD took, in nanoseconds.
//!
//! Started inside a sandbox, it leaves out what starting the sandbox took, so that only the cost of running
//! under one is compared.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process::shown;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Run it this often and print each time on its own line
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// Run this before each round, off the clock
    #[arg(long, value_name = "SCRIPT")]
    before: Option<String>,
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<std::ffi::OsString>,
}

/// Times a command, here.
pub(crate) fn run(options: &Options) -> Result<()> {
    for _ in 0..options.rounds {
        if let Some(script) = &options.before {
            time(Command::new("sh").arg("-c").arg(script))?;
        }
        let took = time(Command::new(&options.command[0]).args(&options.command[1..]))?;
        println!("{}", took.as_nanos());
    }
    Ok(())
}

/// From before the start to after the end. Output is discarded; failure is an error, for a broken
/// contender is fast.
pub(crate) fn time(command: &mut Command) -> Result<Duration> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let start = Instant::now();
    let child = command.spawn().with_context(|| format!("cannot start `{}`", shown(command)))?;
    let output = child.wait_with_output()?;
    let took = start.elapsed();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{}` ended with {}: {}", shown(command), output.status, said.trim());
    }
    Ok(took)
}
