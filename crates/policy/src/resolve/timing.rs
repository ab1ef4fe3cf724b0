//! How long resolving takes. Ignored in the ordinary run: a loaded machine must not fail it.
//!
//! `cargo test --release -p redoma-policy -- --ignored --nocapture timing`

use std::time::Instant;

use crate::CommandLine;
use crate::testbed::{Machine, user};

/// The mark is 1 ms; `redoma run -- true` has 5 ms in all.
#[test]
#[ignore = "a measurement, for a release build on a quiet machine"]
fn resolving_the_default_profile_stays_far_below_the_start() {
    let machine = Machine::with(&["/home/u/.cargo/", "/home/u/.rustup/", "/srv/a/"]);
    let sources = [user("[filesystem]\nread = [\"/srv/a\"]\n[limits]\nmemory = \"1GiB\"\n")];
    let typed = CommandLine { agent: "claude".parse().ok(), ..CommandLine::default() };
    let mut times: Vec<_> = (0..500)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(machine.resolve(&sources, &typed));
            start.elapsed()
        })
        .collect();
    let first = times[0];
    times.sort();
    println!("first {first:?}, median {:?}, slowest {:?}", times[250], times[499]);
    assert!(times[250].as_micros() < 1000);
}
