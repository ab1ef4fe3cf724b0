//! Sandboxes: the manager, the native driver, change sets and undo.

mod ask;
pub mod changes;
pub mod decoy;
mod error;
mod folder;
mod gateway;
pub mod gitguard;
mod held;
pub mod homes;
mod keeper;
mod kept;
pub mod leftovers;
pub mod machine;
mod manager;
mod native;
mod pipes;
pub mod presets;
pub mod project;
pub mod quarantine;
mod record;
mod run;
pub mod settings;
pub mod shell;
mod small_file;
mod streams;
mod terminal;
pub mod trust;
pub mod undo;
mod view;
pub mod walk;
pub mod why;

pub use error::RunError;
pub use kept::Kept;
pub use manager::Manager;
pub use run::{NetworkSummary, Refused, RunEnd, RunOutcome, RunRequest};
