//! What goes through standard streams that are no terminal: byte for byte.

use redoma_tests::{Home, Tier};

#[test]
fn every_byte_passes_both_ways() {
    let home = Home::new();
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        let ran = project.inside(["cat"]).tier(tier).stdin(bytes.clone()).run().ok();
        assert!(ran.stdout == bytes, "{tier:?}: {} of {} bytes", ran.stdout.len(), bytes.len());
    }
}

#[test]
fn standard_error_stays_apart() {
    let home = Home::new();
    let ran = home.project("p").shell("echo out; echo err >&2").arg("-q").run().ok();
    assert_eq!((ran.out().as_str(), ran.err().as_str()), ("out\n", "err\n"));
}

#[test]
fn an_early_reader_does_not_hang_the_writer() {
    let home = Home::new();
    let project = home.project("p");
    let ran = project.shell("yes | head -n 3").run().ok();
    assert_eq!(ran.out(), "y\ny\ny\n");
}

#[test]
fn ten_megabytes_without_a_newline_pass() {
    let home = Home::new();
    let ran = home.project("p").shell("head -c 10000000 /dev/zero").run().ok();
    assert_eq!(ran.stdout.len(), 10_000_000);
}

#[test]
fn a_pipe_is_no_terminal_inside_either() {
    let home = Home::new();
    let ran = home.project("p").shell("test -t 0 || test -t 1 || echo no terminal").run().ok();
    assert_eq!(ran.out(), "no terminal\n");
}
