//! What a run writes into the record.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use redoma_audit::event::{
    Alert, Approval, Decision, DecisionBy, Exec, ExecEnd, FileAction, FileEvent, Lifecycle, Limit,
    LimitAction, LimitKind, Outcome, Phase, Question, SessionEnd, SessionMeta, Severity, Usage, Verdict,
};
use redoma_audit::{Argv, Digest, Event, SessionId, SessionLog, Store, Text};
use redoma_jail::{Ending, limits};
use redoma_policy::{NetworkDefault, ResolvedPolicy, Tier};

use crate::ask::Answered;
use crate::driver::{DriverName, Spec};
use crate::error::RunError;
use crate::quarantine::{self, Quarantined};
use crate::run::{RunEnd, RunRequest};

/// The log of one run. What cannot be written ends the run.
pub(crate) struct RunRecord(SessionLog);

impl RunRecord {
    pub(crate) fn begin(
        store: &Store,
        session: SessionId,
        request: &RunRequest,
        tier: Tier,
    ) -> Result<Self, RunError> {
        let policy = &request.policy;
        let text = |path: &Path| Text::new(path.as_os_str());
        Ok(Self(store.begin(SessionMeta {
            session,
            version: Text::new(env!("CARGO_PKG_VERSION")),
            argv: Argv::new(&request.argv),
            cwd: text(&request.cwd),
            project: Some(text(&policy.project)),
            agent: policy.agent.as_ref().map(|agent| Text::new(agent.name.as_str())),
            sandbox: None,
            driver: Text::new("native"),
            tier: match tier {
                Tier::Full => redoma_audit::event::Tier::Full,
                Tier::Landlock => redoma_audit::event::Tier::Landlock,
            },
            net: Text::new(network_name(policy.network.default)),
            policy: digest(policy),
            uid: rustix::process::getuid().as_raw(),
            keeper: rustix::process::getpid().as_raw_nonzero().get().unsigned_abs(),
            kernel: Text::new(&*rustix::system::uname().release().to_string_lossy()),
        })?))
    }

    /// The log of one life of a sandbox that outlives it.
    pub(crate) fn begin_sandbox(
        store: &Store,
        session: SessionId,
        spec: &Spec,
        policy: &ResolvedPolicy,
        driver: DriverName,
    ) -> Result<Self, RunError> {
        let arguments = ["redoma".to_owned(), "sandbox".to_owned(), spec.name.to_string()];
        Ok(Self(store.begin(SessionMeta {
            sandbox: Some(Text::new(spec.id.as_str())),
            net: Text::new(network_name(policy.network.default)),
            policy: digest(policy),
            tier: redoma_audit::event::Tier::Full,
            ..own(session, &arguments, &driver.to_string())
        })?))
    }

    /// A command was started in such a sandbox.
    pub(crate) fn exec(&mut self, pid: u32, argv: &[OsString], cwd: &Path) -> Result<(), RunError> {
        let cwd = Some(Text::new(cwd.as_os_str()));
        self.append(&Event::Exec(Exec { pid, path: None, argv: Argv::new(argv), cwd }))
    }

    pub(crate) fn exec_end(&mut self, pid: u32, end: RunEnd, wall: Duration) -> Result<(), RunError> {
        self.append(&Event::ExecEnd(ExecEnd { pid, outcome: outcome(end), wall_us: micros(wall) }))
    }

    pub(crate) fn phase(&mut self, phase: Phase) -> Result<(), RunError> {
        self.append(&Event::Lifecycle(Lifecycle { phase, detail: None }))
    }

    /// The log of a proxy, which runs no command.
    pub(crate) fn begin_proxy(
        store: &Store,
        session: SessionId,
        policy: &ResolvedPolicy,
        address: SocketAddr,
    ) -> Result<Self, RunError> {
        let arguments = ["redoma".to_owned(), "proxy".to_owned(), address.to_string()];
        let project = Some(Text::new(policy.project.as_os_str()));
        let net = network_name(policy.network.default);
        Ok(Self(store.begin(SessionMeta {
            cwd: Text::new(policy.project.as_os_str()),
            project,
            net: Text::new(net),
            policy: digest(policy),
            ..own(session, &arguments, "proxy")
        })?))
    }

