//! One attempt at a time: plant, run it inside, ask the host what came of it.

use std::fmt;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use redoma_redteam::{Attempt, Outcome, Planted, Section, Stage, Tier, attempts};

/// What is put around an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Around {
    /// Nothing: does this kernel have what the attempt needs?
    Nothing,
    /// Redoma, in one tier.
    Redoma(Tier),
    /// Bubblewrap, with the mounts of the planted policy.
    Bubblewrap,
}

/// What came of one attempt.
pub(crate) struct Row {
    attempt: &'static Attempt,
    around: Around,
    shown: Shown,
}

/// What an attempt showed.
enum Shown {
    Tried(Outcome),
    /// This kernel lacks what it needs.
    Absent,
    /// The machine can't hold the user to this limit: asked to be strict, Redoma said so and started nothing.
    Refused,
    /// The tier does not promise to stop it: by name, so that nobody takes silence for safety.
    NotPromised,
}

/// Tries everything of `section` that the tier promises to stop.
pub(crate) fn rows(around: Around, section: Section) -> Vec<Row> {
    let tier = around.tier();
    let chosen =
        attempts().iter().filter(|attempt| attempt.section == section && attempt.tiers.contains(&tier));
    chosen.map(|attempt| row(around, attempt)).collect()
}

/// Appends to the file that `REDOMA_REDTEAM_TABLE` names, for whoever ran the suite to show.
pub(crate) fn record(table: &str) {
    if let Some(path) = std::env::var_os("REDOMA_REDTEAM_TABLE") {
        let opened = OpenOptions::new().create(true).append(true).open(path);
        opened.and_then(|mut file| file.write_all(table.as_bytes())).expect("the table can be written");
    }
}

fn row(around: Around, attempt: &'static Attempt) -> Row {
    let possible = || !attempt.twin.optional || outcome(Around::Nothing, attempt).is_success();
    let shown = match () {
        () if !attempt.tiers.contains(&around.tier()) => Shown::NotPromised,
        () if !possible() => Shown::Absent,
        () if refused_by_name(around, attempt) => Shown::Refused,
        () => Shown::Tried(outcome(around, attempt)),
    };
    Row { attempt, around, shown }
}

/// A limit that would not hold must not be taken on: with `strict`, no start. Of everything else a refusal is a failure.
fn refused_by_name(around: Around, attempt: &Attempt) -> bool {
    let Around::Redoma(tier) = around else { return false };
    if attempt.limits.is_empty() {
        return false;
    }
    let root = tempfile::tempdir().expect("a folder");
    let planted = Planted::new(root.path(), tier).expect("things to attack");
    let output = in_redoma(tier, attempt, &planted, root.path()).arg("true").output().expect("it starts");
    output.status.code() == Some(125) && String::from_utf8_lossy(&output.stderr).contains("limit")
}

fn outcome(around: Around, attempt: &Attempt) -> Outcome {
    let root = tempfile::Builder::new().prefix("redoma-redteam-").tempdir().expect("a folder");
    let planted = Planted::new(root.path(), around.tier()).expect("things to attack");
    let inside = run(around, attempt, &planted, root.path());
    planted.verdict(attempt, inside)
}

fn run(around: Around, attempt: &Attempt, planted: &Planted, root: &Path) -> Outcome {
    let stage = planted.stage();
    let mut command = match around {
        Around::Nothing => in_nothing(attempt, &planted.stage_outside()),
        Around::Redoma(tier) => {
            let mut command = in_redoma(tier, attempt, planted, root);
            command.arg(redoma_tests::redoma()).args(inner(attempt, stage));
            command
        }
        Around::Bubblewrap => in_bubblewrap(attempt, stage),
    };
    // A secret of whoever calls: it must not arrive inside.
    command.env("PLANTED_CALLER_TOKEN", &stage.marker);
    let output = command.stdin(Stdio::null()).output().expect("it starts");
    reported(&output).unwrap_or_else(|| ended(around, attempt, &output))
}

/// The last line of JSON: what stands around may print before it.
fn reported(output: &Output) -> Option<Outcome> {
    output.stdout.split(|byte| *byte == b'\n').rev().find_map(|line| serde_json::from_slice(line).ok())
}

