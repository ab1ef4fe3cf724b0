//! What can be typed. Each flag has one definition, from which help, man page and completions are made.

use std::path::PathBuf;

use clap::builder::Styles;
use clap::builder::styling::{AnsiColor, Style};
use clap::{Args, Parser, Subcommand};

const STYLES: Styles = Styles::styled()
    .header(Style::new().bold())
    .usage(Style::new().bold())
    .literal(AnsiColor::Cyan.on_default())
    .placeholder(AnsiColor::Green.on_default());

/// Run AI agents and untrusted commands under a glass bell.
///
/// They touch only what the policy allows, and everything they did is on a record they cannot change.
#[derive(Debug, Parser)]
#[command(name = "redoma", version, styles = STYLES, max_term_width = 100, infer_subcommands = false)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands, in the order in which a newcomer meets them.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Completions(CompletionsArgs),
    Man(ManArgs),
    Version(VersionArgs),
}

/// Print the completion script of a shell
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Print a manual page
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The command, such as `run` or `policy show`; without it, redoma itself
    pub(crate) command: Vec<String>,
    /// Write the pages of all commands into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) out: Option<PathBuf>,
}

/// Print the version
#[derive(Debug, Args)]
pub(crate) struct VersionArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }
}
