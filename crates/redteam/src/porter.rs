//! The host's services: whoever reaches one is answered with the marker.

use std::io::{self, PipeWriter, Write, pipe};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixListener};
use std::path::Path;
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};

/// Answers on every socket from a thread of its own, until dropped.
#[derive(Debug)]
pub(crate) struct Porter {
    pub(crate) tcp: SocketAddr,
    pub(crate) udp: SocketAddr,
    /// Takes datagrams and keeps them: that the kernel delivers them is what counts.
    _datagram: UnixDatagram,
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

struct Desk {
    tcp: TcpListener,
    udp: UdpSocket,
    unix: Vec<UnixListener>,
    stop: io::PipeReader,
    answer: Vec<u8>,
}

// === impl Porter ===

impl Porter {
    pub(crate) fn open(answer: &str, abstract_name: &str, paths: &[&Path]) -> io::Result<Self> {
        let (stop_reader, stop) = pipe()?;
        let mut unix = vec![UnixListener::bind_addr(&UnixAddress::from_abstract_name(abstract_name)?)?];
        for path in paths {
            unix.push(UnixListener::bind(path)?);
        }
        let desk = Desk {
            tcp: TcpListener::bind("127.0.0.1:0")?,
            udp: UdpSocket::bind("127.0.0.1:0")?,
            unix,
            stop: stop_reader,
            answer: answer.as_bytes().to_vec(),
        };
        let datagram =
            UnixDatagram::bind_addr(&UnixAddress::from_abstract_name(datagram_name(abstract_name))?)?;
        let (tcp, udp) = (desk.tcp.local_addr()?, desk.udp.local_addr()?);
        let thread = thread::spawn(move || while desk.answer_next().unwrap_or(false) {});
        Ok(Self { tcp, udp, _datagram: datagram, stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Porter {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

// === impl Desk ===

impl Desk {
    /// Waits for one round of callers; false when told to stop.
    fn answer_next(&self) -> io::Result<bool> {
        let ready = self.wait()?;
        if ready[0] {
            return Ok(false);
        }
        // A caller that is gone again is no reason to stop answering others.
        if ready[1] {
            drop(self.tcp.accept().and_then(|(mut caller, _)| caller.write_all(&self.answer)));
        }
        if ready[2] {
            drop(
                self.udp.recv_from(&mut [0; 512]).and_then(|(_, from)| self.udp.send_to(&self.answer, from)),
            );
        }
        for (listener, _) in self.unix.iter().zip(&ready[3..]).filter(|(_, ready)| **ready) {
            drop(listener.accept().and_then(|(mut caller, _)| caller.write_all(&self.answer)));
        }
        Ok(true)
    }

    fn wait(&self) -> io::Result<Vec<bool>> {
        let sockets = [self.stop.as_fd(), self.tcp.as_fd(), self.udp.as_fd()];
        let mut polled: Vec<_> = sockets
            .into_iter()
            .chain(self.unix.iter().map(AsFd::as_fd))
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        poll(&mut polled, None)?;
        Ok(polled.iter().map(|fd| !fd.revents().is_empty()).collect())
    }
}

/// Stream and datagram sockets of one abstract name would be two, but easy to take for one.
pub(crate) fn datagram_name(abstract_name: &str) -> String {
    format!("{abstract_name}-datagram")
}
