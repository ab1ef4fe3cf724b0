//! Sandboxes: the manager, the native driver, change sets and undo.

pub mod decoy;
pub mod homes;
pub mod project;
pub mod quarantine;
pub mod settings;
pub mod shell;

mod small_file;
pub mod trust;
pub mod walk;
