//! What can be typed after `redoma run`, and the part of it that makes the command-line layer of a policy.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};

/// Run a command, or a known agent by its name alone, under the bell
///
/// Exit code: the command's own; 124 time limit, 125 no boundary or bad policy (nothing was started), 126 not
/// executable or denied, 127 not found, 128+N ended by signal N.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  redoma run --net none -- cargo test
  redoma run --write ../shared --memory 2GiB -- npm test
  redoma run claude")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) layers: LayerArgs,
    /// Build exactly this tier, or refuse
    #[arg(long, value_enum)]
    pub(crate) tier: Option<TierArg>,
    /// Print what would be said at the end as JSON on standard error
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a JSON report of the session to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<PathBuf>,
    /// Keep what goes over the network, for `redoma net export --format pcapng`
    ///
    /// At most 1 GiB, with the keys that decrypt what was looked into; beside the record, for its owner only.
    #[arg(long)]
    pub(crate) capture: bool,
    /// The command and its arguments, or the name of an agent
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// The command-line layer of the policy.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Policy")]
pub(crate) struct LayerArgs {
    /// Use this file in place of the project's redoma.toml
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) policy: Option<PathBuf>,
    /// Begin from this profile
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Add what this agent needs
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The network, where no rule decides
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) net: Option<NetArg>,
    /// Allow connections to hosts, with commas between them: `example.com`, `*.example.com:8443`, `localhost:5432`, or
    /// what a tool needs: `npm`, `pip`, `cargo`, `git`, …
    #[arg(long, value_name = "HOST[:PORT],…")]
    pub(crate) allow: Vec<String>,
    /// Allow reading a path
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) read: Vec<String>,
    /// Allow reading and writing a path
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) write: Vec<String>,
    /// Deny a path or pattern, whatever else allows it
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) deny: Vec<String>,
    /// Pass a variable, or set it
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// Work on the project itself, or on a layer above it
    #[arg(long, value_enum, value_name = "KIND")]
    pub(crate) workspace: Option<WorkspaceArg>,
    /// Keep what `redoma undo` needs
    #[arg(long, overrides_with = "undo")]
    pub(crate) undo: bool,
    /// Keep nothing for `redoma undo`
    #[arg(long, conflicts_with = "undo")]
    pub(crate) no_undo: bool,
    /// Limit memory, such as 1GiB
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Limit processors, such as 1.5
    #[arg(long, value_name = "N")]
    pub(crate) cpus: Option<String>,
    /// Limit processes and threads
    #[arg(long, value_name = "N")]
    pub(crate) pids: Option<String>,
    /// End everything after this time, such as 30m
    #[arg(long, value_name = "SPAN")]
    pub(crate) time: Option<String>,
}

/// What happens to a connection that no rule names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NetArg {
    /// No network at all
    None,
    /// Only what a rule allows
    Deny,
    /// Ask the user
    Ask,
    /// Everything but what a rule denies
    Allow,
}

/// What a session works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WorkspaceArg {
    /// The project itself
    Direct,
    /// A layer above it, until `redoma changes apply`
    Overlay,
}

/// What the kernel is asked to enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TierArg {
    /// Namespaces, Landlock and seccomp
    Full,
    /// Landlock and seccomp
    Landlock,
}

// === impl LayerArgs ===

impl LayerArgs {
    /// Whether undo was asked for, forbidden, or left to the policy.
    pub(crate) fn undo(&self) -> Option<bool> {
        match (self.undo, self.no_undo) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }
}
