//! The first process of a helper's container: the network of the sandbox's, as the native driver's init has it.

use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use redoma_jail::serve_network;

/// Leads every connection to the gateway behind `socket`. Ends when the gateway does, and then nothing leads anywhere.
pub(super) fn run(socket: &str) -> ExitCode {
    let Ok(gateway) = UnixStream::connect(socket) else { return ExitCode::FAILURE };
    match serve_network(gateway) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
