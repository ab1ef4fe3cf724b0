//! The caller's standard input, output and error: which are handed through, and which are a terminal.

use std::os::fd::{AsFd, BorrowedFd};

use redoma_jail::Terminal;
use redoma_sys::Errno;
use rustix::fs::{FileType, major, minor};
use rustix::net::{AddressFamily, SocketType, sockopt};

use crate::error::RunError;

const NAMES: [&str; 3] = ["standard input", "standard output", "standard error"];

/// What the three streams are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Streams {
    /// Whether each is a terminal, which is never handed in: a command that holds the user's terminal can type into
    /// the user's shell.
    pub(crate) terminal: [bool; 3],
}

impl Streams {
    /// Looks at the three streams.
    ///
    /// # Errors
    /// [`RunError::Stream`] for what would be more than a stream inside: a folder is a way into the host's tree, a
    /// block device is a disk, and most sockets are a way into the host's network.
    pub(crate) fn of_caller() -> Result<Self, RunError> {
        let mut terminal = [false; 3];
        for (index, fd) in all().into_iter().enumerate() {
            terminal[index] = is_terminal(fd, NAMES[index])?;
        }
        Ok(Self { terminal })
    }

    /// The streams that are handed through, in order.
    pub(crate) fn handed_through(self) -> Vec<BorrowedFd<'static>> {
        all().into_iter().zip(self.terminal).filter(|(_, terminal)| !terminal).map(|(fd, _)| fd).collect()
    }

    /// The terminal to make inside, of the size of the user's, if any stream is one.
    pub(crate) fn terminal(self) -> Option<Terminal> {
        let outer = all().into_iter().zip(self.terminal).find(|(_, terminal)| *terminal)?.0;
        let size = rustix::termios::tcgetwinsize(outer).map_or((24, 80), |size| (size.ws_row, size.ws_col));
        Some(Terminal { size, streams: self.terminal })
    }

    /// Where the inner terminal's output goes.
    pub(crate) fn output(self) -> Option<BorrowedFd<'static>> {
        let [_, output, error] = all();
        [(output, self.terminal[1]), (error, self.terminal[2])]
            .into_iter()
            .find(|(_, terminal)| *terminal)
            .map(|(fd, _)| fd)
    }

    /// Where the inner terminal's input comes from.
    pub(crate) fn input(self) -> Option<BorrowedFd<'static>> {
        self.terminal[0].then(|| all()[0])
    }
}

fn all() -> [BorrowedFd<'static>; 3] {
    [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()]
}

fn is_terminal(fd: BorrowedFd<'_>, name: &'static str) -> Result<bool, RunError> {
    if rustix::termios::isatty(fd) {
        return Ok(true);
    }
    let refuse = |what| Err(RunError::Stream { name, what });
    let stat = match rustix::fs::fstat(fd.as_fd()) {
        Ok(stat) => stat,
        Err(Errno::BADF) => return refuse("closed descriptor"),
        Err(errno) => return Err(RunError::Terminal(errno)),
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => refuse("folder"),
        FileType::BlockDevice => refuse("block device"),
        FileType::CharacterDevice if !is_memory_device(stat.st_rdev) => refuse("device"),
        FileType::Socket if !is_fixed_pair(fd) => refuse("socket that could be pointed elsewhere"),
        _ => Ok(false),
    }
}

/// null, zero, full, random, urandom: major 1, of which 1, 2 and 4 are memory and ports. See `null(4)`.
fn is_memory_device(device: u64) -> bool {
    major(device) == 1 && matches!(minor(device), 3 | 5 | 7 | 8 | 9)
}

/// Whether a socket can reach nothing but the one at its other end. It belongs to the network namespace that it was made
/// in: a TCP socket can be connected anew to any host (`connect(2)` with `AF_UNSPEC`), a datagram needs no connection at
/// all, and a listening socket takes whoever calls. Only a connected Unix stream stays what it is; it is also what
/// Node's child processes and `socketpair(2)` give. See unix(7).
fn is_fixed_pair(fd: BorrowedFd<'_>) -> bool {
    let kind = sockopt::socket_type(fd);
    sockopt::socket_domain(fd) == Ok(AddressFamily::UNIX)
        && matches!(kind, Ok(SocketType::STREAM | SocketType::SEQPACKET))
        && rustix::net::getpeername(fd).is_ok()
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

    use super::*;

    fn passes(socket: &impl AsFd) -> bool {
        is_terminal(socket.as_fd(), NAMES[0]).is_ok()
    }

    #[test]
    fn a_connected_unix_stream_is_handed_through() {
        let (one, other) = UnixStream::pair().unwrap();
        assert!(passes(&one) && passes(&other));
        drop(other);
        assert!(passes(&one), "also when the other end is gone, as at the end of input");
    }

    #[test]
    fn sockets_that_reach_more_than_one_other_end_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let connected = TcpStream::connect(tcp.local_addr().unwrap()).unwrap();
        assert!(!passes(&tcp) && !passes(&connected));
        assert!(!passes(&UdpSocket::bind("127.0.0.1:0").unwrap()));
        assert!(!passes(&UnixListener::bind(folder.path().join("listens")).unwrap()));
        let (datagrams, _other) = UnixDatagram::pair().unwrap();
        assert!(!passes(&datagrams));
    }
}
