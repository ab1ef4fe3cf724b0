//! What passes unseen: bytes go from socket to socket inside the kernel.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::net::sockopt;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;

use crate::{Flow, Reason, copied};

/// Pipes for whoever has something to move: a flow that waits holds none.
#[derive(Debug, Default)]
pub(crate) struct Pipes(Mutex<Vec<Pipe>>);

/// Always empty while nobody holds it.
#[derive(Debug)]
struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
}

/// Whether this many more bytes may be sent.
pub(crate) type MaySend<'a> = dyn Fn(u64) -> bool + Send + Sync + 'a;

/// Who sends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Out,
    In,
}

/// As much as one call moves; the kernel gives as much as the pipe holds.
const MOST: usize = 1 << 20;
/// Pipes kept for later.
const KEPT: usize = 64;

/// Moves bytes both ways until both sides have said all.
pub(crate) async fn relay(
    client: &TcpStream,
    server: &TcpStream,
    flow: &Flow,
    pipes: &Arc<Pipes>,
    may_send: &MaySend<'_>,
) {
    let both = async {
        if flow.is_recorded() {
            return copied::both(client, server, flow, may_send).await;
        }
        let one_way = |from, to, way| pass(from, to, way, flow, pipes, may_send);
        tokio::try_join!(one_way(client, server, Way::Out), one_way(server, client, Way::In)).map(drop)
    };
    if let Err(error) = both.await {
        if error.kind() == io::ErrorKind::QuotaExceeded {
            flow.blocked(Reason::Budget);
        }
        // What was cut off must not look like an end.
        reset(client);
        reset(server);
    }
}

/// Has the socket's end show as a reset.
pub(crate) fn reset(stream: &TcpStream) {
    let _ = sockopt::set_socket_linger(stream, Some(std::time::Duration::ZERO));
}

async fn pass(
    from: &TcpStream,
    to: &TcpStream,
    way: Way,
    flow: &Flow,
    pipes: &Arc<Pipes>,
    may_send: &MaySend<'_>,
) -> io::Result<()> {
    loop {
        from.readable().await?;
        let pipe = pipes.take()?;
        loop {
            let moved = from.try_io(Interest::READABLE, || moved(splice_out_of(from, &pipe)));
            let length = match moved {
                Ok(0) => {
                    pipes.give_back(pipe);
                    // A peer that is gone already needs no end.
                    let _ = rustix::net::shutdown(to, rustix::net::Shutdown::Write);
                    return Ok(());
                }
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            if way == Way::Out && !may_send(length as u64) {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            empty(&pipe, to, length).await?;
            match way {
                Way::Out => flow.add_sent(length as u64),
                Way::In => flow.add_received(length as u64),
            }
        }
        pipes.give_back(pipe);
    }
}

async fn empty(pipe: &Pipe, to: &TcpStream, mut left: usize) -> io::Result<()> {
    while left > 0 {
        let written = to.async_io(Interest::WRITABLE, || moved(splice_into(pipe, to, left))).await?;
        left -= written;
    }
    Ok(())
}

fn splice_out_of(from: &TcpStream, pipe: &Pipe) -> rustix::io::Result<usize> {
    splice(from.as_fd(), None, pipe.write.as_fd(), None, MOST, SpliceFlags::MOVE | SpliceFlags::NONBLOCK)
}

fn splice_into(pipe: &Pipe, to: &TcpStream, length: usize) -> rustix::io::Result<usize> {
    splice(pipe.read.as_fd(), None, to.as_fd(), None, length, SpliceFlags::MOVE | SpliceFlags::NONBLOCK)
}

fn moved(outcome: rustix::io::Result<usize>) -> io::Result<usize> {
    outcome.map_err(io::Error::from)
}

impl Pipes {
    fn take(&self) -> io::Result<Pipe> {
        if let Some(pipe) = self.kept().pop() {
            return Ok(pipe);
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // The kernel grants it as far as the user's share of pipe memory goes.
        let _ = rustix::pipe::fcntl_setpipe_size(&write, MOST);
        Ok(Pipe { read, write })
    }

    fn give_back(&self, pipe: Pipe) {
        let mut kept = self.kept();
        if kept.len() < KEPT {
            kept.push(pipe);
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<Pipe>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
