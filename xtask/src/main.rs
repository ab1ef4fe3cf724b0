//! Recipes for contributors.
fn main() {}
