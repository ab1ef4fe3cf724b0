//! The event model and the append-only, hash-chained, signed log.
//!
//! An [`Event`] is one thing that happened. Everything in it that comes from outside is a [`Text`] or an [`Argv`], which
//! are redacted when they are made. [`escape`] makes untrusted text safe to show.

mod digest;
mod error;
pub mod escape;
pub mod event;
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
pub use redact::redact;
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
