//! What the end-to-end and red-team suites share: a home, a project, the built `redoma`, a terminal.
//!
//! Every test makes its own [`Home`], so tests run in parallel and never see the user's own Redoma.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a panic is how a test fails, and standard error is where it says what it skipped"
)]

mod binary;
mod command;
mod home;
mod image;
mod process;
mod project;
mod registry;
mod requires;
mod terminal;
mod world;

pub use binary::{redoma, toolchain};
pub use command::{Held, Ran, Redoma, Running, Tier};
pub use home::Home;
pub use image::{Layer, Layout};
pub use process::{alive, descendants, wait_gone};
pub use project::Project;
pub use registry::{Registry, Stall};
pub use requires::{available, available_tool, skip};
pub use terminal::Terminal;
pub use world::World;

/// Longest time anything in a test may take before it is killed and the test fails.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);