    /// The log of what is done for a session whose keeper was killed.
    pub(crate) fn begin_finish(store: &Store, session: SessionId, of: SessionId) -> Result<Self, RunError> {
        let arguments = ["redoma".to_owned(), "doctor".to_owned(), "--gc".to_owned(), of.to_string()];
        Ok(Self(store.begin(own(session, &arguments, "janitor"))?))
    }

    pub(crate) fn covered(&mut self, path: &Path) -> Result<(), RunError> {
        let path = Text::new(path.as_os_str());
        self.append(&Event::File(FileEvent { action: FileAction::Covered, path, moved_to: None, pid: None }))
    }

    /// The boundary stands, and what had to fail has failed.
    pub(crate) fn built(&mut self, landlock_abi: u32, canary: &redoma_jail::Canary) -> Result<(), RunError> {
        let detail = Some(Text::new(&format!("Landlock interface {landlock_abi}")));
        self.append(&Event::Lifecycle(Lifecycle { phase: Phase::Built, detail }))?;
        let attempts = [
            (Question::Read, canary.read.display().to_string()),
            (Question::Write, canary.write.display().to_string()),
            (Question::Connect, format!("127.0.0.1:{}", canary.connect)),
        ];
        for (question, target) in attempts {
            self.append(&Event::Decision(Decision {
                question,
                target: Text::new(&target),
                verdict: Verdict::Deny,
                rule: Text::new("canary"),
                source: None,
                change: None,
                by: DecisionBy::Canary,
            }))?;
        }
        self.append(&Event::Lifecycle(Lifecycle { phase: Phase::CanaryPassed, detail: None }))
    }

    pub(crate) fn started(&mut self, pid: u32, request: &RunRequest) -> Result<(), RunError> {
        let cwd = Some(Text::new(request.cwd.as_os_str()));
        self.append(&Event::Exec(Exec { pid, path: None, argv: Argv::new(&request.argv), cwd }))
    }

    pub(crate) fn quarantined(&mut self, found: &Quarantined) -> Result<(), RunError> {
        let path = Text::new(found.path.as_os_str());
        let moved_to = match &found.outcome {
            quarantine::Outcome::Moved(to) => Some(Text::new(to.as_os_str())),
            quarantine::Outcome::Removed | quarantine::Outcome::Failed(_) => None,
        };
        let failed = matches!(found.outcome, quarantine::Outcome::Failed(_));
        self.append(&Event::File(FileEvent {
            action: FileAction::Quarantined,
            path: path.clone(),
            moved_to,
            pid: None,
        }))?;
        self.append(&Event::Alert(Alert {
            rule: Text::new("protected-path-appeared"),
            severity: if failed { Severity::Critical } else { Severity::Warning },
            message: Text::new(if failed { "it could not be moved away" } else { "it was moved away" }),
            path: Some(path),
            pid: None,
        }))
    }

    /// Somebody outside replaced a covered or pinned file.
    pub(crate) fn held_again(&mut self, path: &Path) -> Result<(), RunError> {
        self.append(&Event::Alert(Alert {
            rule: Text::new("replaced-from-outside"),
            severity: Severity::Notice,
            message: Text::new(
                "a program outside replaced it, and for a moment it showed inside; it was covered again",
            ),
            path: Some(Text::new(path.as_os_str())),
            pid: None,
        }))
    }

    /// A protected path is not what it was when the session began.
    pub(crate) fn protected_changed(&mut self, path: &Path) -> Result<(), RunError> {
        self.append(&Event::Alert(Alert {
            rule: Text::new("protected-path-changed"),
            severity: Severity::Warning,
            message: Text::new("it was changed or replaced from outside while the session ran"),
            path: Some(Text::new(path.as_os_str())),
            pid: None,
        }))
    }

    /// A question of the gateway's was answered.
    pub(crate) fn answered(&mut self, answered: &Answered) -> Result<(), RunError> {
        self.append(&Event::Approval(Approval {
            question: Question::Connect,
            target: Text::new(&answered.target()),
            answer: answered.answer,
            by: Text::new("terminal"),
        }))
    }

