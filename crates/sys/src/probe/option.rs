use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

use super::outcome;

/// An option of a socket by which its packets could go another way than their address says. See `ip(7)`, `ipv6(7)` and
/// `socket(7)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detour {
    /// `SO_BINDTODEVICE` to `lo`.
    Loopback,
    /// `SO_MARK`, which routing rules can ask for.
    Mark,
    /// `IP_TRANSPARENT`.
    Transparent,
    /// `IPV6_TRANSPARENT`.
    Transparent6,
    /// `IP_OPTIONS` with a loose source route over this address (RFC 791, 3.1).
    Over([u8; 4]),
}

/// Has packets of a socket take a detour.
///
/// # Errors
/// What the call says: `EPERM` without the capability that it needs.
pub fn set_detour(socket: BorrowedFd<'_>, detour: Detour) -> Result<(), Errno> {
    let one = 1i32.to_ne_bytes().to_vec();
    let (level, option, value) = match detour {
        Detour::Loopback => (libc::SOL_SOCKET, libc::SO_BINDTODEVICE, b"lo\0".to_vec()),
        Detour::Mark => (libc::SOL_SOCKET, libc::SO_MARK, one),
        Detour::Transparent => (libc::SOL_IP, libc::IP_TRANSPARENT, one),
        Detour::Transparent6 => (libc::SOL_IPV6, libc::IPV6_TRANSPARENT, one),
        // Kind, length, pointer to the first address, the address, no more.
        Detour::Over([a, b, c, d]) => (libc::SOL_IP, libc::IP_OPTIONS, vec![131, 7, 4, a, b, c, d, 0]),
    };
    let length = value.len() as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `value` and keeps no pointer.
    let result =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value.as_ptr().cast(), length) };
    outcome(result.into()).map(drop)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn an_option_that_needs_no_capability_is_set() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(set_detour(socket.as_fd(), Detour::Loopback), Ok(()));
        // Newer kernels want CAP_NET_RAW for a source route.
        let over = set_detour(socket.as_fd(), Detour::Over([127, 0, 0, 1]));
        assert!(matches!(over, Ok(()) | Err(Errno::PERM)), "{over:?}");
        // An option for IPv6 of an IPv4 socket.
        assert_eq!(set_detour(socket.as_fd(), Detour::Transparent6), Err(Errno::NOPROTOOPT));
    }
}
