//! What an attacker inside a sandbox tries, as a table of attempts.
//!
//! Each [`Attempt`] is one small program that runs *inside* and reports an [`Outcome`]: stopped, and by
//! what, or succeeded, with evidence. Around it stands a [`Planted`] tree of things to steal, break or
//! reach, made outside beforehand. The same attempt run with no sandbox around it succeeds (its
//! [`Twin`] says for whom), and a test here holds it to that: an attempt that can't succeed anywhere
//! proves nothing.
//!
//! Flow: [`Planted::new`] → the sandbox runs [`run_attempt`] with the [`Stage`] → [`Planted::verdict`].

mod attempt;
mod errno;
mod files;
mod kernel;
mod limits;
mod network;
mod plant;
mod porter;
mod processes;
mod stage;

pub use attempt::{Attempt, Judge, Outcome, Section, Tier, Twin, Who};
pub use plant::{PlantError, Planted};
pub use stage::{Handle, Stage};

use std::sync::OnceLock;

/// Every attempt, in the order of its section.
pub fn attempts() -> &'static [Attempt] {
    static ALL: OnceLock<Vec<Attempt>> = OnceLock::new();
    ALL.get_or_init(|| {
        [
            files::attempts(),
            processes::attempts(),
            kernel::attempts(),
            limits::attempts(),
            network::attempts(),
        ]
        .concat()
    })
}

/// The attempt of this name.
pub fn find(name: &str) -> Option<&'static Attempt> {
    attempts().iter().find(|attempt| attempt.name == name)
}

/// Runs one attempt in this process, which it may leave changed: give each a process of its own.
///
/// `None` when no attempt has this name.
pub fn run_attempt(name: &str, stage: &Stage) -> Option<Outcome> {
    find(name).map(|attempt| (attempt.run)(stage))
}
