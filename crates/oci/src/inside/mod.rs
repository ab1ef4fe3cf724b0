//! What runs inside containers: this very program, in a volume that nobody there can change.
//!
//! It is the first process of a sandbox's container ([`idle`]), starts each command ([`exec`]), and in a helper's container
//! is the network ([`network`]). Nothing in an image is trusted or needed for any of it.

mod exec;
mod network;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use redoma_sys::SignalFd;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Signal, WaitOptions};

/// Does what the driver asks of its program inside. `arguments` are those behind the hidden subcommand.
#[must_use]
pub fn guest(arguments: &[OsString]) -> ExitCode {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    match words.as_slice() {
        ["objects"] => objects(),
        ["nothing"] => ExitCode::SUCCESS,
        ["idle"] => idle(None),
        ["idle", seconds] => idle(seconds.parse().ok().map(Duration::from_secs)),
        ["exec"] => exec::run(),
        ["network", socket] => network::run(socket),
        _ => ExitCode::from(2),
    }
}

/// Names the files that this program is made of: itself, and where it is not static its loader and libraries.
#[expect(clippy::print_stdout, reason = "it is the answer")]
fn objects() -> ExitCode {
    let Ok(maps) = std::fs::read("/proc/self/maps") else { return ExitCode::FAILURE };
    let mut files: Vec<PathBuf> = Vec::new();
    for line in maps.split(|byte| *byte == b'\n') {
        // Behind five fields; see proc(5). A file that was replaced while this runs cannot be copied.
        let Some(at) = line.iter().position(|byte| *byte == b'/') else { continue };
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(&line[at..]));
        if !files.contains(&path) {
            files.push(path);
        }
    }
    files.iter().for_each(|file| println!("{}", file.display()));
    ExitCode::SUCCESS
}

/// The first process: reaps what was orphaned, until the container is stopped or its time is up.
fn idle(time: Option<Duration>) -> ExitCode {
    let until = time.map(|time| Instant::now() + time);
    let Ok(signals) = SignalFd::new(&[Signal::CHILD, Signal::TERM, Signal::INT]) else {
        return ExitCode::FAILURE;
    };
    loop {
        while rustix::process::wait(WaitOptions::NOHANG).is_ok_and(|ended| ended.is_some()) {}
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return ExitCode::SUCCESS;
        }
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let _ = rustix::event::poll(&mut [PollFd::new(&signals, PollFlags::IN)], left.as_ref());
        while let Ok(Some(signal)) = signals.next() {
            if signal != Signal::CHILD.as_raw() {
                return ExitCode::SUCCESS;
            }
        }
    }
}
