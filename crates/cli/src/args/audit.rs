use clap::{Args, Subcommand};

/// Keep the record: check it, or remove what is old
#[derive(Debug, Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub(crate) struct AuditArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: AuditCommand,
}

/// What can be done with the record as a whole.
#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    Purge(AuditPurgeArgs),
    Verify(AuditVerifyArgs),
}

/// Remove the sessions that are older than the policy keeps them; a signed line of each stays
#[derive(Debug, Args)]
pub(crate) struct AuditPurgeArgs {
    /// Keep what is younger than this, such as 30d, whatever the policy says
    #[arg(long, value_name = "TIME")]
    pub(crate) older_than: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Check order, hashes and signatures of the whole record
#[derive(Debug, Args)]
pub(crate) struct AuditVerifyArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
