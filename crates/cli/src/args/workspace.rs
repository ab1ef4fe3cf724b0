//! What can be typed after `redoma changes` and `redoma undo`.

use clap::{Args, Subcommand};

/// See and take over what a session with an overlay workspace changed
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ChangesArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ChangesCommand>,
    #[command(flatten)]
    pub(crate) list: ChangesListArgs,
}

/// The verbs of `changes`.
#[derive(Debug, Subcommand)]
pub(crate) enum ChangesCommand {
    /// List what changed
    List(ChangesListArgs),
    /// Show the changes as a unified diff
    Diff(PickArgs),
    /// Take changes over into the project
    Apply(ChangesApplyArgs),
    /// Throw the changes away
    Discard(ChangesDiscardArgs),
}

/// Which session to list.
#[derive(Debug, Args)]
pub(crate) struct ChangesListArgs {
    /// The session, or the beginning of its id; without it, the newest here
    pub(crate) session: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which changes of which session.
#[derive(Debug, Args)]
pub(crate) struct PickArgs {
    /// The session, or the beginning of its id; without it, the newest here
    pub(crate) session: Option<String>,
    /// Only this path or pattern, relative to the project; may be repeated
    #[arg(long = "path", value_name = "PATH")]
    pub(crate) paths: Vec<String>,
}

/// What to take over.
#[derive(Debug, Args)]
pub(crate) struct ChangesApplyArgs {
    #[command(flatten)]
    pub(crate) pick: PickArgs,
    /// Overwrite this path although the project changed meanwhile; may be repeated
    #[arg(long = "force", value_name = "PATH")]
    pub(crate) force: Vec<String>,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// What to throw away.
#[derive(Debug, Args)]
pub(crate) struct ChangesDiscardArgs {
    /// The session, or the beginning of its id; without it, the newest here
    pub(crate) session: Option<String>,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Bring the project back to how it was before a session
#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// The session, or the beginning of its id; without it, the newest here
    pub(crate) session: Option<String>,
    /// Only show what would be done
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
