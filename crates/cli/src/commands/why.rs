//! `redoma why ACTION TARGET`: the verdict, the rule, and the smallest change that would decide otherwise.
//!
//! The answer is that of [`redoma_policy::ResolvedPolicy::decide`], which is also what is enforced (promise 3).

use std::path::{Path, PathBuf};

use redoma_audit::escape::{printable, printable_block};
use redoma_policy::{Authority, Effect, Host, InvalidHost, Place, Question, SmallestChange, Tier, Verdict};
use redoma_sandbox::settings::Settings;
use redoma_sandbox::why::{Act, Why};
use serde::Serialize;

use crate::args::{Action, WhyArgs};
use crate::exit::Exit;
use crate::layers::{self, Resolved};
use crate::printer::{BAD, BOLD, DIM, GOOD, Printer, WARN, paint};

/// The port of HTTPS.
const HTTPS: u16 = 443;

#[derive(Serialize)]
struct Answer<'a> {
    action: &'static str,
    target: String,
    tier: Tier,
    #[serde(flatten)]
    verdict: &'a Verdict,
}

/// Answers one question. Exits with 0 when it is allowed, else with 1.
pub(crate) fn why(args: &WhyArgs, printer: &Printer) -> anyhow::Result<Exit> {
    let resolved = layers::resolve(&args.layers, args.tier, &[])?;
    let tier = resolved.policy.tier.map_or_else(super::tier::of_machine, Ok)?;
    let subject = Subject::new(args, &resolved.settings);
    let (subject, verdict) = subject.decide(&resolved, tier)?;
    let answer = Answer { action: args.action.verb(), target: subject.to_string(), tier, verdict: &verdict };
    if args.json {
        printer.json(&answer)?;
    } else {
        tell(&answer, printer)?;
    }
    Ok(if verdict.effect == Effect::Allow { Exit::OK } else { Exit::FAILED })
}

/// What is asked about.
enum Subject {
    Path(Act, PathBuf),
    Host(Host, u16),
    NoHost(InvalidHost),
    Variable(String),
}

// === impl Subject ===

impl Subject {
    fn new(args: &WhyArgs, settings: &Settings) -> Self {
        match args.action {
            Action::Connect => match host_and_port(&args.target) {
                Ok((host, port)) => Self::Host(host, port),
                Err(error) => Self::NoHost(error),
            },
            Action::Env => Self::Variable(args.target.clone()),
            Action::Read => Self::Path(Act::Read, typed_path(&args.target, settings)),
            Action::Write => Self::Path(Act::Write, typed_path(&args.target, settings)),
            Action::Exec => Self::Path(Act::Exec, program(&args.target, settings)),
        }
    }

    /// The answer, and what it is about once links are followed.
    fn decide(self, resolved: &Resolved, tier: Tier) -> anyhow::Result<(Self, Verdict)> {
        let policy = &resolved.policy;
        let verdict = match &self {
            Self::Path(act, typed) => {
                let why = Why::new(policy, tier, &resolved.settings.homes)?;
                let (path, verdict) = why.path(*act, typed);
                return Ok((Self::Path(*act, path), verdict));
            }
            Self::Host(host, port) => policy.decide(&Question::Connect { host, port: *port }, tier),
            Self::NoHost(error) => Verdict::no_host(error),
            Self::Variable(name) => policy.decide(&Question::Env(name), tier),
        };
        Ok((self, verdict))
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path(_, path) => f.write_str(&printable(path)),
            Self::Host(host, port) => Authority { host: host.clone(), port: Some(*port) }.fmt(f),
            Self::NoHost(error) => f.write_str(&printable(&error.text)),
            Self::Variable(name) => f.write_str(&printable(name)),
        }
    }
}

impl Action {
    fn verb(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Exec => "exec",
            Self::Connect => "connect",
            Self::Env => "env",
        }
    }
}

fn typed_path(target: &str, settings: &Settings) -> PathBuf {
    settings.expand(target, &settings.project.cwd)
}

/// A bare name is looked up in `PATH`, as execvp(3) does.
fn program(target: &str, settings: &Settings) -> PathBuf {
    if target.contains('/') {
        return typed_path(target, settings);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(target)).find(|file| is_program(file));
    found.unwrap_or_else(|| typed_path(target, settings))
}

fn is_program(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`; without a port, that of HTTPS. An address alone may stand without brackets.
fn host_and_port(target: &str) -> Result<(Host, u16), InvalidHost> {
    if let Ok(host) = target.parse() {
        return Ok((host, HTTPS));
    }
    let authority: Authority = target.parse()?;
    Ok((authority.host, authority.port.unwrap_or(HTTPS)))
}

fn tell(answer: &Answer<'_>, printer: &Printer) -> anyhow::Result<()> {
    let verdict = answer.verdict;
    let subject = paint(BOLD, format_args!("{} {}", answer.action, answer.target));
    printer.line(format_args!("{subject}: {}{}", outcome(verdict), meets(answer)))?;
    if let Some(rule) = &verdict.rule {
        let text = printable(&*rule.text);
        printer.line(format_args!("  {} {rule}  {}", paint(DIM, "rule:"), paint(DIM, text)))?;
    }
    printer.line(format_args!("  {} {}", paint(DIM, "why:"), printable(&verdict.because)))?;
    match &verdict.change {
        Some(SmallestChange::Command(command)) => printer.hint(printable_block(command)),
        Some(by_hand) => {
            let by_hand = by_hand.to_string();
            printer.line(format_args!("  {} {}", paint(DIM, "change:"), printable_block(&by_hand)))?;
        }
        None => {}
    }
    Ok(())
}

fn outcome(verdict: &Verdict) -> String {
    match verdict.effect {
        Effect::Allow => paint(GOOD, "allowed"),
        Effect::Deny => paint(BAD, "denied"),
        Effect::Ask => paint(WARN, "you are asked"),
    }
}

/// What a path's action meets instead of the real thing.
fn meets(answer: &Answer<'_>) -> &'static str {
    match answer.verdict.place {
        Place::ChangeSet => ", in the change set: it waits for `redoma changes apply`",
        Place::Private if answer.action != "env" => {
            ", in the sandbox's own files, which vanish with the session"
        }
        Place::Covered => ": a stand-in is shown in its place",
        Place::Absent if matches!(answer.action, "read" | "write" | "exec") => ": it does not exist inside",
        Place::Quarantined => ": what is made there is moved to quarantine at once",
        Place::Host | Place::Private | Place::Absent => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_split_from_ports_and_addresses_kept_whole() {
        let split = |text| host_and_port(text).map(|(host, port)| (host.to_string(), port)).unwrap();
        assert_eq!(split("example.com"), ("example.com".into(), 443));
        assert_eq!(split("example.com:22"), ("example.com".into(), 22));
        assert_eq!(split("::1"), ("::1".into(), 443));
        assert_eq!(split("[::1]:5432"), ("::1".into(), 5432));
        for text in ["example.com:http", "example.com:70000", "0x7f.1", "2130706433:80", "a b"] {
            assert!(host_and_port(text).is_err(), "{text}");
        }
    }
}
