//! Every attempt succeeds where no sandbox stops it, or it would prove nothing.

use std::process::{Command, Stdio};

use redoma_redteam::{Attempt, Outcome, Planted, Tier, attempts};

/// Runs `attempt` in a process of its own with nothing around it, and asks the host what came of it.
fn outside(attempt: &Attempt) -> Outcome {
    let root = tempfile::tempdir().expect("a folder");
    let planted = Planted::new(root.path(), Tier::Full).expect("things to attack");
    // nextest names the place at run time: the archive may run elsewhere than where it was built.
    let program = std::env::var_os("NEXTEST_BIN_EXE_redoma-attempt");
    let output = Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_redoma-attempt").into()))
        .args([attempt.name, &planted.stage_outside().to_json().expect("a stage")])
        .env("PLANTED_CALLER_TOKEN", &planted.stage().marker)
        .stdin(Stdio::null())
        .output()
        .expect("the attempt runs");
    let inside = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| Outcome::Stopped {
        by: format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)),
    });
    planted.verdict(attempt, inside)
}

fn succeed(chosen: impl Fn(&Attempt) -> bool) {
    let (mut seen, mut failed) = (Vec::new(), Vec::new());
    for attempt in attempts().iter().filter(|attempt| chosen(attempt)) {
        if !attempt.twin.who.includes_caller() {
            continue;
        }
        let outcome = outside(attempt);
        seen.push(format!("{:32} {outcome}\n", attempt.name));
        if !outcome.is_success() && !attempt.twin.optional {
            failed.push(format!("{}: {outcome}", attempt.name));
        }
    }
    assert!(
        failed.is_empty(),
        "stopped though nothing is around them:\n{}\nall of them:\n{}",
        failed.join("\n"),
        seen.concat()
    );
}

macro_rules! sections {
    ($($test:ident: $section:ident),*) => {$(
        #[test]
        fn $test() {
            succeed(|attempt| attempt.section == redoma_redteam::Section::$section);
        }
    )*};
}

sections! {
    file_attempts_can_succeed: Files,
    process_attempts_can_succeed: Processes,
    kernel_attempts_can_succeed: Kernel,
    network_attempts_can_succeed: NetworkNone,
    limit_attempts_can_succeed: Limits
}

#[test]
fn names_are_unique_and_kebab_case() {
    let mut names: Vec<_> = attempts().iter().map(|attempt| attempt.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    assert!(names.iter().all(|name| name.chars().all(kebab)), "{names:?}");
}
