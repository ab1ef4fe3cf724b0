//! Whose a connection is: the kernel's list of the namespace's sockets. See `sock_diag(7)`.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use redoma_sys::Errno;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{RecvFlags, SendFlags};

/// The TCP sockets of a sandbox.
#[derive(Debug)]
pub struct Sockets {
    diag: OwnedFd,
    sequence: u32,
}

/// `nlmsghdr` and `inet_diag_req_v2`.
const REQUEST: usize = 16 + 56;
/// Where the inode stands behind the header in `inet_diag_msg`: after four bytes, a connection of 48, its expiry, two
/// queues and the user.
const INODE: usize = 16 + 4 + 48 + 16;
const BY_FAMILY: u16 = 20;
const ERROR: u16 = 2;
const TCP: u8 = 6;

impl Sockets {
    /// The inode of the socket that is connected from `local` to `remote`, which `/proc/PID/fd` shows as `socket:[INODE]`.
    ///
    /// # Errors
    /// `ENOENT` when there is none.
    pub fn inode(&mut self, local: SocketAddr, remote: SocketAddr) -> Result<u32, Errno> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = request(self.sequence, local, remote)?;
        rustix::net::send(&self.diag, &request, SendFlags::empty())?;
        let mut answer = [0; 1024];
        loop {
            // The kernel answers before the sending returns; a kernel that does not is not waited for long.
            let patience = Timespec { tv_sec: 1, tv_nsec: 0 };
            if rustix::event::poll(&mut [PollFd::new(&self.diag, PollFlags::IN)], Some(&patience))? == 0 {
                return Err(Errno::TIMEDOUT);
            }
            let (length, _) = rustix::net::recv(&self.diag, &mut answer, RecvFlags::DONTWAIT)?;
            if let Some(found) = found(&answer[..length], self.sequence) {
                return found;
            }
        }
    }
}

impl From<OwnedFd> for Sockets {
    fn from(diag: OwnedFd) -> Self {
        Self { diag, sequence: 0 }
    }
}

impl AsFd for Sockets {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.diag.as_fd()
    }
}

/// Asks for exactly one connection, in any state and with any cookie.
fn request(sequence: u32, local: SocketAddr, remote: SocketAddr) -> Result<Vec<u8>, Errno> {
    let (family, local_ip, remote_ip) = match (local.ip(), remote.ip()) {
        (IpAddr::V4(local), IpAddr::V4(remote)) => {
            (libc_family::INET, wide(&local.octets()), wide(&remote.octets()))
        }
        (IpAddr::V6(local), IpAddr::V6(remote)) => (libc_family::INET6, local.octets(), remote.octets()),
        _ => return Err(Errno::AFNOSUPPORT),
    };
    let mut request = Vec::with_capacity(REQUEST);
    request.extend((REQUEST as u32).to_ne_bytes());
    request.extend(BY_FAMILY.to_ne_bytes());
    request.extend((redoma_sys::nr::NLM_F_REQUEST as u16).to_ne_bytes());
    request.extend(sequence.to_ne_bytes());
    request.extend([0; 4]);
    request.extend([family, TCP, 0, 0]);
    request.extend(u32::MAX.to_ne_bytes());
    request.extend(local.port().to_be_bytes());
    request.extend(remote.port().to_be_bytes());
    request.extend(local_ip);
    request.extend(remote_ip);
    request.extend([0; 4]);
    request.extend([0xff; 8]);
    Ok(request)
}

/// As `AF_INET` and `AF_INET6` stand in one byte.
mod libc_family {
    use rustix::net::AddressFamily;

    pub(super) const INET: u8 = AddressFamily::INET.as_raw() as u8;
    pub(super) const INET6: u8 = AddressFamily::INET6.as_raw() as u8;
}

fn wide(octets: &[u8; 4]) -> [u8; 16] {
    std::array::from_fn(|at| octets.get(at).copied().unwrap_or(0))
}

/// What an answer says; none if it answers an earlier question.
fn found(answer: &[u8], sequence: u32) -> Option<Result<u32, Errno>> {
    let word = |at: usize| answer.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    if word(8)? != sequence {
        return None;
    }
    let kind = u16::from_ne_bytes([*answer.get(4)?, *answer.get(5)?]);
    Some(match kind {
        ERROR => Err(Errno::from_raw_os_error((word(16)? as i32).saturating_neg())),
        _ => word(INODE).ok_or(Errno::BADMSG),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_an_earlier_question_is_passed_over() {
        let mut answer = vec![0; INODE + 4];
        answer[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        answer[8..12].copy_from_slice(&7u32.to_ne_bytes());
        answer[INODE..].copy_from_slice(&42u32.to_ne_bytes());
        assert_eq!(found(&answer, 7), Some(Ok(42)));
        assert_eq!(found(&answer, 8), None);
        assert_eq!(found(&answer[..INODE], 7), Some(Err(Errno::BADMSG)));
        assert_eq!(found(&[], 7), None);
    }

    #[test]
    fn both_ends_are_of_one_family() {
        let v4 = "127.0.0.1:1".parse().unwrap();
        assert_eq!(request(1, v4, "[::1]:1".parse().unwrap()), Err(Errno::AFNOSUPPORT));
        assert_eq!(request(1, v4, v4).unwrap().len(), REQUEST);
    }
}
