//! `redoma proxy`: the gateway without a sandbox.

use std::io;

use redoma_audit::escape::printable;
use redoma_sandbox::{Listening, Manager};

use super::edit::{self, Way};
use crate::args::{EditArgs, ProxyArgs};
use crate::exit::Exit;
use crate::layers::{self, Resolved};
use crate::printer::{BOLD, Printer, WARN, paint};

/// Serves until it is interrupted.
pub(crate) fn proxy(args: &ProxyArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let Resolved { settings, policy, .. } = layers::resolve(&args.layers, None, &[])?;
    if !args.listen.ip().is_loopback() {
        printer.note(paint(WARN, format_args!("everybody who reaches {} can use it", args.listen)));
    }
    let mut ready = |listening: &Listening| -> io::Result<()> {
        std::fs::write(&args.ca_out, &listening.certificate)?;
        let head = paint(BOLD, format_args!("redoma: session {}", listening.session));
        printer.note(format_args!("{head}\n  listening on {} (HTTP and SOCKS 5)", listening.address));
        printer.hint(format_args!(
            "https_proxy=http://{} curl --cacert {} https://example.com",
            listening.address,
            printable(&args.ca_out)
        ));
        Ok(())
    };
    let summary = Manager::new(settings.homes).proxy(&policy, args.listen, &mut ready)?;
    printer.note(format_args!(
        "{} inspected, {} opaque, {} blocked",
        summary.inspected, summary.opaque, summary.blocked
    ));
    for target in summary.always {
        edit::edit(Way::Allow, &EditArgs { target, project: false, user: false }, printer)?;
    }
    Ok(Exit::OK)
}
