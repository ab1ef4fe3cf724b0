//! The relay between the caller's pipes and sockets and pipes of the sandbox's own.
//!
//! A pipe can be opened again by whoever owns it, in either direction: a command that was handed the caller's standard
//! input could write into it what the next reader, perhaps a shell, takes for its script. A socket brings the network
//! it was made in along. So neither is handed in; bytes are moved by `splice(2)`, which copies none.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use redoma_sys::Errno;
use rustix::event::{PollFd, PollFlags};
use rustix::pipe::{PipeFlags, SpliceFlags};

/// All pipes of one command.
#[derive(Debug, Default)]
pub(crate) struct Pipes(Vec<Flow>);

/// One direction of one stream.
#[derive(Debug)]
struct Flow {
    /// The keeper's end of the sandbox's pipe; gone when the stream has ended.
    inner: Option<OwnedFd>,
    /// The caller's stream.
    outer: BorrowedFd<'static>,
    /// Whether bytes go in.
    inward: bool,
    /// Whether it is the receiving side that has to become ready next.
    full: bool,
}

/// At most this many bytes are moved at once.
const CHUNK: usize = 1 << 20;

impl Pipes {
    /// Makes a pipe between the caller's stream and the sandbox; the end that goes in.
    pub(crate) fn add(&mut self, outer: BorrowedFd<'static>, inward: bool) -> Result<OwnedFd, Errno> {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let (ours, theirs) = if inward { (writer, reader) } else { (reader, writer) };
        self.0.push(Flow { inner: Some(ours), outer, inward, full: false });
        Ok(theirs)
    }

    /// What to wait for: the number of each flow that goes on, its descriptor and the event.
    pub(crate) fn waits(&self) -> impl Iterator<Item = (usize, BorrowedFd<'_>, PollFlags)> {
        self.0.iter().enumerate().filter_map(|(index, flow)| {
            let (fd, flags) = flow.waits()?;
            Some((index, fd, flags))
        })
    }

    /// Moves what can be moved without waiting.
    pub(crate) fn pump(&mut self, index: usize) {
        self.0[index].pump();
    }

    /// After the last process has ended: brings out what is left, waiting for whoever reads it, unless nobody has the
    /// time.
    pub(crate) fn drain(&mut self, wait: bool) {
        for flow in self.0.iter_mut().filter(|flow| !flow.inward) {
            flow.pump();
            while let Some((fd, flags)) = flow.waits().filter(|_| wait) {
                match rustix::event::poll(&mut [PollFd::from_borrowed_fd(fd, flags)], None) {
                    Ok(_) | Err(Errno::INTR) => flow.pump(),
                    Err(_) => flow.inner = None,
                }
            }
        }
    }
}

impl Flow {
    fn ends(&self) -> Option<(BorrowedFd<'_>, BorrowedFd<'_>)> {
        let inner = self.inner.as_ref()?.as_fd();
        Some(if self.inward { (self.outer, inner) } else { (inner, self.outer) })
    }

    fn waits(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let (from, to) = self.ends()?;
        Some(if self.full { (to, PollFlags::OUT) } else { (from, PollFlags::IN) })
    }

    fn pump(&mut self) {
        const TURNS: usize = 16;
        for _ in 0..TURNS {
            let Some((from, to)) = self.ends() else { return };
            let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
            match rustix::pipe::splice(from, None, to, None, CHUNK, flags) {
                Ok(0) => self.inner = None,
                Ok(_) => self.full = false,
                Err(Errno::INTR) => {}
                // Either side may be meant: the one that was ready is not, or the other is not yet.
                Err(Errno::AGAIN) => {
                    self.full = !self.full;
                    return;
                }
                // Nobody reads any more; the command is told by SIGPIPE, as it would be without us.
                Err(_) => self.inner = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pipe whose ends live as long as the test binary, as the caller's streams do.
    fn outer() -> (BorrowedFd<'static>, OwnedFd, BorrowedFd<'static>, OwnedFd) {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let leak = |fd: &OwnedFd| -> &'static OwnedFd { Box::leak(Box::new(fd.try_clone().unwrap())) };
        (leak(&reader).as_fd(), reader, leak(&writer).as_fd(), writer)
    }

    fn turn(pipes: &mut Pipes) -> bool {
        let Some((index, fd, flags)) = pipes.waits().next() else { return false };
        rustix::event::poll(&mut [PollFd::from_borrowed_fd(fd, flags)], None).unwrap();
        pipes.pump(index);
        true
    }

    #[test]
    fn bytes_go_in_and_the_end_with_them() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let reader: &'static OwnedFd = Box::leak(Box::new(reader));
        let mut pipes = Pipes::default();
        let inner = pipes.add(reader.as_fd(), true).unwrap();
        rustix::io::write(&writer, b"\0binary\xff").unwrap();
        drop(writer);
        while turn(&mut pipes) {}
        let mut bytes = [0; 64];
        assert_eq!(rustix::io::read(&inner, &mut bytes).unwrap(), 8);
        assert_eq!(&bytes[..8], b"\0binary\xff");
        assert_eq!(rustix::io::read(&inner, &mut bytes).unwrap(), 0);
    }

    #[test]
    fn what_is_left_at_the_end_comes_out() {
        let (_, reader, writer, keep) = outer();
        let mut pipes = Pipes::default();
        let inner = pipes.add(writer, false).unwrap();
        rustix::io::write(&inner, b"last words").unwrap();
        drop((inner, keep));
        pipes.drain(true);
        let mut bytes = [0; 64];
        assert_eq!(rustix::io::read(&reader, &mut bytes).unwrap(), 10);
        assert_eq!(pipes.waits().count(), 0);
    }

    #[test]
    fn a_full_pipe_waits_for_its_reader() {
        let (_, reader, writer, _keep) = outer();
        let mut pipes = Pipes::default();
        let inner = pipes.add(writer, false).unwrap();
        let block = [7u8; 4096];
        let mut sent = 0;
        let mut received = 0;
        while sent < 1 << 20 {
            sent += rustix::io::write(&inner, &block).unwrap();
            pipes.pump(0);
            if pipes.waits().any(|(_, _, flags)| flags == PollFlags::OUT) {
                received += rustix::io::read(&reader, &mut [0; 65536]).unwrap();
            }
        }
        drop(inner);
        let drained = std::thread::spawn(move || pipes.drain(true));
        while received < sent {
            received += rustix::io::read(&reader, &mut [0; 65536]).unwrap();
        }
        drained.join().unwrap();
        assert_eq!(received, sent);
    }
}
