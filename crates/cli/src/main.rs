//! The `redoma` command.
fn main() {}
