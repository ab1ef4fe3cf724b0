//! The socket between keeper and init: messages with descriptors.
//!
//! Each message is its length (4 bytes, little-endian) and its `postcard` encoding; descriptors travel with the
//! first byte. What comes from inside is bounded: init runs our code, but shares its fate with what it confines.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use redoma_sys::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::error::Failure;
use crate::network::End;

/// What the keeper asks of init.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// The ranges of users are mapped (full tier, where there are any).
    Mapped,
    /// Start a command; the descriptors of its streams that are not the terminal come along, in order.
    Exec(ExecRequest),
    /// Send a signal to a command's process group, or only to the command.
    Signal { command: u32, signal: i32, group: bool },
    /// End a command and every process that it started, which it was started for ([`ExecRequest::held`]).
    End { command: u32 },
    /// Connect to a port inside.
    Dial(u16),
    /// Stop everything inside but init, or let it go on.
    Freeze(bool),
}

/// A command to start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ExecRequest {
    /// What the keeper calls it from now on.
    pub command: u32,
    /// Whether all that it starts has to be found again, by [`Request::End`].
    pub held: bool,
    /// Who it is, where it is not who init is.
    pub user: Option<Ids>,
    pub argv: Vec<Vec<u8>>,
    pub envp: Vec<Vec<u8>>,
    pub folder: PathBuf,
    pub terminal: Option<Terminal>,
}

/// Numbers of a user inside, of the group and of further groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ids {
    /// The user.
    pub user: u32,
    /// The group.
    pub group: u32,
    /// Further groups.
    pub groups: Vec<u32>,
}

/// A terminal to make for the command, and which of standard input, output and error it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminal {
    /// Rows and columns.
    pub size: (u16, u16),
    /// Whether standard input, output and error are this terminal.
    pub streams: [bool; 3],
}

/// What init tells the keeper.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// Sockets of the sandbox's network come along, these. Comes before the next, as often as it takes.
    Wired(Vec<End>),
    /// The boundary stands and the canary failed.
    Ready(Enforced),
    /// A step failed: nothing runs.
    Failed(Failure),
    /// The command runs; the terminal's other end comes along if one was asked for.
    Started { command: u32, pid: i32 },
    /// The command did not start.
    NotStarted { command: u32, failure: Failure },
    /// The command was stopped by a signal.
    Stopped { command: u32 },
    /// The command ended, as `waitpid(2)` tells.
    Ended { command: u32, ending: Ending },
    /// Nothing but init is left.
    Alone,
    /// Everything inside stands, or goes on.
    Frozen,
    /// How connecting went; the socket comes along if it went well.
    Dialled(Result<(), Failure>),
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
}

/// What really confines the commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforced {
    /// Version of Landlock's interface; 0 where its file rules are off (`kernel.nested_userns`).
    pub landlock_abi: u32,
}

/// One end of a connected stream socket, for messages with descriptors.
#[derive(Debug)]
pub struct Channel(OwnedFd);

/// More than this is no message of ours. Arguments and environment are bounded by the kernel at about 2 MiB.
const LIMIT: usize = 8 << 20;
/// With one message.
pub(crate) const MOST_DESCRIPTORS: usize = 16;

impl Channel {
    /// Both ends.
    ///
    /// # Errors
    /// What `socketpair(2)` says.
    pub fn pair() -> Result<(Self, Self), Errno> {
        let (a, b) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        Ok((Self(a), Self(b)))
    }

    /// Closes everything else that this process was forked with.
    pub(crate) fn close_all_others(&self) -> Result<(), Errno> {
        redoma_sys::close_all_but(&[self.0.as_fd()])
    }

    /// Sends one message, with at most sixteen descriptors.
    ///
    /// # Errors
    /// What `sendmsg(2)` says; `EPIPE` when the other end is gone.
    pub fn send(&self, message: &impl Serialize, descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let body = postcard::to_allocvec(message).map_err(|_| Errno::INVAL)?;
        let mut bytes = Vec::with_capacity(4 + body.len());
        bytes.extend(u32::try_from(body.len()).map_err(|_| Errno::MSGSIZE)?.to_le_bytes());
        bytes.extend(body);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(Errno::INVAL);
        }
        let mut sent = rustix::io::retry_on_intr(|| {
            sendmsg(&self.0, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)
        })?;
        while sent < bytes.len() {
            sent += rustix::io::retry_on_intr(|| {
                rustix::net::send(&self.0, &bytes[sent..], SendFlags::NOSIGNAL)
            })?;
        }
        Ok(())
    }

    /// Waits for one message; none when the other end is gone.
    ///
    /// # Errors
    /// `EMSGSIZE` and `EBADMSG` for what is no message.
    pub fn receive<T: DeserializeOwned>(&self) -> Result<Option<(T, Vec<OwnedFd>)>, Errno> {
        let mut length = [0u8; 4];
        let Some(descriptors) = self.receive_head(&mut length)? else { return Ok(None) };
        let length = u32::from_le_bytes(length) as usize;
        if length > LIMIT {
            return Err(Errno::MSGSIZE);
        }
        let mut body = vec![0; length];
        self.fill(&mut body)?;
        let message = postcard::from_bytes(&body).map_err(|_| Errno::BADMSG)?;
        Ok(Some((message, descriptors)))
    }

    fn receive_head(&self, head: &mut [u8; 4]) -> Result<Option<Vec<OwnedFd>>, Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = rustix::io::retry_on_intr(|| {
            recvmsg(&self.0, &mut [IoSliceMut::new(head)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)
        })?;
        if received.flags.contains(ReturnFlags::CTRUNC) {
            return Err(Errno::BADMSG);
        }
        let descriptors = ancillary.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        });
        let descriptors: Vec<OwnedFd> = descriptors.flatten().collect();
        if received.bytes == 0 {
            return Ok(None);
        }
        self.fill(&mut head[received.bytes..])?;
        Ok(Some(descriptors))
    }

    fn fill(&self, mut buffer: &mut [u8]) -> Result<(), Errno> {
        while !buffer.is_empty() {
            match rustix::io::retry_on_intr(|| rustix::io::read(&self.0, &mut *buffer))? {
                0 => return Err(Errno::PIPE),
                read => buffer = &mut buffer[read..],
            }
        }
        Ok(())
    }
}

impl From<OwnedFd> for Channel {
    fn from(socket: OwnedFd) -> Self {
        Self(socket)
    }
}

impl From<Channel> for OwnedFd {
    fn from(channel: Channel) -> Self {
        channel.0
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
