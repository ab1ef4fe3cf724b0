use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;

use crate::clone::last_error;

/// Attributes of a mount, as `MOUNT_ATTR_*` bits. See `mount_setattr(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MountAttributes(u64);

impl MountAttributes {
    /// No set-user-id programs, no device files.
    pub const CONFINED: Self = Self(libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV);
    /// [`Self::CONFINED`] and nothing can be written.
    pub const READ_ONLY: Self =
        Self(libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_RDONLY);
    /// Device files keep working, for reading and writing; their modes and owners can't be changed.
    pub const READ_ONLY_DEVICES: Self =
        Self(libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC | libc::MOUNT_ATTR_RDONLY);
}

/// Sets `attributes` on the mount that `mount` refers to and, if `recursive`, on all mounts below it.
///
/// # Errors
/// `EPERM` without `CAP_SYS_ADMIN` in the mount namespace or for a locked flag, `EINVAL` for a descriptor that
/// is not the root of a mount.
///
/// No safe crate has this: `rustix` stops at `move_mount`. Clearing attributes is left out on purpose.
pub fn mount_setattr(mount: impl AsFd, attributes: MountAttributes, recursive: bool) -> Result<(), Errno> {
    let attr = libc::mount_attr { attr_set: attributes.0, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the descriptor is open, the path is an empty C string, `attr` is valid and of the size given.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            &raw const attr,
            size_of::<libc::mount_attr>(),
        )
    };
    if done == 0 { Ok(()) } else { Err(last_error()) }
}
