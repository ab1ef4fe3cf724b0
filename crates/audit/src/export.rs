//! The record in forms that other programs read.

mod har;

pub use har::har;
