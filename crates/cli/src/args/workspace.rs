//! What can be typed after `redoma undo`.

use clap::Args;

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
