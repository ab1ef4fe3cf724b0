//! The relay between the user's terminal and the one made inside.
//!
//! Nothing here blocks but for the user's own terminal: a command that does not read cannot keep its output from being
//! shown, and the other way round.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use redoma_sys::Errno;
use rustix::fs::{Mode, OFlags};
use rustix::termios::{OptionalActions, QueueSelector, Termios};

use crate::ask::Screen;
use crate::streams::Streams;

/// At most this much waits in either direction; the side that is faster is not read meanwhile.
const BUFFERED: usize = 64 * 1024;

/// Both terminals, and what is on its way between them.
pub(crate) struct Relay {
    inner: OwnedFd,
    input: Option<BorrowedFd<'static>>,
    output: Option<OwnedFd>,
    saved: Option<Termios>,
    to_inner: VecDeque<u8>,
    to_outer: VecDeque<u8>,
    input_ended: bool,
    inner_ended: bool,
    screen: Screen,
    /// The terminal is somebody else's for a while.
    held: bool,
}

/// What the relay waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wants {
    pub(crate) read_input: bool,
    pub(crate) write_output: bool,
    pub(crate) read_inner: bool,
    pub(crate) write_inner: bool,
}

impl Relay {
    /// Takes the outer end of the command's terminal and puts the user's into raw mode: keys go in as they are typed,
    /// and what they mean is decided inside.
    pub(crate) fn new(inner: OwnedFd, streams: Streams) -> Result<Self, Errno> {
        rustix::io::ioctl_fionbio(&inner, true)?;
        let output = streams.output().map(reopen).transpose()?;
        let mut relay = Self {
            inner,
            input: streams.input(),
            output,
            saved: None,
            to_inner: VecDeque::new(),
            to_outer: VecDeque::new(),
            input_ended: false,
            inner_ended: false,
            screen: Screen::default(),
            held: false,
        };
        relay.take_terminal();
        Ok(relay)
    }

    /// Raw mode, if the user's terminal is ours at the moment; a job in the background must not touch it.
    pub(crate) fn take_terminal(&mut self) {
        let Some(input) = self.input.filter(|_| self.in_foreground() && self.saved.is_none()) else { return };
        if let Ok(saved) = rustix::termios::tcgetattr(input) {
            let mut raw = saved.clone();
            raw.make_raw();
            if rustix::termios::tcsetattr(input, OptionalActions::Drain, &raw).is_ok() {
                self.saved = Some(saved);
            }
        }
    }

    /// Gives the user's terminal back as it was.
    pub(crate) fn give_terminal_back(&mut self) {
        if let (Some(input), Some(saved)) = (self.input, self.saved.take()) {
            let _ = rustix::termios::tcsetattr(input, OptionalActions::Drain, &saved);
        }
    }

    /// Whether the user's terminal is ours at the moment.
    pub(crate) fn has_terminal(&self) -> bool {
        self.saved.is_some()
    }

    fn in_foreground(&self) -> bool {
        self.input.is_some_and(|input| {
            rustix::termios::tcgetpgrp(input).is_ok_and(|group| group == rustix::process::getpgrp())
        })
    }

    /// Tells the inner terminal the size of the outer one; the kernel tells the programs.
    pub(crate) fn resize(&self) {
        let outer = self.input.or(self.output.as_ref().map(AsFd::as_fd));
        if let Some(size) = outer.and_then(|outer| rustix::termios::tcgetwinsize(outer).ok()) {
            let _ = rustix::termios::tcsetwinsize(&self.inner, size);
        }
    }

    /// What the next round should wait for.
    pub(crate) fn wants(&self) -> Wants {
        Wants {
            read_input: !self.input_ended
                && !self.held
                && self.saved.is_some()
                && self.to_inner.len() < BUFFERED,
            write_output: !self.held && !self.to_outer.is_empty(),
            read_inner: !self.inner_ended && self.to_outer.len() < BUFFERED,
            write_inner: !self.to_inner.is_empty(),
        }
    }

    /// Leaves the terminal to a question, or takes it back. A program that drew on all of it is made to draw anew.
    pub(crate) fn hold(&mut self, held: bool) {
        let released = self.held && !held;
        self.held = held;
        if released && self.screen.is_alternate() {
            self.redraw();
        }
    }

    /// Whether a program draws on the whole screen.
    pub(crate) fn has_whole_screen(&self) -> bool {
        self.screen.is_alternate()
    }

