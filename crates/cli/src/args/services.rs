//! What can be typed after `redoma up`, `down`, `ps` and `logs`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::sandbox::DriverArgs;

/// The group file that is meant.
#[derive(Debug, Args)]
pub(crate) struct GroupArgs {
    /// The group file; without it redoma-services.toml or peapod.json of this folder
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) driver: DriverArgs,
}

/// Bring a group of services up
///
/// Each starts when those before it do their work. What is up already stays.
#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    /// Trust this very content of the file, also where it mounts what lies outside its folder
    #[arg(long)]
    pub(crate) trust: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// End a group of services, the last first, and remove it
#[derive(Debug, Args)]
pub(crate) struct DownArgs {
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the services of a group
#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what the services of a group wrote
#[derive(Debug, Args)]
pub(crate) struct GroupLogsArgs {
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    /// Of these services only
    #[arg(value_name = "SERVICE")]
    pub(crate) services: Vec<String>,
}
