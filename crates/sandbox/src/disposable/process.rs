//! A command in a sandbox, as whoever started it sees it: the other end is the keeper.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::termios::Winsize;

use super::control::{Ask, Line, Tell};
use crate::driver::{DriverError, Happening, Process};

/// A command that a keeper watches over.
pub(crate) struct Remote {
    line: Line,
    pid: i32,
    terminal: Option<OwnedFd>,
    /// The terminal's other descriptor, to tell it its size by.
    sized: Option<OwnedFd>,
}

impl Remote {
    pub(crate) fn new(line: Line, pid: i32, terminal: Option<OwnedFd>) -> Self {
        let sized = terminal.as_ref().and_then(|terminal| terminal.try_clone().ok());
        Self { line, pid, terminal, sized }
    }
}

impl Process for Remote {
    fn events(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }

    fn event(&mut self) -> Result<Happening, DriverError> {
        match self.line.receive()?.0 {
            Tell::Stopped => Ok(Happening::Stopped),
            Tell::Ended(ending) => Ok(Happening::Ended(ending)),
            Tell::TimedOut => Ok(Happening::TimedOut),
            Tell::Failed(refusal) => Err(refusal.into()),
            // The keeper was told to end while the command ran.
            Tell::Done | Tell::Busy | Tell::Started { .. } => Err(DriverError::Gone(None)),
        }
    }

    fn signal(&mut self, signal: i32) -> Result<(), DriverError> {
        self.line.send(&Ask::Signal(signal), &[])
    }

    fn take_terminal(&mut self) -> Option<OwnedFd> {
        self.terminal.take()
    }

    fn resize(&mut self, (ws_row, ws_col): (u16, u16)) {
        if let Some(terminal) = &self.sized {
            let _ = rustix::termios::tcsetwinsize(
                terminal,
                Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 },
            );
        }
    }

    fn pid(&self) -> Option<u32> {
        u32::try_from(self.pid).ok()
    }
}
