//! Keeps what went over the wire, when a run was asked to: a capture with the secrets that decrypt it.
//!
//! It has the client's side of every flow. There the TLS secrets are the gateway's own to tell, and credentials are
//! placeholders still: no secret that the policy keeps outside gets in.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use data_encoding::HEXLOWER;
use redoma_audit::export::pcapng::{Chunk, Destination, Pcapng, Side};
use redoma_policy::Host;

use crate::Flow;

/// Writes into a file until it is full. What it can't write is no reason to end a flow: the file says that it ends early.
#[derive(Debug)]
pub struct Recorder(Mutex<State>);

#[derive(Debug)]
struct State {
    capture: Pcapng<Counted>,
    most: u64,
    /// Full, or the disk is.
    over: bool,
}

#[derive(Debug)]
struct Counted {
    file: File,
    written: u64,
}

/// As much as a capture grows to, in bytes.
pub const MOST: u64 = 1 << 30;
/// For what is said when it is full.
const RESERVE: u64 = 4096;

impl Recorder {
    /// Begins a capture of `session` in an empty file, which will not grow beyond `most` bytes.
    ///
    /// # Errors
    /// When not even its beginning can be written.
    pub fn new(file: File, session: &str, most: u64) -> io::Result<Self> {
        let comment = format!("redoma session {session}: the sandbox's side of its connections");
        let capture = Pcapng::new(Counted { file, written: 0 }, &comment)?;
        Ok(Self(Mutex::new(State { capture, most, over: false })))
    }

    /// A piece went over the wire.
    pub(crate) fn chunk(&self, flow: &Flow, side: Side, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.write(bytes.len() as u64, |capture, time_us| {
            if !capture.has(flow.number()) {
                open(capture, flow, time_us)?;
            }
            capture.chunk(&Chunk { flow: flow.number(), side, time_us, bytes })
        });
    }

    /// A line of a TLS key log, with its line feed.
    pub(crate) fn secrets(&self, line: &str) {
        self.write(line.len() as u64, |capture, _| capture.secrets(line));
    }

    /// A flow ended.
    pub(crate) fn close(&self, flow: u64) {
        self.write(0, |capture, time_us| capture.close(flow, time_us));
    }

    fn write(&self, bytes: u64, write: impl FnOnce(&mut Pcapng<Counted>, u64) -> io::Result<()>) {
        let state = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.over {
            return;
        }
        let time_us = jiff::Timestamp::now().as_microsecond().try_into().unwrap_or(0);
        // What stands around a piece is a fraction of it, or within the reserve.
        let needed = state.capture.get_ref().written + bytes + bytes / 64 + RESERVE;
        let written = if needed > state.most {
            state.over = true;
            state.capture.remark(time_us, "the capture is full: what came after this is missing")
        } else {
            write(&mut state.capture, time_us)
        };
        state.over |= written.is_err();
    }
}

fn open(capture: &mut Pcapng<Counted>, flow: &Flow, time_us: u64) -> io::Result<()> {
    let target = flow.target();
    let name = match &target.host {
        Host::Name(name) => Some(name.as_str()),
        Host::Address(_) => None,
    };
    let to = Destination { name, address: flow.address(), port: target.port };
    let program = flow.process().map(|process| format!(" by {}", process.path)).unwrap_or_default();
    capture.open(flow.number(), time_us, to, &format!("flow {} to {target}{program}", flow.number()))
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.file.write(bytes)?;
        self.written += length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The format is the NSS key log's, which `SSLKEYLOGFILE` has too.
impl rustls::KeyLog for Recorder {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let (random, secret) = (HEXLOWER.encode(client_random), HEXLOWER.encode(secret));
        self.secrets(&format!("{label} {random} {secret}\n"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use redoma_audit::Event;
    use redoma_audit::event::Direction;

    use super::*;
    use crate::{Flows, Sink, Target};

    struct Deaf;

    impl Sink for Deaf {
        fn tell(&self, _: Event) {}
    }

    fn recorded(most: u64, pieces: usize) -> Vec<u8> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let recorder = Arc::new(Recorder::new(file.reopen().unwrap(), "abcdefghij", most).unwrap());
        let flows = Flows::new(Arc::new(Deaf)).recorded_by(Some(recorder));
        let target = Target { host: "192.0.2.7".parse().unwrap(), port: 80 };
        let flow = flows.open(target, Direction::Out, None);
        for _ in 0..pieces {
            flow.sent(b"sixteen letters.");
        }
        drop(flow);
        std::fs::read(file.path()).unwrap()
    }

    fn count(file: &[u8], wanted: &[u8]) -> usize {
        file.windows(wanted.len()).filter(|window| window == &wanted).count()
    }

    #[test]
    fn a_capture_does_not_grow_beyond_its_bound_and_says_so() {
        let (bounded, whole) = (recorded(20_000, 1000), recorded(MOST, 1000));
        assert!(bounded.len() < 20_000, "{}", bounded.len());
        assert_eq!(count(&bounded, b"the capture is full"), 1);
        let kept = count(&bounded, b"sixteen letters.");
        assert!((1..1000).contains(&kept), "{kept}");
        assert_eq!((count(&whole, b"the capture is full"), count(&whole, b"sixteen letters.")), (0, 1000));
    }

    #[test]
    fn a_flow_without_a_byte_is_not_in_it() {
        assert_eq!(count(&recorded(MOST, 0), b"flow 1"), 0);
        assert_eq!(count(&recorded(MOST, 1), b"flow 1 to 192.0.2.7:80"), 1);
    }
}
