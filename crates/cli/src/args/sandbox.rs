//! What can be typed after `redoma sandbox` and `redoma snapshot`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::NetArg;

/// Make sandboxes, run commands in them, freeze, fork and throw them away
#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: SandboxCommand,
}

/// What can be done with sandboxes. Each is meant by its name, its id, or the beginning of its id.
#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    Create(Box<CreateArgs>),
    Exec(ExecArgs),
    Shell(ShellArgs),
    /// List sandboxes
    Ls(ListArgs),
    /// Say all about a sandbox
    Info(OneArgs),
    Rm(RemoveArgs),
    Logs(SandboxLogsArgs),
    Stats(StatsArgs),
    /// List the commands that ran in a sandbox
    History(OneArgs),
    /// Stop every process of a sandbox where it stands
    Pause(OneArgs),
    /// Let a paused sandbox go on
    Resume(OneArgs),
    Cp(CopyArgs),
    Snapshot(SnapshotArgs),
    Fork(ForkArgs),
    /// Keep every process of a sandbox on disk and end them
    Checkpoint(OneArgs),
    /// Bring back what a checkpoint keeps
    Restore(OneArgs),
}

/// Make a sandbox
///
/// Nothing runs in it yet. Without an image it has this machine's system folders, read-only.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  redoma sandbox create --name box
  redoma sandbox create --mount .:/workspace --allow pip --memory 1GiB
  redoma sandbox create python:3.12 --name py --publish 8000:8000")]
pub(crate) struct CreateArgs {
    /// `host`, a folder that is a root file system, or an image
    #[arg(value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Its name; without one it gets one
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The network, where no rule decides
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) net: Option<NetArg>,
    /// Allow connections to hosts, or what a tool needs: `npm`, `pip`, `cargo`, `git`, …
    #[arg(long, value_name = "HOST[:PORT],…")]
    pub(crate) allow: Vec<String>,
    /// Put the sandbox under this policy file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) policy: Option<PathBuf>,
    /// Let a port of this machine's loopback lead to a port inside
    #[arg(long, value_name = "HOST:INSIDE")]
    pub(crate) publish: Vec<String>,
    /// Show a folder or file of this machine inside; `:ro` read-only, `:overlay` with changes kept aside
    #[arg(long, value_name = "PATH:INSIDE[:ro|:overlay]", value_hint = ValueHint::AnyPath)]
    pub(crate) mount: Vec<String>,
    /// Pass a variable to every command, or set it
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// Where commands run
    #[arg(long, value_name = "PATH")]
    pub(crate) workdir: Option<PathBuf>,
    /// Who commands are
    #[arg(long, value_enum, default_value = "root")]
    pub(crate) user: UserArg,
    #[command(flatten)]
    pub(crate) amounts: AmountArgs,
    /// Begin from a template; `redoma templates` lists them
    #[arg(long, value_name = "NAME", conflicts_with = "image")]
    pub(crate) template: Option<String>,
    #[command(flatten)]
    pub(crate) driver: DriverArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// How much a sandbox may use.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct AmountArgs {
    /// Limit processors, such as 1.5
    #[arg(long, value_name = "N")]
    pub(crate) cpus: Option<String>,
    /// Limit memory, such as 1GiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Limit processes and threads
    #[arg(long, value_name = "N")]
    pub(crate) pids: Option<String>,
    /// Limit what it changes on its file system, such as 4GiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) disk: Option<String>,
    /// End it this long after it was made, such as 2h
    #[arg(long, value_name = "SPAN")]
    pub(crate) time: Option<String>,
}

/// What makes the sandbox.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Driver")]
pub(crate) struct DriverArgs {
    /// What makes the sandbox
    #[arg(long, value_enum, value_name = "DRIVER")]
    pub(crate) driver: Option<DriverArg>,
    /// The engine of the oci driver: a socket, `ssh://…` or `tcp://…`
    #[arg(long, value_name = "URL")]
    pub(crate) engine_host: Option<String>,
}

/// What makes sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DriverArg {
    /// This machine's kernel
    Native,
    /// Docker or Podman
    Oci,
    /// Nothing: for tests
    Mock,
}

/// Who commands are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UserArg {
    /// User 0 inside, who is you and nobody else outside
    Root,
    /// You, under your own number
    Me,
}

