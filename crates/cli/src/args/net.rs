use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::LayerArgs;

/// Show what went over the network
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct NetArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: NetCommand,
}

/// What can be done with the network's record.
#[derive(Debug, Subcommand)]
pub(crate) enum NetCommand {
    Flows(NetFlowsArgs),
    Show(NetShowArgs),
    Export(NetExportArgs),
}

/// List the connections of a session: who made them, where to, and whether they were looked into
///
/// Each is one of three things. Inspected: it was decoded, and its requests are on the record. Opaque: it was let
/// through, and nobody saw what it carried. Blocked: it was refused or cut off. They are never counted together.
#[derive(Debug, Args)]
pub(crate) struct NetFlowsArgs {
    /// The session, or the beginning of its id; without it, the newest
    pub(crate) session: Option<String>,
    /// Go on printing until the session ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Only those that were refused or cut off
    #[arg(long)]
    pub(crate) blocked: bool,
    /// Only those that passed unseen
    #[arg(long)]
    pub(crate) opaque: bool,
    /// Only those that were looked into
    #[arg(long)]
    pub(crate) inspected: bool,
    /// Only those to hosts like this, such as `*.example.com`
    #[arg(long, value_name = "GLOB")]
    pub(crate) host: Option<String>,
    /// Print JSON, one connection a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show one connection: process, decision, TLS, and each request with its headers and the beginning of its body
#[derive(Debug, Args)]
pub(crate) struct NetShowArgs {
    /// Its number, as `net flows` shows it; or SESSION:NUMBER
    pub(crate) flow: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Write what went over the network in a form that other programs read
///
/// An HTTP archive (har) has the requests that were looked into, for browsers' developer tools; what passed unseen or was
/// blocked is listed beside them, in `_flows`.
#[derive(Debug, Args)]
pub(crate) struct NetExportArgs {
    /// The session, or the beginning of its id; without it, the newest
    pub(crate) session: Option<String>,
    /// The form
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) format: ExportFormat,
    /// Write into this file, which only its owner may read, and not to standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

/// A form that other programs read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// HTTP Archive 1.2
    Har,
    /// The record's own lines about the network
    Jsonl,
    /// What `redoma run --capture` kept, with the keys, for Wireshark
    Pcapng,
}

/// Serve the gateway by itself, as an HTTP and SOCKS 5 proxy, until it is interrupted
///
/// For programs outside any sandbox that are told to use a proxy. What does not use it is not seen: `redoma run` captures
/// everything. Its clients have to trust the certificate that is written to --ca-out.
#[derive(Debug, Args)]
pub(crate) struct ProxyArgs {
    /// Where to listen
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8899")]
    pub(crate) listen: SocketAddr,
    /// Write the certificate that clients are to trust into this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "redoma-ca.pem")]
    pub(crate) ca_out: PathBuf,
    #[command(flatten)]
    pub(crate) layers: LayerArgs,
}