    /// Programs draw anew when the size changes; to the same size it does not.
    fn redraw(&self) {
        if let Ok(size) = rustix::termios::tcgetwinsize(&self.inner) {
            let smaller = rustix::termios::Winsize { ws_row: size.ws_row.saturating_sub(1).max(1), ..size };
            let _ = rustix::termios::tcsetwinsize(&self.inner, smaller);
            let _ = rustix::termios::tcsetwinsize(&self.inner, size);
        }
    }

    /// The descriptors to wait for: input, output, inner.
    pub(crate) fn descriptors(
        &self,
    ) -> (Option<BorrowedFd<'static>>, Option<BorrowedFd<'_>>, BorrowedFd<'_>) {
        (self.input, self.output.as_ref().map(AsFd::as_fd), self.inner.as_fd())
    }

    /// Moves what can be moved.
    pub(crate) fn pump(&mut self, ready: Wants) {
        if ready.read_input {
            self.read_input();
        }
        if ready.read_inner {
            let before = self.to_outer.len();
            self.inner_ended |= read_into(&self.inner, &mut self.to_outer);
            self.screen.see(&self.to_outer.make_contiguous()[before..]);
        }
        if ready.write_inner && write_from(&mut self.to_inner, &self.inner).is_err() {
            self.to_inner.clear();
        }
        self.flush_output(!self.held && (ready.write_output || ready.read_inner));
    }

    fn read_input(&mut self) {
        if let Some(input) = self.input {
            self.input_ended |= read_into(input, &mut self.to_inner);
        }
    }

    fn flush_output(&mut self, now: bool) {
        let done = match &self.output {
            Some(output) if now => write_from(&mut self.to_outer, output),
            Some(_) => Ok(()),
            // No stream of the caller's shows the terminal, say when only standard input is one.
            None => Err(Errno::PIPE),
        };
        if done.is_err() {
            self.to_outer.clear();
        }
    }

    /// After the last process has ended: shows what it still had to say.
    pub(crate) fn drain(&mut self) {
        while !self.inner_ended && !read_available(&self.inner, &mut self.to_outer, &mut self.inner_ended) {
            self.finish_output();
        }
        self.finish_output();
    }

    fn finish_output(&mut self) {
        while let Some(output) = self.output.as_ref().filter(|_| !self.to_outer.is_empty()) {
            let mut wait = [rustix::event::PollFd::new(output, rustix::event::PollFlags::OUT)];
            let waited = rustix::event::poll(&mut wait, None);
            if !matches!(waited, Ok(_) | Err(Errno::INTR)) || write_from(&mut self.to_outer, output).is_err()
            {
                self.to_outer.clear();
            }
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.give_terminal_back();
        if let Some(input) = self.input {
            // What the program made the terminal say, such as an answer to a question of its own, must not be typed
            // into the user's shell.
            let _ = rustix::termios::tcflush(input, QueueSelector::IFlush);
        }
    }
}

/// The terminal under a description of its own: making the shared one non-blocking would change it for the user's shell.
fn reopen(terminal: BorrowedFd<'static>) -> Result<OwnedFd, Errno> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", terminal.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(fd) => Ok(fd),
        // Not ours to open, as after `su`: then a write may wait.
        Err(_) => rustix::io::fcntl_dupfd_cloexec(terminal, 3),
    }
}

/// Reads once; whether the other side is gone.
fn read_into(from: impl AsFd, buffer: &mut VecDeque<u8>) -> bool {
    let mut bytes = [0u8; 16 * 1024];
    match rustix::io::read(from, &mut bytes) {
        Ok(0) => true,
        Ok(length) => {
            buffer.extend(&bytes[..length]);
            false
        }
        Err(Errno::AGAIN | Errno::INTR) => false,
        Err(_) => true,
    }
}

/// Reads once without waiting; whether there was nothing left.
fn read_available(from: &OwnedFd, buffer: &mut VecDeque<u8>, ended: &mut bool) -> bool {
    let before = buffer.len();
    *ended = read_into(from, buffer);
    *ended || buffer.len() == before
}

fn write_from(buffer: &mut VecDeque<u8>, to: impl AsFd) -> Result<(), Errno> {
    while !buffer.is_empty() {
        match rustix::io::write(to.as_fd(), buffer.as_slices().0) {
            Ok(length) => drop(buffer.drain(..length)),
            Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
