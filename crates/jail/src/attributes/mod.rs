//! Changing attributes of files for commands of the landlock tier: mode, owner, times, extended attributes.
//!
//! Landlock lets them be changed on every file that the user owns, whether it is granted or not.

mod change;
mod granted;
mod target;

use redoma_sys::{Errno, nr};

use crate::caller::Caller;
use change::{Change, Clock};
use target::Target;

pub(crate) use granted::Granted;

/// A call, read from its caller.
pub(crate) struct Request {
    target: Target,
    change: Change,
}

/// Reads the arguments of one call.
type Reader = fn(&Caller<'_>) -> Result<Request, Errno>;

impl Request {
    fn new(target: Result<Target, Errno>, change: Result<Change, Errno>) -> Result<Self, Errno> {
        Ok(Self { target: target?, change: change? })
    }

    /// Judges the object and changes it: the same one, by the same descriptor.
    pub(crate) fn make(&self, caller: &Caller<'_>, granted: &Granted) -> Result<(), Errno> {
        let object = self.target.open(caller)?;
        granted.permit_change(&object)?;
        self.change.make(&object)
    }
}

/// How the arguments of `call` are read; none for a call that changes no attribute. The numbers are the arguments'
/// positions.
pub(crate) fn reader(call: nr::c_long) -> Option<Reader> {
    let reader: Reader = match call {
        #[cfg(target_arch = "x86_64")]
        nr::SYS_chmod => |c| Request::new(Target::path(c, 0), Change::mode(c, 1)),
        nr::SYS_fchmod => |c| Request::new(Target::descriptor(c, 0), Change::mode(c, 1)),
        nr::SYS_fchmodat => |c| Request::new(Target::at(c, 0, 0), Change::mode(c, 2)),
        nr::SYS_fchmodat2 => |c| Request::new(Target::at(c, 0, c.int(3)), Change::mode(c, 2)),

        #[cfg(target_arch = "x86_64")]
        nr::SYS_chown => |c| Request::new(Target::path(c, 0), Change::owner(c, 1)),
        #[cfg(target_arch = "x86_64")]
        nr::SYS_lchown => |c| Request::new(Target::link(c, 0), Change::owner(c, 1)),
        nr::SYS_fchown => |c| Request::new(Target::descriptor(c, 0), Change::owner(c, 1)),
        nr::SYS_fchownat => |c| Request::new(Target::at(c, 0, c.int(4)), Change::owner(c, 2)),

        #[cfg(target_arch = "x86_64")]
        nr::SYS_utime => |c| Request::new(Target::path(c, 0), Change::times(c, 1, Clock::Seconds)),
        #[cfg(target_arch = "x86_64")]
        nr::SYS_utimes => |c| Request::new(Target::path(c, 0), Change::times(c, 1, Clock::Microseconds)),
        #[cfg(target_arch = "x86_64")]
        nr::SYS_futimesat => {
            |c| Request::new(Target::at_or_descriptor(c, 0, 0), Change::times(c, 2, Clock::Microseconds))
        }
        nr::SYS_utimensat => |c| {
            Request::new(Target::at_or_descriptor(c, 0, c.int(3)), Change::times(c, 2, Clock::Nanoseconds))
        },

        nr::SYS_setxattr => |c| Request::new(Target::path(c, 0), Change::attribute(c, 1)),
        nr::SYS_lsetxattr => |c| Request::new(Target::link(c, 0), Change::attribute(c, 1)),
        nr::SYS_fsetxattr => |c| Request::new(Target::descriptor(c, 0), Change::attribute(c, 1)),
        nr::SYS_removexattr => |c| Request::new(Target::path(c, 0), Change::no_attribute(c, 1)),
        nr::SYS_lremovexattr => |c| Request::new(Target::link(c, 0), Change::no_attribute(c, 1)),
        nr::SYS_fremovexattr => |c| Request::new(Target::descriptor(c, 0), Change::no_attribute(c, 1)),
        _ => return None,
    };
    Some(reader)
}
