//! End-to-end tests: the built `redoma`, driven as a user drives it.
//!
//! Each file is one section of what the first stage promises. "Blocked" has its twin beside it: the same
//! action outside, or inside under a policy that allows it.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "tests are their own names, and a panic is how one fails"
)]

mod attributes;
mod changes;
mod cli;
mod drivers;
mod environment;
mod exit_codes;
mod export;
mod files;
mod gateway;
mod git;
mod git_planted;
mod image;
mod image_hostile;
mod lifetime;
mod limits;
mod network;
mod pipes;
mod policy;
mod presets;
mod protect;
mod record;
mod sandbox_files;
mod sandboxes;
mod secrets;
mod services;
mod terminal;
mod tools;
mod undo;
mod why;
