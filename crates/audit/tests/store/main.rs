//! The store as its callers see it, on a real file system.

#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod process;
mod purge;
mod read;
mod tamper;
mod write;

use std::path::{Path, PathBuf};

use redoma_audit::event::{Alert, Outcome, SessionEnd, SessionMeta, Severity, Tier, Usage};
use redoma_audit::{Argv, Digest, Event, SessionId, SessionLog, Store};
use tempfile::TempDir;

/// A store in a folder of its own.
struct Bed {
    dir: TempDir,
    store: Store,
}

impl Bed {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path());
        Self { dir, store }
    }

    /// The same folders, opened anew.
    fn store_again(&self) -> Store {
        open(self.dir.path())
    }

    fn begin(&self) -> SessionLog {
        self.store.begin(meta()).unwrap()
    }

    /// A session of `events` events that has ended.
    fn session(&self, events: u32) -> SessionId {
        let mut log = self.begin();
        let session = log.session();
        (0..events).for_each(|number| log.append(&event(number)).unwrap());
        log.end(end()).unwrap();
        session
    }

    fn log(&self, session: SessionId) -> PathBuf {
        self.dir.path().join(format!("state/audit/{session}.jsonl"))
    }

    fn ledger(&self) -> PathBuf {
        self.dir.path().join("state/audit/ledger.jsonl")
    }
}

fn open(dir: &Path) -> Store {
    Store::open(&dir.join("state"), &dir.join("config/keys")).unwrap()
}

fn meta() -> SessionMeta {
    SessionMeta {
        session: SessionId::random().unwrap(),
        version: "0.1.0".into(),
        argv: Argv::new(["cargo", "test"]),
        cwd: "/home/a/project".into(),
        project: Some("/home/a/project".into()),
        agent: None,
        sandbox: None,
        driver: "native".into(),
        tier: Tier::Full,
        net: "none".into(),
        policy: Digest::of(b"policy"),
        uid: 1000,
        keeper: 4711,
        kernel: "6.18".into(),
    }
}

fn event(number: u32) -> Event {
    Event::Alert(Alert {
        rule: "decoy-read".into(),
        severity: Severity::Warning,
        message: format!("number {number}").into(),
        path: Some("/home/a/.ssh/id_ed25519".into()),
        pid: Some(number),
    })
}

fn end() -> SessionEnd {
    SessionEnd { outcome: Outcome::Exited { code: 0 }, usage: Usage::default() }
}

fn lines(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().map(String::from).collect()
}
