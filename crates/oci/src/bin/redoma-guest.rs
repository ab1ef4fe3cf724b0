//! The program inside by itself, for the driver's own tests: it is `redoma`'s hidden subcommand otherwise.

use std::process::ExitCode;

fn main() -> ExitCode {
    redoma_oci::guest(&std::env::args_os().skip(1).collect::<Vec<_>>())
}
