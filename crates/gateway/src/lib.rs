//! The only way out of a sandbox: every connection gets a verdict, a visibility and a reason.
//!
//! One flow, from top to bottom: `capture` accepts a connection and learns where it was meant to go, `dns` knows the name behind the
//! address, `decide` asks the policy, `dial` resolves and connects to what was decided on, `peek` sees the protocol in the first
//! bytes, and then it is refused with an answer (`refuse`), relayed (`opaque`), or looked into (`tls`, `http`).

mod approve;
mod budget;
mod capture;
mod copied;
mod dial;
mod dns;
mod doors;
mod flow;
#[doc(hidden)]
pub mod fuzz;
mod gateway;
mod guard;
mod http;
mod link;
mod opaque;
mod pass;
mod peek;
mod pinned;
mod proxy;
mod reason;
mod recorder;
mod refuse;
mod scan;
mod secrets;
mod sink;
mod stream;
mod tls;
mod tunnel;

pub use approve::{Approver, Ask, NobodyAnswers};
pub use doors::{Client, Doors, Inside, Parse, Relay, Who};
pub use flow::{Flow, Flows, Target};
pub use gateway::{Gateway, Setup};
pub use link::{Keeper, Link, Parts, Question, Told, serve};
pub use reason::Reason;
pub use recorder::{MOST, Recorder};
pub use secrets::{Credentials, Secret, SecretError};
pub use sink::Sink;
pub use tls::{Authority, Leads, TlsError, Trust};