    /// The gateway ended before the session.
    pub(crate) fn gateway_gone(&mut self) -> Result<(), RunError> {
        self.append(&Event::Alert(Alert {
            rule: Text::new("gateway-ended"),
            severity: Severity::Critical,
            message: Text::new("the gateway ended before the session; since then nothing could leave"),
            path: None,
            pid: None,
        }))
    }

    pub(crate) fn time_limit(&mut self, allowed: Duration) -> Result<(), RunError> {
        self.append(&Event::Limit(Limit {
            limit: LimitKind::Time,
            allowed: micros(allowed),
            used: None,
            action: LimitAction::Ended,
            by: Text::new("timer"),
        }))
    }

    /// More was changed on the disk than may be.
    pub(crate) fn disk_limit(&mut self, allowed: u64) -> Result<(), RunError> {
        self.append(&Event::Limit(Limit {
            limit: LimitKind::Disk,
            allowed,
            used: None,
            action: LimitAction::Ended,
            by: Text::new("gauge"),
        }))
    }

    /// A limit of the kernel's was reached.
    pub(crate) fn limit_hit(&mut self, hit: &limits::Hit) -> Result<(), RunError> {
        self.append(&Event::Limit(Limit {
            limit: match hit.limit {
                limits::Limit::Cpus => LimitKind::Cpus,
                limits::Limit::Memory => LimitKind::Memory,
                limits::Limit::Pids => LimitKind::Pids,
                limits::Limit::Disk => LimitKind::Disk,
                limits::Limit::Time => LimitKind::Time,
            },
            allowed: hit.value,
            used: None,
            action: match hit.action {
                limits::Action::Refused => LimitAction::Refused,
                limits::Action::Throttled => LimitAction::Throttled,
                limits::Action::Killed => LimitAction::Killed,
            },
            by: Text::new(&hit.by.to_string()),
        }))
    }

    pub(crate) fn append(&mut self, event: &Event) -> Result<(), RunError> {
        Ok(self.0.append(event)?)
    }

    pub(crate) fn end(self, outcome: Outcome, usage: Usage) -> Result<(), RunError> {
        self.0.end(SessionEnd { outcome, usage })?;
        Ok(())
    }
}

/// Of what Redoma does itself, without a sandbox.
fn own(session: SessionId, arguments: &[String], driver: &str) -> SessionMeta {
    SessionMeta {
        session,
        version: Text::new(env!("CARGO_PKG_VERSION")),
        argv: Argv::new(arguments),
        cwd: Text::new("/"),
        project: None,
        agent: None,
        sandbox: None,
        driver: Text::new(driver),
        tier: redoma_audit::event::Tier::Landlock,
        net: Text::new("none"),
        policy: Digest::of(b""),
        uid: rustix::process::getuid().as_raw(),
        keeper: rustix::process::getpid().as_raw_nonzero().get().unsigned_abs(),
        kernel: Text::new(&*rustix::system::uname().release().to_string_lossy()),
    }
}

/// How a run ended, as the record says it.
pub(crate) fn outcome(end: RunEnd) -> Outcome {
    match end {
        RunEnd::Command(Ending::Exited(code)) => Outcome::Exited { code },
        RunEnd::Command(Ending::Signaled(signal)) => Outcome::Signaled { signal },
        RunEnd::TimedOut => Outcome::TimedOut,
    }
}

/// A run that failed says why in its own record.
pub(crate) fn failed(error: &RunError) -> Outcome {
    Outcome::Failed { reason: Text::new(&error.to_string()) }
}

/// The same, where all that is left of the error is its words.
pub(crate) fn failed_with(why: &str) -> Outcome {
    Outcome::Failed { reason: Text::new(why) }
}

pub(crate) fn micros(time: Duration) -> u64 {
    time.as_micros().try_into().unwrap_or(u64::MAX)
}

fn network_name(default: NetworkDefault) -> &'static str {
    match default {
        NetworkDefault::None => "none",
        NetworkDefault::Deny => "deny",
        NetworkDefault::Ask => "ask",
        NetworkDefault::Allow => "allow",
    }
}

/// The hash of what is enforced: two runs with the same digest were under the same policy.
fn digest(policy: &ResolvedPolicy) -> Digest {
    let json = serde_json::to_vec(policy).unwrap_or_else(|_| policy.project.as_os_str().as_bytes().to_vec());
    Digest::of(&json)
}
