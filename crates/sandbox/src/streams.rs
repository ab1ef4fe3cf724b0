//! The caller's standard input, output and error: files are handed in, pipes and sockets are relayed, a terminal is made
//! anew.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use redoma_jail::Terminal;
use redoma_sys::Errno;
use rustix::fs::{FileType, Mode, OFlags, major, minor};
use rustix::net::{SocketType, sockopt};

use crate::error::RunError;
use crate::pipes::Pipes;

const NAMES: [&str; 3] = ["standard input", "standard output", "standard error"];

/// What the three streams are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Streams {
    /// Whether each is a terminal, which is never handed in: a command that holds the user's terminal can type into
    /// the user's shell.
    pub(crate) terminal: [bool; 3],
    /// Whether each is a pipe or a socket, which are not handed in either; [`Pipes`] says why.
    relayed: [bool; 3],
    /// Whether there is nothing to read, whatever standard input is.
    silent: bool,
}

/// A stream as the command gets it.
pub(crate) enum Handed {
    /// The caller's file or null device.
    Outer(BorrowedFd<'static>),
    /// The sandbox's end of a pipe that is relayed.
    Pipe(OwnedFd),
}

impl AsFd for Handed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Outer(fd) => *fd,
            Self::Pipe(fd) => fd.as_fd(),
        }
    }
}

/// What a stream is.
enum Kind {
    Terminal,
    Pipe,
    File,
}

impl Streams {
    /// Looks at the three streams.
    ///
    /// # Errors
    /// [`RunError::Stream`] for what would be more than a stream inside: a folder is a way into the host's tree, a
    /// block device is a disk, and a socket that is not connected is a way into the host's network.
    pub(crate) fn of_caller() -> Result<Self, RunError> {
        let mut streams = Self { terminal: [false; 3], relayed: [false; 3], silent: false };
        for (index, fd) in all().into_iter().enumerate() {
            let kind = kind_of(fd, NAMES[index])?;
            streams.terminal[index] = matches!(kind, Kind::Terminal);
            streams.relayed[index] = matches!(kind, Kind::Pipe);
        }
        Ok(streams)
    }

    /// The same for a command that has a terminal only if it is asked for, and standard input only if that is: else there
    /// is nothing to read, and a terminal of the user's is written to as a pipe is.
    pub(crate) fn of_caller_for(interactive: bool, terminal: bool) -> Result<Self, RunError> {
        let mut streams = Self::of_caller()?;
        if !terminal {
            streams.relayed = std::array::from_fn(|at| streams.relayed[at] || streams.terminal[at]);
            streams.terminal = [false; 3];
        }
        if !interactive {
            streams.silent = true;
            streams.terminal[0] = false;
        }
        Ok(streams)
    }

    /// The streams that are not the terminal, in order, and the relay of those that are pipes.
    pub(crate) fn hand_in(self) -> Result<(Vec<Handed>, Pipes), Errno> {
        let (mut handed, mut pipes) = (Vec::new(), Pipes::default());
        let [_, output, error] = all();
        for (index, outer) in all().into_iter().enumerate().filter(|(index, _)| !self.terminal[*index]) {
            if index == 0 && self.silent {
                let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
                handed.push(Handed::Pipe(null));
                continue;
            }
            handed.push(match (self.relayed[index], handed.last()) {
                (false, _) => Handed::Outer(outer),
                // `2>&1`: what is written to either comes in the order in which it was written.
                (true, Some(Handed::Pipe(pipe))) if index == 2 && self.relayed[1] && same(output, error) => {
                    Handed::Pipe(rustix::io::fcntl_dupfd_cloexec(pipe, 3)?)
                }
                (true, _) => Handed::Pipe(pipes.add(outer, index == 0)?),
            });
        }
        Ok((handed, pipes))
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

fn same(a: BorrowedFd<'_>, b: BorrowedFd<'_>) -> bool {
    let inode = |fd| rustix::fs::fstat(fd).map(|stat| (stat.st_dev, stat.st_ino));
    matches!((inode(a), inode(b)), (Ok(a), Ok(b)) if a == b)
}

fn kind_of(fd: BorrowedFd<'_>, name: &'static str) -> Result<Kind, RunError> {
    if rustix::termios::isatty(fd) {
        return Ok(Kind::Terminal);
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
        FileType::Socket if !is_connected_stream(fd) => refuse("socket that is no connected stream"),
        FileType::Fifo | FileType::Socket => Ok(Kind::Pipe),
        _ => Ok(Kind::File),
    }
}

/// null, zero, full, random, urandom: major 1, of which 1, 2 and 4 are memory and ports. See `null(4)`.
fn is_memory_device(device: u64) -> bool {
    major(device) == 1 && matches!(minor(device), 3 | 5 | 7 | 8 | 9)
}

/// Whether a socket can be relayed: a connected stream. What is said without a connection, and who calls at a listening
/// socket, cannot be told by a pipe. See `socket(7)`.
fn is_connected_stream(socket: BorrowedFd<'_>) -> bool {
    sockopt::socket_type(socket) == Ok(SocketType::STREAM) && sockopt::socket_acceptconn(socket) == Ok(false)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

    use super::*;

    fn is_relayed(socket: &impl AsFd) -> bool {
        matches!(kind_of(socket.as_fd(), NAMES[0]), Ok(Kind::Pipe))
    }

    #[test]
    fn connected_streams_are_relayed() {
        let (one, other) = UnixStream::pair().unwrap();
        assert!(is_relayed(&one));
        drop(other);
        assert!(is_relayed(&one), "also when the other end is gone, as at the end of input");
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(is_relayed(&TcpStream::connect(tcp.local_addr().unwrap()).unwrap()));
    }

    #[test]
    fn other_sockets_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |socket: &dyn AsFd| kind_of(socket.as_fd(), NAMES[0]).is_err();
        assert!(refused(&TcpListener::bind("127.0.0.1:0").unwrap()));
        assert!(refused(&UdpSocket::bind("127.0.0.1:0").unwrap()));
        assert!(refused(&UnixListener::bind(folder.path().join("listens")).unwrap()));
        assert!(refused(&UnixDatagram::pair().unwrap().0));
    }
}
