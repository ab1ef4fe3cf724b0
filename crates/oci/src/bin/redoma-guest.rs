//! The programs inside and of keepers by themselves, for the driver's own tests: they are `redoma`'s hidden subcommands
//! otherwise.

use std::process::ExitCode;

use redoma_sandbox::gatehouse;
use redoma_sandbox::homes::Homes;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "keeper") {
        let Ok(homes) = Homes::from_env() else { return ExitCode::FAILURE };
        return ExitCode::from(u8::try_from(gatehouse::keep(&homes)).unwrap_or(1));
    }
    redoma_oci::guest(&arguments)
}
