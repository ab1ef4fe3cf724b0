use std::ffi::CString;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;

use super::{DEAD, outcome};

/// An `ioctl` request that would reach through a terminal to whoever else uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalRequest {
    /// `TIOCSTI`: type on the user's keyboard.
    PushInput,
    /// `TIOCSTI` with a bit set above the 32 that the kernel reads (CVE-2017-5226, CVE-2019-10063).
    PushInputHighBits,
    /// `TIOCLINUX`: paste the console's selection.
    PasteSelection,
    /// `TIOCCONS`: take the console's output.
    TakeConsole,
}

/// Makes a terminal request on a descriptor that isn't a terminal.
///
/// # Errors
/// `ENOTTY` when nothing but the descriptor stood in the way; `EPERM` or `EACCES` when it was refused.
pub fn terminal_request(fd: BorrowedFd<'_>, request: TerminalRequest) -> Result<i64, Errno> {
    let number: usize = match request {
        TerminalRequest::PushInput => libc::TIOCSTI as usize,
        TerminalRequest::PushInputHighBits => libc::TIOCSTI as usize | 1 << 32,
        TerminalRequest::PasteSelection => 0x541C,
        TerminalRequest::TakeConsole => 0x541D,
    };
    // SAFETY: the argument is a never mapped address, which the kernel can neither read nor write. A raw
    // call, since the C library would cut the request to 32 bits on some targets.
    outcome(unsafe { libc::syscall(libc::SYS_ioctl, fd.as_raw_fd(), number, DEAD) })
}

/// Types one byte into a terminal's input queue for real. `TIOCSTI` in `ioctl_tty(2)`.
///
/// # Errors
/// `EIO` where the kernel has `dev.tty.legacy_tiocsti` off, `EPERM` when it isn't the caller's
/// controlling terminal or a filter refuses.
pub fn push_input(fd: BorrowedFd<'_>, byte: u8) -> Result<(), Errno> {
    // SAFETY: the kernel reads one byte at the pointer, which is valid for the call.
    outcome(unsafe {
        libc::syscall(libc::SYS_ioctl, fd.as_raw_fd(), libc::TIOCSTI as usize, &raw const byte)
    })
    .map(drop)
}

/// A socket whose family is asked for with a bit set above the 32 that the kernel reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HighBits {
    /// `AF_PACKET`, raw.
    Packet,
    /// `AF_ALG`.
    Ciphers,
}

/// Makes such a socket: a filter that compares all 64 bits takes the family for another.
///
/// # Errors
/// What the call says.
pub fn socket_high_bits(kind: HighBits) -> Result<OwnedFd, Errno> {
    let (family, kind) = match kind {
        HighBits::Packet => (libc::AF_PACKET, libc::SOCK_RAW),
        HighBits::Ciphers => (libc::AF_ALG, libc::SOCK_SEQPACKET),
    };
    let (family, kind) = (family as usize | 1 << 32, (kind | libc::SOCK_CLOEXEC) as usize);
    // SAFETY: no pointers; a raw call, since the C library's takes an int.
    let fd = outcome(unsafe { libc::syscall(libc::SYS_socket, family, kind, 0_usize) })? as i32;
    // SAFETY: a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A file's handle, by which it can be opened again without a path. `open_by_handle_at(2)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileHandle {
    /// The file system's own kind of handle.
    pub kind: i32,
    /// What identifies the file within its file system; at most 128 bytes.
    pub bytes: Vec<u8>,
}

const HANDLE_MAX: usize = 128;

#[repr(C)]
struct RawHandle {
    length: u32,
    kind: i32,
    bytes: [u8; HANDLE_MAX],
}

/// The handle of the file at `path`, links not followed. `name_to_handle_at(2)`.
///
/// # Errors
/// `EOPNOTSUPP` where the file system has no handles; otherwise what the lookup says.
pub fn file_handle(path: &Path) -> Result<FileHandle, Errno> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
    let mut raw = RawHandle { length: HANDLE_MAX as u32, kind: 0, bytes: [0; HANDLE_MAX] };
    let mut mount = 0_i32;
    // SAFETY: `raw` has room for the length it states, `mount` for one int, and `path` ends in NUL.
    let done = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            libc::AT_FDCWD,
            path.as_ptr(),
            &raw mut raw,
            &raw mut mount,
            0,
        )
    };
    outcome(done)?;
    let length = (raw.length as usize).min(HANDLE_MAX);
    Ok(FileHandle { kind: raw.kind, bytes: raw.bytes[..length].to_vec() })
}

/// Opens the file of `handle` for reading, on the file system that `mount` is on.
///
/// # Errors
/// `EPERM` without `CAP_DAC_READ_SEARCH`, `ESTALE` when there is no such file, `EINVAL` for a handle of
/// more than 128 bytes.
pub fn open_by_handle(mount: BorrowedFd<'_>, handle: &FileHandle) -> Result<OwnedFd, Errno> {
    let mut raw = RawHandle { length: handle.bytes.len() as u32, kind: handle.kind, bytes: [0; HANDLE_MAX] };
    raw.bytes.get_mut(..handle.bytes.len()).ok_or(Errno::INVAL)?.copy_from_slice(&handle.bytes);
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: `raw` states the length of its valid part; the kernel only reads it.
    let fd = unsafe { libc::syscall(libc::SYS_open_by_handle_at, mount.as_raw_fd(), &raw mut raw, flags) };
    let fd = outcome(fd)? as i32;
    // SAFETY: a new descriptor that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_no_terminal() {
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        let fd = std::os::fd::AsFd::as_fd(&reader);
        assert_eq!(terminal_request(fd, TerminalRequest::PushInput), Err(Errno::NOTTY));
        assert_eq!(terminal_request(fd, TerminalRequest::PushInputHighBits), Err(Errno::NOTTY));
    }
}
