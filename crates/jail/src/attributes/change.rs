use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};

use redoma_sys::Errno;
use rustix::fs::{AtFlags, CWD, Gid, Mode, Timespec, Timestamps, UTIME_NOW, Uid, XattrFlags};

use crate::caller::Caller;

/// What becomes of an object.
pub(super) enum Change {
    Mode(Mode),
    Owner(Option<Uid>, Option<Gid>),
    Times(Timestamps),
    Attribute { name: CString, value: Vec<u8>, flags: XattrFlags },
    NoAttribute { name: CString },
}

/// The unit in which a call gives the time; all of them are pairs of words.
#[derive(Clone, Copy)]
pub(super) enum Clock {
    /// `struct utimbuf`: two times of one word each.
    #[cfg(target_arch = "x86_64")]
    Seconds,
    /// `struct timeval[2]`.
    #[cfg(target_arch = "x86_64")]
    Microseconds,
    /// `struct timespec[2]`.
    Nanoseconds,
}

/// Limits of the kernel, in `linux/limits.h`; the first with the zero at the end.
const XATTR_NAME_MAX: usize = 256;
const XATTR_SIZE_MAX: u64 = 65_536;

impl Change {
    pub(super) fn mode(caller: &Caller<'_>, argument: usize) -> Result<Self, Errno> {
        let mode = Mode::from_bits_truncate(caller.int(argument));
        // The filter has refused it already. Here it is init that would make the file, so it looks for itself.
        if mode.intersects(Mode::SUID | Mode::SGID) { Err(Errno::PERM) } else { Ok(Self::Mode(mode)) }
    }

    pub(super) fn owner(caller: &Caller<'_>, argument: usize) -> Result<Self, Errno> {
        const UNCHANGED: u32 = u32::MAX;
        let id = |argument| Some(caller.int(argument)).filter(|&id| id != UNCHANGED);
        Ok(Self::Owner(id(argument).map(Uid::from_raw), id(argument + 1).map(Gid::from_raw)))
    }

    pub(super) fn times(caller: &Caller<'_>, argument: usize, clock: Clock) -> Result<Self, Errno> {
        let address = caller.word(argument);
        if address == 0 {
            let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
            return Ok(Self::Times(Timestamps { last_access: now, last_modification: now }));
        }
        let (last_access, last_modification) = clock.read(caller, address)?;
        Ok(Self::Times(Timestamps { last_access, last_modification }))
    }

    /// Name, value, its length and flags are four arguments on end. See `setxattr(2)`.
    pub(super) fn attribute(caller: &Caller<'_>, argument: usize) -> Result<Self, Errno> {
        let (value, length) = (caller.word(argument + 1), caller.word(argument + 2));
        if length > XATTR_SIZE_MAX {
            return Err(Errno::TOOBIG);
        }
        let value = if length == 0 { Vec::new() } else { caller.bytes(value, length as usize)? };
        let flags = XattrFlags::from_bits_retain(caller.int(argument + 3));
        Ok(Self::Attribute { name: name(caller, argument)?, value, flags })
    }

    pub(super) fn no_attribute(caller: &Caller<'_>, argument: usize) -> Result<Self, Errno> {
        Ok(Self::NoAttribute { name: name(caller, argument)? })
    }

    /// The name in `/proc` leads to the very object, without a look at any path: see "proc_pid_fd(5)". No call that
    /// takes a descriptor will take one that only names.
    pub(super) fn make(&self, object: &OwnedFd) -> Result<(), Errno> {
        let object = format!("/proc/self/fd/{}", object.as_raw_fd());
        match self {
            Self::Mode(mode) => rustix::fs::chmod(object, *mode),
            Self::Owner(user, group) => rustix::fs::chown(object, *user, *group),
            Self::Times(times) => rustix::fs::utimensat(CWD, object, times, AtFlags::empty()),
            Self::Attribute { name, value, flags } => {
                rustix::fs::setxattr(object, name.as_c_str(), value, *flags)
            }
            Self::NoAttribute { name } => rustix::fs::removexattr(object, name.as_c_str()),
        }
    }
}

fn name(caller: &Caller<'_>, argument: usize) -> Result<CString, Errno> {
    caller.string(caller.word(argument), XATTR_NAME_MAX, Errno::RANGE)
}

// === impl Clock ===

impl Clock {
    fn read(self, caller: &Caller<'_>, address: u64) -> Result<(Timespec, Timespec), Errno> {
        match self {
            #[cfg(target_arch = "x86_64")]
            Self::Seconds => {
                let [accessed, modified] = words(caller, address)?;
                Ok((whole(accessed), whole(modified)))
            }
            #[cfg(target_arch = "x86_64")]
            Self::Microseconds => {
                let [accessed, us, modified, more_us] = words(caller, address)?;
                Ok((with_microseconds(accessed, us)?, with_microseconds(modified, more_us)?))
            }
            Self::Nanoseconds => {
                let [accessed, ns, modified, more_ns] = words(caller, address)?;
                let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
                Ok((time(accessed, ns), time(modified, more_ns)))
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn whole(tv_sec: i64) -> Timespec {
    Timespec { tv_sec, tv_nsec: 0 }
}

#[cfg(target_arch = "x86_64")]
fn with_microseconds(tv_sec: i64, microseconds: i64) -> Result<Timespec, Errno> {
    match microseconds {
        0..1_000_000 => Ok(Timespec { tv_sec, tv_nsec: microseconds * 1000 }),
        _ => Err(Errno::INVAL),
    }
}

fn words<const COUNT: usize>(caller: &Caller<'_>, address: u64) -> Result<[i64; COUNT], Errno> {
    let bytes = caller.bytes(address, COUNT * size_of::<i64>())?;
    let mut words = bytes.as_chunks().0.iter().map(|&bytes| i64::from_ne_bytes(bytes));
    Ok(std::array::from_fn(|_| words.next().unwrap_or_default()))
}
