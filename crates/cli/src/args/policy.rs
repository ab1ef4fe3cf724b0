//! What can be typed after `redoma policy`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::LayerArgs;

/// Make, show, check and trust policies
#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    pub(crate) command: PolicyCommand,
}

/// The verbs of `policy`.
#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Write a commented policy to begin from
    Init(PolicyInitArgs),
    /// Show the policy files, or what they come to
    Show(Box<PolicyShowArgs>),
    /// Check a policy file
    Check(PolicyCheckArgs),
    /// Print the JSON schema of policy files, for editors
    Schema,
    /// Trust the exact content of a policy file, so that it may widen
    Trust(PolicyTrustArgs),
    /// Show what two policies do differently
    Diff(Box<PolicyDiffArgs>),
    /// List the built-in profiles
    Profiles(PolicyListArgs),
    /// List the agents with a preset
    Agents(PolicyListArgs),
}

/// Where a new policy goes.
#[derive(Debug, Args)]
pub(crate) struct PolicyInitArgs {
    /// Write the user's policy, not the project's redoma.toml
    #[arg(long)]
    pub(crate) user: bool,
    /// Begin from this profile
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) profile: String,
    /// Add the preset of this agent
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
}

/// Which policy to show.
#[derive(Debug, Args)]
pub(crate) struct PolicyShowArgs {
    /// Show what the layers come to, each line with where it comes from
    #[arg(long)]
    pub(crate) resolved: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) layers: LayerArgs,
}

/// Which file to check.
#[derive(Debug, Args)]
pub(crate) struct PolicyCheckArgs {
    /// The file; without it, every layer that applies here
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
}

/// Which file to trust.
#[derive(Debug, Args)]
pub(crate) struct PolicyTrustArgs {
    /// The file; without it, the project's redoma.toml
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Trust it no longer
    #[arg(long, conflicts_with = "yes")]
    pub(crate) forget: bool,
}

/// Which policies to compare.
#[derive(Debug, Args)]
pub(crate) struct PolicyDiffArgs {
    /// Compare with this file as the project's policy; without it, with the profile alone
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) layers: LayerArgs,
}

/// What to list.
#[derive(Debug, Args)]
pub(crate) struct PolicyListArgs {
    /// Print this one as it is written
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long, conflicts_with = "name")]
    pub(crate) json: bool,
}
