use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use redoma_image::Reference;

/// Keep the images that sandboxes are made from
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct ImageArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: ImageCommand,
}

/// What can be done with images.
#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    Pull(ImagePullArgs),
    Ls(ImageLsArgs),
    Rm(ImageRmArgs),
    Import(ImageImportArgs),
    Prune(ImagePruneArgs),
}

/// Fetch an image from a registry, verified: every blob by digest and size, every layer by its content
///
/// Registries are reached over TLS; only one on this machine may do without. Passwords are those of `podman login` and
/// `docker login`. Layers that are here already are not fetched again.
#[derive(Debug, Args)]
pub(crate) struct ImagePullArgs {
    /// Its name, such as debian:12, ghcr.io/owner/name:tag or NAME@sha256:DIGEST
    #[arg(value_name = "NAME")]
    pub(crate) reference: Reference,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the images that are here
#[derive(Debug, Args)]
pub(crate) struct ImageLsArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Forget images; what only they have is freed by `redoma image prune`
#[derive(Debug, Args)]
pub(crate) struct ImageRmArgs {
    /// Their names
    #[arg(value_name = "NAME", required = true)]
    pub(crate) references: Vec<Reference>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Take in an image that is no registry's: a root file system, what `docker save` writes, or an OCI layout
///
/// PATH is a folder or an archive (tar, tar.gz, tar.zst; - for standard input).
#[derive(Debug, Args)]
pub(crate) struct ImageImportArgs {
    /// Where it is
    #[arg(value_hint = ValueHint::AnyPath)]
    pub(crate) path: PathBuf,
    /// What to call it; without it, as it calls itself. Of several images in an archive, the one to take
    pub(crate) name: Option<Reference>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Free what no image, sandbox or snapshot refers to
#[derive(Debug, Args)]
pub(crate) struct ImagePruneArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
