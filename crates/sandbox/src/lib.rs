//! Sandboxes: the manager, the native driver, change sets and undo.

pub mod decoy;
pub mod homes;
pub mod project;
pub mod quarantine;
pub mod shell;
#[expect(dead_code, reason = "settings read groups and modes; they come next")]
mod small_file;
pub mod trust;
pub mod walk;
