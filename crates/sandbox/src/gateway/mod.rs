//! The gateway of a sandbox: prepared before the boundary is raised, started when it stands, in a process of its own.
//!
//! The keeper is single-threaded, holds the record and owns the terminal; what comes over the network is parsed elsewhere.
//! If the gateway ends, connections are refused: nobody else holds its sockets.

mod prepared;
mod process;
mod who;

pub(crate) use prepared::{Prepared, upstream};
pub(crate) use process::{Served, Serving, Way};
pub(crate) use who::Processes;