/// No report: the process was ended on the way. That counts as stopped only for the reasons there are.
fn ended(around: Around, attempt: &Attempt, output: &Output) -> Outcome {
    let by_signal = output.status.signal().map(|signal| 128 + signal);
    let stopped = by_signal.or(output.status.code()).and_then(|code| attempt.stopped_by_end(code));
    match stopped {
        Some(stopped) => stopped,
        // Around nothing, whatever stopped it, the kernel lacks something.
        None if around == Around::Nothing => Outcome::Stopped { by: "its end".to_owned() },
        None => panic!(
            "{} did not report: {}\n{}",
            attempt.name,
            output.status,
            String::from_utf8_lossy(&output.stderr)
        ),
    }
}

fn in_nothing(attempt: &Attempt, stage: &Stage) -> Command {
    let mut command = Command::new(redoma_tests::redoma());
    command.args(inner(attempt, stage));
    command
}

/// `redoma run` up to the command.
fn in_redoma(tier: Tier, attempt: &Attempt, planted: &Planted, root: &Path) -> Command {
    let policy = root.join("policy.toml");
    // Strict only where a limit is what is tried: the profile's own may not all hold for this user.
    let strict = !attempt.limits.is_empty();
    let limits = format!("[limits]\nstrict = {strict}\n{}\n", attempt.limits);
    std::fs::write(&policy, planted.policy() + &limits).expect("the policy is written");
    let program = redoma_tests::redoma();
    let mut command = Command::new(&program);
    command.args(["run", "--quiet", "--net", "none", "--tier", tier_name(tier), "--policy"]).arg(policy);
    command.arg("--read").arg(&program).arg("--");
    command.current_dir(&planted.stage().project);
    command.env("HOME", &planted.stage().home).env("REDOMA_HOME", root.join("redoma"));
    command
}

fn in_bubblewrap(attempt: &Attempt, stage: &Stage) -> Command {
    let program = redoma_tests::redoma();
    let mut command = Command::new("bwrap");
    command.args(["--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--setenv", "PATH"]);
    command.args(["/usr/bin:/bin", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]);
    for folder in ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc"] {
        command.args(["--ro-bind", folder, folder]);
    }
    command.arg("--bind").args([&stage.project, &stage.project]);
    command.arg("--ro-bind").args([&stage.library, &stage.library]);
    for denied in [stage.library.join("secret.key"), stage.library.join("tool")] {
        command.args(["--ro-bind", "/dev/null"]).arg(denied);
    }
    command.arg("--ro-bind").args([&program, &program]).arg("--chdir").arg(&stage.project);
    command.arg("--").arg(program).args(inner(attempt, stage));
    command
}

fn inner(attempt: &Attempt, stage: &Stage) -> [String; 5] {
    let stage = stage.to_json().expect("paths are UTF-8");
    ["redteam", "--attempt", attempt.name, "--stage", &stage].map(str::to_owned)
}

fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Full => "full",
        Tier::Landlock => "landlock",
    }
}

// === impl Around ===

impl Around {
    fn tier(self) -> Tier {
        match self {
            Self::Redoma(tier) => tier,
            Self::Nothing | Self::Bubblewrap => Tier::Full,
        }
    }
}

// === impl Row ===

impl Row {
    /// The attacker got what it wanted.
    pub(crate) fn breach(&self) -> bool {
        matches!(&self.shown, Shown::Tried(outcome) if outcome.is_success())
    }

    /// The machine can't hold this user to the limit, and Redoma said so.
    pub(crate) fn refused(&self) -> bool {
        matches!(self.shown, Shown::Refused)
    }

    /// It was made, and something was shown.
    pub(crate) fn tried(&self) -> bool {
        matches!(self.shown, Shown::Tried(_))
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tier, driver) = match self.around {
            Around::Redoma(tier) => (tier_name(tier), "native"),
            Around::Bubblewrap => ("-", "bwrap"),
            Around::Nothing => ("-", "none"),
        };
        let user = if rustix::process::geteuid().is_root() { "root" } else { "user" };
        write!(f, "{:32} {tier:9} {driver:7} {user:5} ", self.attempt.name)?;
        match &self.shown {
            Shown::Tried(outcome) => writeln!(f, "{outcome}"),
            Shown::Refused => writeln!(f, "refused by name: this limit can't be enforced for this user here"),
            Shown::Absent => writeln!(f, "not here: this kernel lacks it"),
            Shown::NotPromised => writeln!(f, "not promised by this tier"),
        }
    }
}