/// Run a command in a sandbox
///
/// Exit code: the command's own; 124 time limit, 125 the sandbox could not be started, 126 not executable, 127 not found,
/// 128+N ended by signal N.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The sandbox
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Pass standard input on
    #[arg(short, long)]
    pub(crate) interactive: bool,
    /// Give the command a terminal
    #[arg(short, long)]
    pub(crate) tty: bool,
    /// Leave it running, with its output in the sandbox's log
    #[arg(short, long, conflicts_with_all = ["interactive", "tty"])]
    pub(crate) detach: bool,
    /// End the command and all it started after this time
    #[arg(long, value_name = "SPAN")]
    pub(crate) timeout: Option<String>,
    /// Where it runs
    #[arg(long, value_name = "PATH")]
    pub(crate) workdir: Option<PathBuf>,
    /// Pass a variable, or set it
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// Open a shell in a sandbox
#[derive(Debug, Args)]
pub(crate) struct ShellArgs {
    /// The sandbox
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Where it runs
    #[arg(long, value_name = "PATH")]
    pub(crate) workdir: Option<PathBuf>,
}

/// How to list.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// One sandbox.
#[derive(Debug, Args)]
pub(crate) struct OneArgs {
    /// The sandbox
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// End sandboxes and remove all of them
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// The sandboxes
    #[arg(value_name = "ID", required_unless_present = "all")]
    pub(crate) ids: Vec<String>,
    /// All there are
    #[arg(long, conflicts_with = "ids")]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what detached commands of a sandbox wrote
#[derive(Debug, Args)]
pub(crate) struct SandboxLogsArgs {
    /// The sandbox
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Go on as more comes
    #[arg(short, long)]
    pub(crate) follow: bool,
}

/// Show what a sandbox uses
#[derive(Debug, Args)]
pub(crate) struct StatsArgs {
    /// The sandbox
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Go on every second
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Copy files into a sandbox or out of it
///
/// One of both is `ID:PATH`. `-` is standard input or output, for one file.
#[derive(Debug, Args)]
pub(crate) struct CopyArgs {
    /// What to copy
    #[arg(value_name = "SRC", value_hint = ValueHint::AnyPath)]
    pub(crate) from: String,
    /// Where to
    #[arg(value_name = "DST", value_hint = ValueHint::AnyPath)]
    pub(crate) to: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Freeze the file system of a sandbox under a name
#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// The sandbox
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The snapshot's name
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Make sandboxes from a snapshot; limits, rules and mounts are as they were, published ports are not
#[derive(Debug, Args)]
pub(crate) struct ForkArgs {
    /// The snapshot
    #[arg(value_name = "SNAP")]
    pub(crate) snapshot: String,
    /// A name for a sandbox; several make several
    #[arg(long)]
    pub(crate) name: Vec<String>,
    /// Let a port of this machine's loopback lead to a port inside
    #[arg(long, value_name = "HOST:INSIDE")]
    pub(crate) publish: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List, compare and remove snapshots
#[derive(Debug, Args)]
pub(crate) struct SnapshotsArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: SnapshotsCommand,
}

/// What can be done with snapshots.
#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotsCommand {
    /// List snapshots
    Ls(ListArgs),
    Rm(SnapshotRemoveArgs),
    Prune(SnapshotPruneArgs),
    Diff(SnapshotDiffArgs),
}

/// Show what differs between two snapshots, or sandboxes as they are now
#[derive(Debug, Args)]
pub(crate) struct SnapshotDiffArgs {
    /// The first
    #[arg(value_name = "A")]
    pub(crate) before: String,
    /// The second
    #[arg(value_name = "B")]
    pub(crate) after: String,
    /// Show how texts differ as well
    #[arg(long)]
    pub(crate) content: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove snapshots; sandboxes that stand on them stay as they are
#[derive(Debug, Args)]
pub(crate) struct SnapshotRemoveArgs {
    /// The snapshots
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove snapshots that are older than something
#[derive(Debug, Args)]
pub(crate) struct SnapshotPruneArgs {
    /// How old they may be, such as 7d
    #[arg(long, value_name = "SPAN", default_value = "30d")]
    pub(crate) max_age: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Do what has to be done inside a container; called by the oci driver
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct GuestArgs {
    /// What
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<OsString>,
}

/// Be the keeper of a sandbox; started by the others
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct KeeperArgs {
    /// The sandbox; without it the keeper of a container's network, as standard input says
    pub(crate) id: Option<String>,
}
