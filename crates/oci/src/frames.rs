//! What the driver and the process that starts a command inside say to each other, over the engine's attached streams.
//!
//! A frame is its length (4 bytes, little-endian) and its `postcard` encoding. To the driver everything from inside is
//! hostile: bounded, and worth no more than what the command could have written itself.

use std::path::PathBuf;

use redoma_jail::{Ending, Failure, Terminal};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What the driver says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToInside {
    /// The first word.
    Start(Box<Start>),
    /// For the command's input: a pipe, or its terminal.
    Input(Vec<u8>),
    /// There is no more of it.
    InputEnd,
    /// For the command's process group.
    Signal(i32),
    /// Rows and columns of the terminal.
    Resize(u16, u16),
}

/// A command to start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    pub(crate) argv: Vec<Vec<u8>>,
    /// Besides those of the container.
    pub(crate) env: Vec<(Vec<u8>, Vec<u8>)>,
    /// Where, if not where the container's commands run.
    pub(crate) folder: Option<PathBuf>,
    pub(crate) terminal: Option<Terminal>,
    pub(crate) timeout_ms: Option<u64>,
    /// Whether it goes on without whoever started it.
    pub(crate) detached: bool,
    /// Whether there is a network to have sockets for.
    pub(crate) network: bool,
    /// Where a detached command's output goes.
    pub(crate) log: Option<PathBuf>,
}

/// What is said from inside.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToDriver {
    /// It runs, under this number inside.
    Started(u32),
    /// It does not.
    NotStarted(Failure),
    /// Output: of the terminal (0), standard output (1) or standard error (2).
    Output(u8, Vec<u8>),
    /// So many frames of input were taken.
    Taken(u32),
    /// A signal stopped it.
    Stopped,
    /// It ended.
    Ended(Ending),
    /// Its time was up: it and all it started were ended.
    TimedOut,
}

/// More than this is no frame of ours: arguments and variables are bounded by the kernel at about 2 MiB.
const LARGEST: usize = 4 << 20;
/// Of input or output, in one frame.
pub(crate) const CHUNK: usize = 32 << 10;
/// Frames of input that may be on the way. A signal comes behind at most these.
pub(crate) const WINDOW: u32 = 8;

/// A frame as it goes over the wire.
pub(crate) fn encode(message: &impl Serialize) -> Vec<u8> {
    // Writing into memory cannot fail, and nothing here has a form that it could not write.
    let body = postcard::to_allocvec(message).unwrap_or_default();
    let mut frame = u32::try_from(body.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
    frame.extend(body);
    frame
}

/// Bytes that arrived, and are not a whole frame yet.
#[derive(Debug, Default)]
pub(crate) struct Arriving(Vec<u8>);

/// Nobody of ours said this.
#[derive(Debug, thiserror::Error)]
#[error("what came from inside makes no sense")]
pub(crate) struct Nonsense;

impl Arriving {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// The next frame that is there as a whole.
    pub(crate) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, Nonsense> {
        let Some((length, rest)) = self.0.split_first_chunk() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > LARGEST {
            return Err(Nonsense);
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let message = postcard::from_bytes(body).map_err(|_| Nonsense)?;
        self.0.drain(..size_of::<u32>() + length);
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_arrive_in_any_pieces() {
        let sent = [ToDriver::Started(7), ToDriver::Output(1, b"out".to_vec()), ToDriver::TimedOut];
        let bytes: Vec<u8> = sent.iter().flat_map(encode).collect();
        let (mut arriving, mut seen) = (Arriving::default(), Vec::new());
        for byte in bytes {
            arriving.add(&[byte]);
            while let Some(frame) = arriving.next::<ToDriver>().unwrap() {
                seen.push(format!("{frame:?}"));
            }
        }
        assert_eq!(seen, sent.iter().map(|frame| format!("{frame:?}")).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        let mut arriving = Arriving::default();
        arriving.add(&[0xff; 8]);
        assert!(arriving.next::<ToDriver>().is_err());
        let mut arriving = Arriving::default();
        arriving.add(&[1, 0, 0, 0, 0xee]);
        assert!(arriving.next::<ToDriver>().is_err());
    }
}
