//! `redoma run … -- CMD`: create, run, destroy, in the caller's terminal.

mod report;

use std::ffi::OsString;

use redoma_policy::{NoticeKind, ResolvedPolicy};
use redoma_sandbox::settings::Settings;
use redoma_sandbox::{Manager, RunError, RunRequest, shell};

use crate::args::RunArgs;
use crate::exit::Exit;
use crate::failure::Hinted;
use crate::layers::{self, Resolved};
use crate::printer::Printer;
use report::{Report, ReportFile};

/// Runs the command and exits as it does.
pub(crate) fn run(args: RunArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let Resolved { settings, policy, .. } = layers::resolve(&args.layers, args.tier, &args.command)?;
    settings.project.check_width(settings.homes.home())?;
    tell_urgent(&policy, printer);
    // Opened now: what the session puts in its place later is not followed.
    let file = args.report.as_deref().map(ReportFile::open).transpose()?;
    let request = request(policy, args.command, &settings);
    let outcome = Manager::new(settings.homes).run(&request).map_err(|error| explained(error, &request))?;
    let report = Report::new(&request, &outcome);
    if let Some(file) = file {
        file.write(&report)?;
    }
    report.tell(args.json, printer)?;
    Ok(Exit::of_command(outcome.end.exit_code()))
}

fn request(policy: ResolvedPolicy, argv: Vec<OsString>, settings: &Settings) -> RunRequest {
    let project = &settings.project;
    RunRequest {
        policy,
        argv,
        cwd: project.cwd.clone(),
        git_dirs: project.git_dirs.clone(),
        variables: std::env::vars_os().collect(),
    }
}

/// A command that could not be started is named, with the question that explains it; the exit code stays.
fn explained(error: RunError, request: &RunRequest) -> anyhow::Error {
    let no_boundary = error.exit_code() == 125;
    match request.argv.first() {
        Some(program) if !no_boundary => {
            let why = format!("redoma why exec {}", shell::word(program));
            anyhow::Error::new(error).context(Hinted::new(format!("cannot run {}", program.display()), why))
        }
        _ => error.into(),
    }
}

/// Before the command: only what it may surprise the user not to have known. `redoma policy check` tells the rest.
fn tell_urgent(policy: &ResolvedPolicy, printer: &Printer) {
    let urgent = |kind| matches!(kind, NoticeKind::Untrusted | NoticeKind::Ceiling | NoticeKind::Loader);
    super::policy::tell_notices(policy.notices.iter().filter(|notice| urgent(notice.kind)), printer);
}
