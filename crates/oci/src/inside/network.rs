//! The first process of a helper's container: the network of the sandbox's, as the native driver's init has it.

use std::num::NonZeroU16;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use redoma_jail::{Wire, serve_network};

/// Leads every connection to the gateway behind `socket`. Ends when the gateway does, and then nothing leads anywhere.
pub(super) fn run(socket: &str, proxy: &str, reach: &[&str]) -> ExitCode {
    let Ok(gateway) = UnixStream::connect(socket) else { return ExitCode::FAILURE };
    let Some(proxy_port) = proxy.parse().ok() else { return ExitCode::from(2) };
    let reach: Vec<NonZeroU16> = reach.iter().filter_map(|port| port.parse().ok()).collect();
    match serve_network(&Wire::Namespace { proxy_port, reach }, gateway) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
