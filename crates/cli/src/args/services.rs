//! What can be typed after `redoma up`, `down`, `ps`, `logs`, `templates`, `reap` and `pause-idle`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::sandbox::DriverArgs;

/// Start a group of services, and wait until they work
///
/// Reads redoma-services.toml, peapod.json or a compose.yaml in the current folder. Services reach each other by name;
/// ports are published on this machine's loopback only. What is there as the file says is left alone.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  redoma up
  redoma up --file peapod.json
  redoma up --env TAG=16 --recreate")]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) file: FileArgs,
    /// Make what is not as the file says anew
    #[arg(long)]
    pub(crate) recreate: bool,
    #[command(flatten)]
    pub(crate) driver: DriverArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which file describes the group, and the variables it may use.
#[derive(Debug, Args)]
pub(crate) struct FileArgs {
    /// The file; without it, the one in the current folder
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Let the file use a variable as `${NAME}`, or set it
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
}

/// Which group is meant.
#[derive(Debug, Args)]
pub(crate) struct GroupArgs {
    /// The file that describes it; without it, the one in the current folder
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    /// Its name, where the file is gone
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    pub(crate) group: Option<String>,
}

/// Stop a group of services, last first, and remove its sandboxes
#[derive(Debug, Args)]
pub(crate) struct DownArgs {
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    /// Keep the sandboxes with what was written in them
    #[arg(long)]
    pub(crate) keep: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the services of a group
#[derive(Debug, Args)]
pub(crate) struct PsArgs {
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    /// Those of all groups
    #[arg(short, long, conflicts_with_all = ["file", "group"])]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what the services of a group wrote
#[derive(Debug, Args)]
pub(crate) struct ServiceLogsArgs {
    /// Only these services
    #[arg(value_name = "SERVICE")]
    pub(crate) services: Vec<String>,
    #[command(flatten)]
    pub(crate) group: GroupArgs,
    /// Go on as more comes
    #[arg(short = 'F', long)]
    pub(crate) follow: bool,
    /// Print a JSON line for each line
    #[arg(long)]
    pub(crate) json: bool,
}

/// List what sandboxes and services can be made from by name
#[derive(Debug, Args)]
pub(crate) struct TemplatesArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Remove sandboxes whose time is over
#[derive(Debug, Args)]
pub(crate) struct ReapArgs {
    /// Also those that are older than this, such as 7d
    #[arg(long, value_name = "SPAN")]
    pub(crate) max_age: Option<String>,
    /// Only say which
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Pause sandboxes in which no command began or ended for a while; the next command lets them go on
#[derive(Debug, Args)]
pub(crate) struct PauseIdleArgs {
    /// How long that may be
    #[arg(long, value_name = "SPAN", default_value = "30m")]
    pub(crate) max_idle: String,
    /// Also services, and what has a published port: nothing but a command wakes those
    #[arg(long)]
    pub(crate) serving: bool,
    /// Only say which
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
