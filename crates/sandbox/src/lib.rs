//! Sandboxes: the manager, the native driver, change sets and undo.

pub mod homes;
pub mod project;
#[expect(dead_code, reason = "settings and trust read owners and follow links; they come next")]
mod small_file;
pub mod walk;
