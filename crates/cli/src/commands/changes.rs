//! `redoma changes …`: what a session with an overlay workspace changed.

mod apply;
mod diff;
mod discard;
mod list;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::builder::styling::Style;
use redoma_audit::escape::printable;
use redoma_policy::{ResolvedPolicy, Workspace};
use redoma_sandbox::Kept;
use redoma_sandbox::changes::{Change, ChangeKind, ChangeSet, Conflict, Refusal, Selection};
use redoma_sandbox::homes::Homes;
use redoma_sandbox::walk::{FileKind, Match, Matcher, Verdict};

use super::kept;
use crate::args::{ChangesArgs, ChangesCommand, LayerArgs};
use crate::exit::Exit;
use crate::failure::hinted;
use crate::layers;
use crate::printer::{BAD, GOOD, Printer, WARN};

/// Does what was typed after `changes`.
pub(crate) fn dispatch(args: ChangesArgs, printer: &Printer) -> anyhow::Result<Exit> {
    match args.command.unwrap_or(ChangesCommand::List(args.list)) {
        ChangesCommand::List(args) => list::list(&args, printer),
        ChangesCommand::Diff(args) => diff::diff(&args, printer),
        ChangesCommand::Apply(args) => apply::apply(&args, printer),
        ChangesCommand::Discard(args) => discard::discard(&args, printer),
    }
}

/// A session's changes, and the policy they are held to.
struct Subject {
    kept: Kept,
    upper: PathBuf,
    policy: ResolvedPolicy,
}

// === impl Subject ===

impl Subject {
    /// The session that was named, else the newest of this project with an overlay workspace.
    fn find(session: Option<&str>) -> anyhow::Result<Self> {
        let homes = Homes::from_env()?;
        let fits = |kept: &Kept| kept.workspace == Workspace::Overlay && kept.undid.is_none();
        let kept = kept::pick(&homes, session, fits)?.ok_or_else(|| {
            hinted("no session here has changes that wait", "redoma run --workspace overlay -- CMD")
        })?;
        let policy = layers::resolve(&LayerArgs::default(), None, &[])?.policy;
        Ok(Self { upper: kept.upper(&homes), kept, policy })
    }

    /// The same, of a session that has ended.
    fn find_ended(session: Option<&str>) -> anyhow::Result<Self> {
        let subject = Self::find(session)?;
        kept::must_have_ended(&subject.kept, &Homes::from_env()?)?;
        Ok(subject)
    }

    /// What the policy denies and protects by now.
    fn matcher(&self) -> impl Fn(&Path, FileKind) -> Option<Match> + Sync + '_ {
        |path, kind| forbidden(&self.policy, path).or_else(|| git_pointer(path, kind))
    }

    /// The changes, held to a [`Subject::matcher`].
    fn set<'a>(&'a self, matcher: Matcher<'a>) -> ChangeSet<'a> {
        let began = SystemTime::UNIX_EPOCH + self.kept.began;
        ChangeSet { project: &self.kept.project, upper: &self.upper, began, matcher }
    }
}

fn forbidden(policy: &ResolvedPolicy, path: &Path) -> Option<Match> {
    let files = &policy.filesystem;
    let denied = files.denied(path).map(|_| Match { verdict: Verdict::Deny, rule: 0 });
    denied.or_else(|| files.protected(path).map(|_| Match { verdict: Verdict::Protect, rule: 0 }))
}

/// A `.git` that is no folder leads git to one of any name, whose configuration no rule knows to protect.
fn git_pointer(path: &Path, kind: FileKind) -> Option<Match> {
    let leads_on = path.ends_with(".git") && matches!(kind, FileKind::File | FileKind::Symlink);
    leads_on.then_some(Match { verdict: Verdict::Protect, rule: 0 })
}

/// What the user picked; without a path, everything.
fn selection(paths: &[String]) -> anyhow::Result<Selection> {
    Ok(if paths.is_empty() { Selection::all() } else { Selection::of(paths)? })
}

fn cells(change: &Change) -> [(Style, String); 3] {
    let (style, verb) = verb(change.kind);
    let note = obstacle(change).unwrap_or_default();
    [(style, verb.to_owned()), (WARN, note), (Style::new(), printable(&change.path).into_owned())]
}

fn verb(kind: ChangeKind) -> (Style, &'static str) {
    match kind {
        ChangeKind::Added => (GOOD, "added"),
        ChangeKind::Modified => (WARN, "modified"),
        ChangeKind::Deleted => (BAD, "deleted"),
        ChangeKind::Mode => (WARN, "mode"),
        ChangeKind::Link => (WARN, "link"),
        ChangeKind::Type => (WARN, "type"),
    }
}

/// Why a change is not applied, if it is not.
fn obstacle(change: &Change) -> Option<String> {
    let refused = change.refusal.as_ref().map(|refusal| format!("refused: {}", refusal_text(refusal)));
    refused.or_else(|| change.conflict.map(|conflict| format!("conflict: {}", conflict_text(conflict))))
}

fn refusal_text(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Device => "a device".to_owned(),
        Refusal::Fifo => "a named pipe".to_owned(),
        Refusal::Socket => "a socket".to_owned(),
        Refusal::SetId => "it would run with its owner's rights".to_owned(),
        Refusal::Name => "its name is no name".to_owned(),
        Refusal::LinkOutside(target) => format!("a link out of the project, to {}", printable(target)),
        Refusal::HardLink => "it has a name outside the changes".to_owned(),
        Refusal::Mark => "it carries a mark of the overlay file system".to_owned(),
        Refusal::Policy => "the policy denies or protects it".to_owned(),
        Refusal::Unreadable => "it cannot be read".to_owned(),
    }
}

fn conflict_text(conflict: Conflict) -> &'static str {
    match conflict {
        Conflict::Changed => "changed in the project meanwhile",
        Conflict::Vanished => "gone from the project meanwhile",
        Conflict::Parent => "its folder in the project is gone or a link",
        Conflict::NotEmpty => "the folder holds something the session did not know",
    }
}
