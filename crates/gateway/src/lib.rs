//! The only way out of a sandbox: every connection gets a verdict, a visibility and a reason.
//!
//! One flow, from top to bottom: `capture` accepts a connection and learns where it was meant to go, `dns` knows the name behind the
//! address, `decide` asks the policy, `dial` resolves and connects to what was decided on, `peek` sees the protocol in the first
//! bytes, and then it is refused with an answer (`refuse`), relayed (`opaque`), or looked into (`tls`, `http`).

mod reason;
mod sink;

pub use reason::Reason;
pub use sink::Sink;
