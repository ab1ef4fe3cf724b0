//! The one interface of the new network namespace.

use redoma_sys::Errno;
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};

/// Brings loopback up, so that programs inside can talk to each other. See `rtnetlink(7)`.
///
/// # Errors
/// What the kernel answers; a namespace of one's own has no reason to refuse.
pub(crate) fn bring_up() -> Result<(), Errno> {
    let flags = SocketFlags::CLOEXEC;
    // Protocol 0 is NETLINK_ROUTE.
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    rustix::net::send(&socket, &up_request(), SendFlags::empty())?;
    let mut answer = [0u8; 128];
    let (length, _) = rustix::net::recv(&socket, &mut answer, rustix::net::RecvFlags::empty())?;
    errno_of(&answer[..length])
}

/// `RTM_NEWLINK` for interface 1, which loopback always is: a `nlmsghdr` and an `ifinfomsg`.
fn up_request() -> [u8; 32] {
    const RTM_NEWLINK: u16 = 16;
    const NLM_F_REQUEST_ACK: u16 = 1 | 4;
    const IFF_UP: u32 = 1;
    let mut message = [0u8; 32];
    message[0..4].copy_from_slice(&32u32.to_ne_bytes());
    message[4..6].copy_from_slice(&RTM_NEWLINK.to_ne_bytes());
    message[6..8].copy_from_slice(&NLM_F_REQUEST_ACK.to_ne_bytes());
    message[20..24].copy_from_slice(&1i32.to_ne_bytes());
    message[24..28].copy_from_slice(&IFF_UP.to_ne_bytes());
    message[28..32].copy_from_slice(&IFF_UP.to_ne_bytes());
    message
}

/// An `NLMSG_ERROR` carries a negative errno behind its header, 0 for success.
fn errno_of(answer: &[u8]) -> Result<(), Errno> {
    let code = answer.get(16..20).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match code {
        Some(0) => Ok(()),
        Some(code) => Err(Errno::from_raw_os_error(-code)),
        None => Err(Errno::BADMSG),
    }
}
