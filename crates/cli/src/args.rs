//! What can be typed. Each flag has one definition, from which help, man page and completions are made.

mod audit;
mod image;
mod net;
mod policy;
mod preview;
mod run;
mod sandbox;
mod services;
mod workspace;

use std::path::PathBuf;

use clap::builder::Styles;
use clap::builder::styling::{AnsiColor, Style};
use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use audit::{AuditArgs, AuditCommand, AuditPurgeArgs};
pub(crate) use image::{
    ImageArgs, ImageCommand, ImageImportArgs, ImageLsArgs, ImagePruneArgs, ImagePullArgs, ImageRmArgs,
};
pub(crate) use net::{
    ExportFormat, NetArgs, NetCommand, NetExportArgs, NetFlowsArgs, NetShowArgs, ProxyArgs,
};
pub(crate) use policy::{
    PolicyArgs, PolicyCheckArgs, PolicyCommand, PolicyDiffArgs, PolicyInitArgs, PolicyListArgs,
    PolicyShowArgs, PolicyTrustArgs,
};
pub(crate) use preview::{PreviewArgs, PreviewCommand, PreviewLsArgs, PreviewOneArgs, PreviewUpArgs};
pub(crate) use run::{LayerArgs, NetArg, RunArgs, TierArg, WorkspaceArg};
pub(crate) use sandbox::{
    AmountArgs, CopyArgs, CreateArgs, DriverArg, DriverArgs, ExecArgs, ForkArgs, GuestArgs, KeeperArgs,
    ListArgs, OneArgs, RemoveArgs, SandboxArgs, SandboxCommand, SandboxLogsArgs, ShellArgs, SnapshotArgs,
    SnapshotDiffArgs, SnapshotPruneArgs, SnapshotRemoveArgs, SnapshotsArgs, SnapshotsCommand, StatsArgs,
    UserArg,
};
pub(crate) use services::{
    DownArgs, GroupArgs, PauseIdleArgs, PsArgs, ReapArgs, ServiceLogsArgs, TemplatesArgs, UpArgs,
};
pub(crate) use workspace::{
    ChangesApplyArgs, ChangesArgs, ChangesCommand, ChangesDiscardArgs, ChangesListArgs, PickArgs, UndoArgs,
};

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
    /// Say nothing beside the answer but errors
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands, in the order in which a newcomer meets them.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Box<RunArgs>),
    Doctor(DoctorArgs),
    Why(Box<WhyArgs>),
    /// Allow TARGET in the policy file; comments stay
    Allow(EditArgs),
    /// Deny TARGET in the policy file; comments stay
    Deny(EditArgs),
    Policy(PolicyArgs),
    Changes(ChangesArgs),
    Undo(UndoArgs),
    Sessions(SessionsArgs),
    Log(LogArgs),
    Net(NetArgs),
    Proxy(Box<ProxyArgs>),
    Image(ImageArgs),
    Audit(AuditArgs),
    Sandbox(SandboxArgs),
    Snapshot(SnapshotsArgs),
    Up(UpArgs),
    Down(DownArgs),
    Ps(PsArgs),
    Logs(ServiceLogsArgs),
    Preview(PreviewArgs),
    Templates(TemplatesArgs),
    Reap(ReapArgs),
    PauseIdle(PauseIdleArgs),
    Redteam(RedteamArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
    Version(VersionArgs),
    Keeper(KeeperArgs),
    Guest(GuestArgs),
}

impl Command {
    /// Whether its exit code is that of a command, so that its own failures have codes that tell them apart.
    pub(crate) fn runs_a_command(&self) -> bool {
        match self {
            Self::Run(_) => true,
            Self::Sandbox(args) => matches!(args.command, SandboxCommand::Exec(_) | SandboxCommand::Shell(_)),
            _ => false,
        }
    }
}

