//! The only way out of a sandbox: every connection gets a verdict, a visibility and a reason.
//!
//! One flow, from top to bottom: `capture` accepts a connection and learns where it was meant to go, `dns` knows the name behind the
//! address, `decide` asks the policy, `dial` resolves and connects to what was decided on, `peek` sees the protocol in the first
//! bytes, and then it is refused with an answer (`refuse`), relayed (`opaque`), or looked into (`tls`, `http`).

#![allow(dead_code, unused_imports, reason = "modules land before what joins them")]

mod approve;
mod dial;
mod dns;
mod flow;
mod reason;
mod sink;

pub use approve::{Approver, Ask, NobodyAnswers};
pub use flow::{Flow, Flows, Target};
pub use reason::Reason;
pub use sink::Sink;
