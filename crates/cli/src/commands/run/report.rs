//! What is said at the end of a run: on standard error in short, or whole as JSON.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use redoma_audit::SessionId;
use redoma_audit::escape::{printable, printable_block};
use redoma_policy::{Question, Tier};
use redoma_sandbox::quarantine::{Outcome, Quarantined};
use redoma_sandbox::{NetworkSummary, RunEnd, RunOutcome, RunRequest};
use serde::Serialize;

use crate::printer::{BOLD, Printer, WARN, paint};

/// Names listed before the rest is only counted.
const SHOWN: usize = 5;

/// One run, told.
#[derive(Serialize)]
pub(super) struct Report {
    session: SessionId,
    command: Vec<String>,
    exit_code: i32,
    timed_out: bool,
    tier: Tier,
    landlock: u32,
    wall_us: u128,
    user_us: u128,
    system_us: u128,
    peak_memory: u64,
    hidden: Vec<Hidden>,
    quarantined: Vec<Moved>,
    network: NetworkSummary,
    notes: Vec<String>,
    /// What would let the first refused connection through, or show the first hidden path.
    change: Option<String>,
}

/// A denied path that was hidden.
#[derive(Serialize)]
struct Hidden {
    path: PathBuf,
    rule: String,
}

/// A protected path that appeared.
#[derive(Serialize)]
struct Moved {
    path: PathBuf,
    kept: Option<PathBuf>,
}

// === impl Report ===

impl Report {
    pub(super) fn new(request: &RunRequest, outcome: &RunOutcome) -> Self {
        let hidden = outcome.hidden.iter();
        let usage = &outcome.usage;
        Self {
            session: outcome.session,
            command: request.argv.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
            exit_code: outcome.end.exit_code(),
            timed_out: outcome.end == RunEnd::TimedOut,
            tier: outcome.tier,
            landlock: outcome.enforced.landlock_abi,
            wall_us: outcome.wall.as_micros(),
            user_us: usage.user.as_micros(),
            system_us: usage.system.as_micros(),
            peak_memory: usage.peak_memory,
            hidden: hidden
                .map(|(path, rule)| Hidden { path: path.clone(), rule: rule.to_string() })
                .collect(),
            quarantined: outcome.quarantined.iter().map(Moved::from).collect(),
            network: outcome.network.clone(),
            notes: outcome.notes.clone(),
            change: change(request, outcome),
        }
    }

    /// As JSON, also when quiet: it was asked for. In short only when there is something to say.
    pub(super) fn tell(&self, json: bool, printer: &Printer) -> anyhow::Result<()> {
        if json {
            let text = serde_json::to_string_pretty(self)?;
            writeln!(std::io::stderr(), "{text}")?;
            return Ok(());
        }
        let lines = self.lines();
        if !lines.is_empty() {
            let head = paint(BOLD, format_args!("redoma: session {}", self.session));
            printer.note(format_args!("{head}\n{}", lines.join("\n")));
        }
        if let Some(change) = self.change.as_ref().filter(|_| !lines.is_empty()) {
            printer.hint(printable_block(change));
        }
        Ok(())
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.timed_out {
            lines.push(format!("  {} the time limit ended it", paint(WARN, "limit:")));
        }
        if !self.hidden.is_empty() {
            let names = self.hidden.iter().map(|one| one.path.as_path());
            lines.push(format!("  {} {}", paint(WARN, "denied:"), listed(names)));
        }
        if !self.quarantined.is_empty() {
            let names = self.quarantined.iter().map(|one| one.path.as_path());
            lines.push(format!("  {} {}", paint(WARN, "moved to quarantine:"), listed(names)));
        }
        lines.extend(self.network_lines());
        lines.extend(self.notes.iter().map(|note| format!("  {} {}", paint(WARN, "note:"), printable(note))));
        lines
    }
}

impl Report {
    /// What was refused, and what passed unseen. That something was looked into goes without saying.
    fn network_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let refused = &self.network.refused;
        for one in refused.iter().take(SHOWN) {
            let times = if one.times > 1 { format!(" ({} times)", one.times) } else { String::new() };
            let target = printable(&one.target);
            lines.push(format!("  {} {target}, {}{times}", paint(WARN, "blocked:"), printable(&one.reason)));
        }
        if refused.len() > SHOWN {
            let more = refused.len() - SHOWN;
            lines.push(format!("  {} {more} more: `redoma net flows --blocked`", paint(WARN, "blocked:")));
        }
        if self.network.opaque > 0 {
            let count = self.network.opaque;
            let what = if count == 1 { "connection" } else { "connections" };
            lines.push(format!("  {} {count} {what} passed unseen", paint(WARN, "opaque:")));
        }
        lines
    }
}

impl From<&Quarantined> for Moved {
    fn from(found: &Quarantined) -> Self {
        let kept = match &found.outcome {
            Outcome::Moved(to) => Some(to.clone()),
            _ => None,
        };
        Self { path: found.path.clone(), kept }
    }
}

/// The change that would let the first through that was refused, or show the first path that was hidden.
fn change(request: &RunRequest, outcome: &RunOutcome) -> Option<String> {
    let refused = outcome.network.refused.iter().find_map(|refused| refused.change.clone());
    let hidden = || {
        let (path, _) = outcome.hidden.first()?;
        let verdict = request.policy.decide(&Question::Read(path), outcome.tier);
        verdict.change.map(|change| change.to_string())
    };
    refused.or_else(hidden)
}

fn listed<'a>(paths: impl ExactSizeIterator<Item = &'a Path>) -> String {
    let more = paths.len().saturating_sub(SHOWN);
    let names: Vec<_> = paths.take(SHOWN).map(|path| printable(path).into_owned()).collect();
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    names.join(", ") + &rest
}

/// A report file, opened before the command can put anything else in its place.
pub(super) struct ReportFile {
    path: PathBuf,
    file: File,
}

// === impl ReportFile ===

impl ReportFile {
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        let nofollow = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let mut options = File::options();
        let opened = options.write(true).create(true).truncate(true).custom_flags(nofollow).open(path);
        let file = opened.with_context(|| format!("cannot write the report {}", path.display()))?;
        Ok(Self { path: path.to_owned(), file })
    }

    pub(super) fn write(mut self, report: &Report) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec_pretty(report)?;
        text.push(b'\n');
        self.file.write_all(&text).with_context(|| format!("cannot write the report {}", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_counted_and_names_are_escaped() {
        let names: Vec<PathBuf> =
            ["/p/a\u{1b}[2J", "/b", "/c", "/d", "/e", "/f", "/g"].map(Into::into).into();
        let shown = listed(names.iter().map(PathBuf::as_path));
        assert_eq!(shown, r"/p/a\u{1b}[2J, /b, /c, /d, /e and 2 more");
    }
}
