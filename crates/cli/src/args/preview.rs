//! What can be typed after `redoma preview`.

use clap::{Args, Subcommand};

use super::sandbox::DriverArgs;

/// Run each branch of a repository in sandboxes of its own
#[derive(Debug, Args)]
pub(crate) struct PreviewArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: PreviewCommand,
}

/// What can be done with previews.
#[derive(Debug, Subcommand)]
pub(crate) enum PreviewCommand {
    Up(PreviewUpArgs),
    /// Say what runs for a branch, and where
    Status(PreviewOneArgs),
    /// Remove the preview of a branch, also of one that is gone
    Down(PreviewOneArgs),
    Ls(PreviewLsArgs),
}

/// Start the branch that is checked out here
///
/// With the services of redoma-services.toml if there is one, else one sandbox; the tree is seen inside, and changes to it
/// are kept aside. Published ports are free ones.
#[derive(Debug, Args)]
pub(crate) struct PreviewUpArgs {
    /// Let what services change in the tree happen to it
    #[arg(long)]
    pub(crate) direct: bool,
    /// Let the services file use a variable as `${NAME}`, or set it
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// Make what is not as the file says anew
    #[arg(long)]
    pub(crate) recreate: bool,
    #[command(flatten)]
    pub(crate) driver: DriverArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which preview.
#[derive(Debug, Args)]
pub(crate) struct PreviewOneArgs {
    /// The branch, or the preview's name; without it, the branch that is checked out here
    #[arg(value_name = "BRANCH")]
    pub(crate) branch: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the previews of this repository
#[derive(Debug, Args)]
pub(crate) struct PreviewLsArgs {
    /// Those of all repositories
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
