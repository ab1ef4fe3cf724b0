use redoma_sys::Errno;
use rustix::fs::{CWD, Mode, OFlags};

/// Who the commands are: one user and one group, which is all that a process may map without privilege.
/// See `user_namespaces(7)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    user: u32,
    group: u32,
    as_root: bool,
}

impl Identity {
    /// The calling user, under the same numbers inside, or as user 0 if `as_root`.
    pub fn of_caller(as_root: bool) -> Self {
        let user = rustix::process::geteuid().as_raw();
        let group = rustix::process::getegid().as_raw();
        Self { user, group, as_root }
    }

    /// Maps the identity into the user namespace that this process was just born into, where it has no id yet.
    pub(crate) fn map(self) -> Result<(), Errno> {
        let inside = |id: u32| if self.as_root { 0 } else { id };
        write("/proc/self/setgroups", "deny")?;
        write("/proc/self/uid_map", &format!("{} {} 1", inside(self.user), self.user))?;
        write("/proc/self/gid_map", &format!("{} {} 1", inside(self.group), self.group))
    }
}

fn write(path: &str, text: &str) -> Result<(), Errno> {
    let file = rustix::fs::openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, text.as_bytes()).map(drop)
}
