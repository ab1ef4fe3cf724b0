//! The event model and the append-only, hash-chained, signed log.
//!
//! [`Store::begin`] opens the log of a session, [`SessionLog::append`] writes each [`Event`] before it returns, and
//! [`SessionLog::end`] seals it. Everything in an event that comes from outside is a [`Text`] or an [`Argv`], which are redacted
//! when they are made; [`escape`] makes untrusted text safe to show. [`Store::verify`] tells whether the record is complete,
//! ordered and unchanged.
//!
//! # What it shows and what it cannot
//! Whoever can write the logs but not the keys cannot change, reorder, cut, replace or drop a record that was signed, nor a whole
//! session, without [`Store::verify`] saying so. Three things are out of reach of a log kept on the machine it describes: the owner of
//! both folders can rewrite everything; both folders together can be set back to an older copy of themselves; and what
//! was written after the last signature of a session whose keeper was killed is chained, but not signed.

mod digest;
mod error;
pub mod escape;
pub mod event;
pub mod export;
mod folder;
mod id;
mod key;
mod ledger;
mod line;
mod lines;
mod log;
mod purge;
mod read;
mod redact;
mod store;
mod summary;
mod text;
pub mod verify;

pub use digest::Digest;
pub use error::Error;
pub use event::Event;
pub use id::SessionId;
pub use log::{Sealed, SessionLog};
pub use purge::Purged;
pub use read::{Record, Records};
pub use redact::{TokenShape, redact, token_shapes};
pub use store::Store;
pub use summary::{SessionState, SessionSummary};
pub use text::{Argv, Text};
pub use verify::Report;

/// `N` bytes from the kernel's random source.
fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    // Up to 256 bytes come whole or not at all: getrandom(2).
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| Error::Random { source: errno.into() })?;
    Ok(bytes)
}
