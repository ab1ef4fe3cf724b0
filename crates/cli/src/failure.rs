//! How an error is told: what failed, why, and one hint that works when pasted.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

use redoma_audit::escape::{printable, printable_block};
use redoma_policy::PolicyError;
use redoma_sandbox::RunError;
use redoma_sandbox::changes::ChangesError;
use redoma_sandbox::driver::DriverError;
use redoma_sandbox::homes::HomesError;
use redoma_sandbox::preview::PreviewError;
use redoma_sandbox::project::ProjectError;
use redoma_sandbox::services::ServicesError;
use redoma_sandbox::settings::SettingsError;
use redoma_sandbox::templates::TemplateError;
use redoma_sandbox::trust::TrustError;
use redoma_sandbox::undo::UndoError;

use crate::exit::Exit;
use crate::printer::{BAD, DIM, HINT};

/// An error of the command line itself, with its hint.
#[derive(Debug)]
pub(crate) struct Hinted {
    what: String,
    hint: String,
}

impl std::fmt::Display for Hinted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for Hinted {}

/// An error with the line to paste that mends it.
pub(crate) fn hinted(what: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    Hinted::new(what, hint).into()
}

impl Hinted {
    /// Also to be put around another error, as its context.
    pub(crate) fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into() }
    }
}

/// Tells the error on standard error and says how to exit.
///
/// A closed pipe is no error: whoever read has read enough. `exit` is the code for what has none of its own.
pub(crate) fn report(error: &anyhow::Error, exit: Exit) -> Exit {
    if is_broken_pipe(error) {
        return Exit::OK;
    }
    // Nobody reads standard error any more: the exit code still tells.
    let _ = anstream::stderr().write_all(render(error).as_bytes());
    let of_run = error.chain().find_map(|cause| cause.downcast_ref::<RunError>()).map(RunError::exit_code);
    let of_driver = error.chain().find_map(|cause| cause.downcast_ref::<DriverError>());
    let of_run =
        of_run.or_else(|| of_driver.filter(|_| exit == Exit::NO_BOUNDARY).map(DriverError::exit_code));
    of_run.map_or(exit, Exit::of_command)
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}

fn render(error: &anyhow::Error) -> String {
    if let Some(located) = policy_error(error).filter(|policy| policy.located().is_some()) {
        return render_policy(located);
    }
    let mut text = format!("{BAD}error:{BAD:#} {}\n", lines(&error.to_string()));
    for cause in causes(error) {
        text.push_str(&format!("  {DIM}why:{DIM:#} {}\n", lines(&cause)));
    }
    if let Some(hint) = hint_of(error) {
        text.push_str(&format!("{HINT}hint:{HINT:#} {}\n", printable_block(&hint)));
    }
    text
}

/// The causes below an error, without those that the error above them has said already.
fn causes(error: &anyhow::Error) -> Vec<String> {
    let mut said = error.to_string();
    let mut causes = Vec::new();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !said.contains(&cause) {
            said.clone_from(&cause);
            causes.push(cause);
        }
    }
    causes
}

/// The line, the caret and the fix. The line may come from a hostile file: where it holds anything that a terminal
/// acts on, the report is shown escaped and without colours.
fn render_policy(error: &PolicyError) -> String {
    let plain = error.render(false);
    match printable_block(&plain) {
        Cow::Borrowed(_) => error.render(io::stderr().is_terminal()),
        Cow::Owned(escaped) => escaped,
    }
}

/// Escapes each line of a message by itself: paths in it may hold terminal sequences.
fn lines(message: &str) -> String {
    let escaped: Vec<_> = message.lines().map(printable).collect();
    escaped.join("\n       ")
}

fn policy_error(error: &anyhow::Error) -> Option<&PolicyError> {
    error.chain().find_map(|cause| match cause.downcast_ref::<SettingsError>() {
        Some(SettingsError::Policy(policy)) => Some(&**policy),
        _ => cause.downcast_ref::<PolicyError>(),
    })
}

/// The hint of the first error in the chain that has one.
fn hint_of(error: &anyhow::Error) -> Option<String> {
    // A context is no link of the chain by itself; anyhow finds it.
    if let Some(hinted) = error.downcast_ref::<Hinted>() {
        return Some(hinted.hint.clone());
    }
    error.chain().find_map(|cause| {
        None.or_else(|| cause.downcast_ref::<Hinted>().map(|error| error.hint.clone()))
            .or_else(|| cause.downcast_ref::<SettingsError>().and_then(SettingsError::hint))
            .or_else(|| cause.downcast_ref::<PolicyError>().and_then(PolicyError::hint))
            .or_else(|| cause.downcast_ref::<redoma_audit::Error>().and_then(redoma_audit::Error::hint))
            .or_else(|| cause.downcast_ref::<redoma_image::Error>().and_then(redoma_image::Error::hint))
            .or_else(|| cause.downcast_ref::<RunError>().map(RunError::hint))
            .or_else(|| cause.downcast_ref::<PreviewError>().map(PreviewError::hint))
            .or_else(|| cause.downcast_ref::<ServicesError>().map(ServicesError::hint))
            .or_else(|| cause.downcast_ref::<TemplateError>().map(TemplateError::hint))
            .or_else(|| cause.downcast_ref::<DriverError>().map(DriverError::hint))
            .or_else(|| cause.downcast_ref::<ChangesError>().map(ChangesError::hint))
            .or_else(|| cause.downcast_ref::<UndoError>().map(UndoError::hint))
            .or_else(|| cause.downcast_ref::<ProjectError>().map(ProjectError::hint))
            .or_else(|| cause.downcast_ref::<TrustError>().map(TrustError::hint))
            .or_else(|| cause.downcast_ref::<HomesError>().map(HomesError::hint))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    fn plain(error: &anyhow::Error) -> String {
        anstream::adapter::strip_str(&render(error)).to_string()
    }

    #[test]
    fn what_why_and_hint_come_in_this_order() {
        let cause = Err::<(), _>(hinted("it is locked", "unlock it"));
        let error = cause.context("cannot open the door").unwrap_err();
        assert_eq!(plain(&error), "error: cannot open the door\n  why: it is locked\nhint: unlock it\n");
    }

    #[test]
    fn a_context_brings_its_hint_and_what_was_said_is_not_said_again() {
        let deep = anyhow::anyhow!("no such file").context("cannot run: no such file");
        let error = deep.context(Hinted::new("cannot run x", "redoma why exec x"));
        let wanted = "error: cannot run x\n  why: cannot run: no such file\nhint: redoma why exec x\n";
        assert_eq!(plain(&error), wanted);
    }

    #[test]
    fn terminal_sequences_in_a_message_are_shown_not_sent() {
        let error = anyhow::anyhow!("no such file: a\u{1b}[2Jb");
        assert!(render(&error).contains("a\\u{1b}[2Jb"));
    }

    #[test]
    fn a_broken_pipe_anywhere_in_the_chain_is_no_error() {
        let pipe = Err::<(), _>(io::Error::from(io::ErrorKind::BrokenPipe)).context("printing");
        assert!(is_broken_pipe(&pipe.unwrap_err()));
        assert!(!is_broken_pipe(&io::Error::from(io::ErrorKind::NotFound).into()));
    }
}
