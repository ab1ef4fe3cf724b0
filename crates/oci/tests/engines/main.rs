//! The driver against real engines, started for the occasion and gone with it.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a panic is how a test fails")]

mod bed;
mod inside;
mod network;

use bed::{Bed, Kind};
use redoma_sandbox::driver::contract::hold_all;

#[test]
fn docker_keeps_the_contract() {
    let Some(bed) = Bed::raise(Kind::Docker) else { return };
    hold_all(&bed);
}

#[test]
fn podman_keeps_the_contract() {
    let Some(bed) = Bed::raise(Kind::Podman) else { return };
    hold_all(&bed);
}
