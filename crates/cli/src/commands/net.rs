//! `redoma net`: what went over the network, from the record.

mod export;
mod flows;
mod show;

use redoma_audit::event::{Flow, Visibility};

use crate::args::{NetArgs, NetCommand};
use crate::exit::Exit;
use crate::printer::{BAD, GOOD, Printer, WARN};
use clap::builder::styling::Style;

/// Does what was typed.
pub(crate) fn dispatch(args: NetArgs, printer: &Printer) -> anyhow::Result<Exit> {
    match args.command {
        NetCommand::Flows(args) => flows::flows(&args, printer),
        NetCommand::Show(args) => show::show(&args, printer),
        NetCommand::Export(args) => export::export(&args, printer),
    }
}

/// Three words that are never mixed up.
fn visibility(visibility: Visibility) -> (Style, &'static str) {
    match visibility {
        Visibility::Inspected => (GOOD, "inspected"),
        Visibility::Opaque => (WARN, "opaque"),
        Visibility::Blocked => (BAD, "blocked"),
    }
}

/// The name, or the address where there is none, and the port.
fn target(flow: &Flow) -> String {
    let host = flow.host.as_ref().map(ToString::to_string);
    let host = host.or_else(|| flow.address.map(|address| address.to_string())).unwrap_or_default();
    if host.contains(':') { format!("[{host}]:{}", flow.port) } else { format!("{host}:{}", flow.port) }
}

/// An amount of bytes, as people read it.
pub(super) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let power = (count.ilog2() / 10).min(4);
    let tenths = (count * 10) >> (10 * power);
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[power as usize - 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_read_well_at_every_size() {
        let shown: Vec<_> = [0, 1023, 1024, 1536, 5 << 20, 3 << 40].map(bytes).into();
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "5.0 MiB", "3.0 TiB"]);
    }
}