/// Say what this machine can enforce, and what is missing
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Look for what a killed run could have left behind, and remove it
    #[arg(long)]
    pub(crate) gc: bool,
    /// Print only the commands that mend what is missing
    #[arg(long, conflicts_with_all = ["json", "gc"])]
    pub(crate) fix_hints: bool,
}

/// Say whether something is allowed, by which rule, and the smallest change that would decide otherwise
#[derive(Debug, Args)]
pub(crate) struct WhyArgs {
    /// What would be done
    pub(crate) action: Action,
    /// The path, the program, HOST[:PORT] or the variable
    pub(crate) target: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The tier to answer for; without it, what this machine has
    #[arg(long, value_enum)]
    pub(crate) tier: Option<TierArg>,
    #[command(flatten)]
    pub(crate) layers: LayerArgs,
}

/// What `why` can be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Action {
    Read,
    Write,
    Exec,
    Connect,
    Env,
}

/// What to allow or deny, and in which file.
#[derive(Debug, Args)]
pub(crate) struct EditArgs {
    /// read:PATH, write:PATH, env:NAME, rule:TEXT (of a built-in rule), HOST[:PORT] or a tool such as npm (several with commas), localhost:PORT, or a bare path to read
    pub(crate) target: String,
    /// Change the project's redoma.toml (the default in a project)
    #[arg(long, group = "where")]
    pub(crate) project: bool,
    /// Change the user's policy
    #[arg(long, group = "where")]
    pub(crate) user: bool,
}

/// List the sessions, newest first
#[derive(Debug, Args)]
pub(crate) struct SessionsArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print at most this many
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Check the whole record instead: order, hashes and signatures
    #[arg(long, conflicts_with = "limit")]
    pub(crate) verify: bool,
}

/// Show what a session did
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// The session, or the beginning of its id; without it, the newest
    pub(crate) session: Option<String>,
    /// Go on printing until the session ends
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Print the record's lines as they are
    #[arg(long)]
    pub(crate) json: bool,
}

/// Attack the boundary from inside, harmlessly, and show what stopped each attempt
#[derive(Debug, Args)]
pub(crate) struct RedteamArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The tier to attack; without it, what this machine has
    #[arg(long, value_enum)]
    pub(crate) tier: Option<TierArg>,
    /// Make one attempt, here and now; used inside
    #[arg(long, hide = true, requires = "stage", value_name = "NAME")]
    pub(crate) attempt: Option<String>,
    /// What was set up for the attempt
    #[arg(long, hide = true, value_name = "JSON")]
    pub(crate) stage: Option<String>,
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

    fn run(words: &[&str]) -> Result<RunArgs, clap::Error> {
        let cli = Cli::try_parse_from(["redoma", "run"].iter().chain(words))?;
        let Command::Run(run) = cli.command else { panic!("not run") };
        Ok(*run)
    }

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_after_the_command_are_the_commands_own() {
        let args = run(&["--net", "none", "ls", "--net", "-q", "--", "x"]).unwrap();
        assert_eq!(args.layers.net, Some(NetArg::None));
        assert_eq!(args.command, ["ls", "--net", "-q", "--", "x"]);
    }

    #[test]
    fn a_mistyped_flag_is_an_error_not_a_command() {
        let error = run(&["--nte", "none", "--", "true"]).unwrap_err();
        assert_eq!(error.kind(), clap::error::ErrorKind::UnknownArgument);
    }

    #[test]
    fn a_command_is_required_and_may_look_like_a_flag_after_the_dashes() {
        assert!(run(&["--net", "none"]).is_err());
        assert_eq!(run(&["--", "-x"]).unwrap().command, ["-x"]);
    }

    #[test]
    fn undo_and_no_undo_exclude_each_other() {
        assert!(run(&["--undo", "--no-undo", "true"]).is_err());
        assert_eq!(run(&["--no-undo", "true"]).unwrap().layers.undo(), Some(false));
        assert_eq!(run(&["true"]).unwrap().layers.undo(), None);
    }
}
