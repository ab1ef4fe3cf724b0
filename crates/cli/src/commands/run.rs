//! `redoma run … -- CMD`: create, run, destroy, in the caller's terminal.

mod report;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use redoma_policy::{NoticeKind, ResolvedPolicy};
use redoma_sandbox::settings::Settings;
use redoma_sandbox::{Manager, RunError, RunRequest, shell};

use super::edit::{self, Way};
use crate::args::{EditArgs, RunArgs};
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
    let request = request(policy, args.command, args.capture, &settings);
    let outcome = Manager::new(settings.homes).run(&request).map_err(|error| explained(error, &request))?;
    let report = Report::new(&request, &outcome);
    if let Some(file) = file {
        file.write(&report)?;
    }
    report.tell(args.json, printer)?;
    for target in outcome.network.always {
        // The answer was given in this session; it is written where the user would write it.
        edit::edit(Way::Allow, &EditArgs { target, project: false, user: false }, printer)?;
    }
    Ok(Exit::of_command(outcome.end.exit_code()))
}

fn request(policy: ResolvedPolicy, argv: Vec<OsString>, capture: bool, settings: &Settings) -> RunRequest {
    let project = &settings.project;
    RunRequest {
        policy,
        argv,
        cwd: project.cwd.clone(),
        git_dirs: project.git_dirs.clone(),
        capture,
        variables: std::env::vars_os().collect(),
    }
}

/// A command that could not be started is named, with the question that explains it; the exit code stays.
fn explained(error: RunError, request: &RunRequest) -> anyhow::Error {
    let no_boundary = error.exit_code() == 125;
    match request.argv.first() {
        Some(program) if !no_boundary => {
            let why = explanation(program, &request.cwd);
            anyhow::Error::new(error).context(Hinted::new(format!("cannot run {}", program.display()), why))
        }
        _ => error.into(),
    }
}

/// What to ask about a program: the policy where it is there, else where it was looked for.
fn explanation(program: &OsStr, cwd: &Path) -> String {
    let word = shell::word(program);
    let by_path = program.as_bytes().contains(&b'/');
    let search = std::env::var_os("PATH").filter(|_| !by_path).unwrap_or_default();
    let folders = if by_path { vec![PathBuf::new()] } else { std::env::split_paths(&search).collect() };
    let mut found = folders.iter().map(|folder| cwd.join(folder).join(program)).filter(|path| path.is_file());
    match found.next() {
        Some(path) if path.metadata().is_ok_and(|meta| meta.mode() & 0o111 == 0) => {
            format!("chmod +x {}", shell::word(path))
        }
        Some(path) => format!("redoma why exec {}", shell::word(path)),
        None if by_path => format!("ls -l {word}"),
        None => format!("command -v {word}"),
    }
}

/// Before the command: only what it may surprise the user not to have known. `redoma policy check` tells the rest.
fn tell_urgent(policy: &ResolvedPolicy, printer: &Printer) {
    let urgent = |kind| {
        matches!(kind, NoticeKind::Untrusted | NoticeKind::Ceiling | NoticeKind::Loader | NoticeKind::Preset)
    };
    super::policy::tell_notices(policy.notices.iter().filter(|notice| urgent(notice.kind)), printer);
}
