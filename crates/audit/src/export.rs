//! The record in forms that other programs read.

mod har;
pub mod pcapng;

pub use har::har;
