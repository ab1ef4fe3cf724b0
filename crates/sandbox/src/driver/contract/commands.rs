use std::time::Duration;

use super::{Bed, Made, command, shell, spec, wait};
use crate::driver::{Command, Happening};

pub(super) fn a_command_exits_with_its_code(bed: &dyn Bed) {
    let made = Made::new(bed);
    assert_eq!(made.code(&command(&["true"])), 0);
    assert_eq!(made.code(&command(&["false"])), 1);
    assert_eq!(made.code(&shell("exit 42")), 42);
}

pub(super) fn a_signal_is_128_and_its_number(bed: &dyn Bed) {
    let made = Made::new(bed);
    assert_eq!(made.code(&shell("kill -9 $$")), 128 + 9);
    assert_eq!(made.code(&shell("kill -15 $$")), 128 + 15);
}

pub(super) fn what_is_not_there_does_not_start(bed: &dyn Bed) {
    let made = Made::new(bed);
    let refused = made.start(&command(&["no-such-program"])).err().expect("there is no such program");
    assert_eq!(refused.exit_code(), 127, "{refused}");
    assert_eq!(made.code(&command(&["true"])), 0);
}

pub(super) fn what_is_written_to_standard_input_arrives_and_ends(bed: &dyn Bed) {
    let made = Made::new(bed);
    let ran = made.feed(&command(&["cat"]), b"through and out\n".to_vec());
    assert_eq!((ran.code(), ran.stdout.as_slice()), (0, b"through and out\n".as_slice()));
}

pub(super) fn a_mebibyte_goes_through_unchanged(bed: &dyn Bed) {
    let made = Made::new(bed);
    let bytes: Vec<u8> = (0..1u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let ran = made.feed(&command(&["cat"]), bytes.clone());
    assert_eq!((ran.code(), ran.stdout.len()), (0, bytes.len()));
    assert!(ran.stdout == bytes, "it came out as something else");
}

pub(super) fn output_and_errors_are_two_streams(bed: &dyn Bed) {
    let made = Made::new(bed);
    let ran = made.run(&shell("echo out; echo err >&2"));
    assert_eq!((ran.stdout.as_slice(), ran.stderr.as_slice()), (b"out\n".as_slice(), b"err\n".as_slice()));
}

pub(super) fn variables_of_the_command_come_before_the_sandboxs(bed: &dyn Bed) {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut spec = spec(bed);
    spec.env = vec![pair("OF_ALL", "sandbox"), pair("OF_BOTH", "sandbox")];
    let made = Made::of(bed, &spec);
    let env = vec![("OF_BOTH".into(), "command with = and spaces".into())];
    let print = |name: &str| Command { env: env.clone(), ..shell(&format!("echo ${name}")) };
    assert_eq!(made.text(&print("OF_ALL")), "sandbox\n");
    assert_eq!(made.text(&print("OF_BOTH")), "command with = and spaces\n");
    assert_eq!(made.text(&print("OF_NOBODY")), "\n");
}

pub(super) fn a_command_runs_where_it_was_told_to(bed: &dyn Bed) {
    let mut spec = spec(bed);
    spec.workdir = Some("/tmp".into());
    let made = Made::of(bed, &spec);
    assert_eq!(made.text(&command(&["pwd"])), "/tmp\n");
    let elsewhere = Command { workdir: Some("/".into()), ..command(&["pwd"]) };
    assert_eq!(made.text(&elsewhere), "/\n");
}

pub(super) fn a_time_out_ends_all_that_was_started(bed: &dyn Bed) {
    let made = Made::new(bed);
    let timeout = Some(Duration::from_millis(500));
    let ran = made.run(&Command { timeout, ..shell("setsid sleep 600 &\nsleep 600 &\nsleep 600") });
    assert_eq!(ran.happened, Happening::TimedOut);
    assert_eq!(made.text(&command(&["pidof", "sleep"])), "");
    assert_eq!(made.code(&command(&["true"])), 0);
}

pub(super) fn who_drops_a_command_ends_it(bed: &dyn Bed) {
    let made = Made::new(bed);
    drop(made.start(&command(&["sleep", "600"])).unwrap());
    made.wait_for_none("sleep");
}

pub(super) fn what_is_detached_goes_on(bed: &dyn Bed) {
    let made = Made::new(bed);
    drop(made.start(&Command { detached: true, ..command(&["sleep", "600"]) }).unwrap());
    assert_eq!(made.code(&command(&["pidof", "sleep"])), 0);
    bed.driver().stop(&made.id).unwrap();
    assert_eq!(made.code(&command(&["pidof", "sleep"])), 1);
}

pub(super) fn a_signal_reaches_the_command(bed: &dyn Bed) {
    let made = Made::new(bed);
    let (mut process, _input, _output) = made.start(&command(&["sleep", "600"])).unwrap();
    process.signal(15).unwrap();
    let happened = wait(process.as_mut());
    let ran = super::Ran { happened, stdout: Vec::new(), stderr: Vec::new() };
    assert_eq!(ran.code(), 128 + 15);
}

pub(super) fn several_commands_run_at_once(bed: &dyn Bed) {
    let made = Made::new(bed);
    let (mut long, _input, _output) = made.start(&command(&["sleep", "600"])).unwrap();
    assert_eq!(made.code(&shell("exit 3")), 3);
    assert_eq!(made.code(&shell("exit 4")), 4);
    long.signal(9).unwrap();
    wait(long.as_mut());
}
