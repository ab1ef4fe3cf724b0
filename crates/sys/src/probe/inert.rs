use rustix::io::Errno;

use super::{DEAD, outcome};

/// A call with arguments that can have no effect.
#[derive(Clone, Copy, Debug)]
pub struct Inert {
    /// The call's name in its man page, with the operation where there are several.
    pub name: &'static str,
    number: libc::c_long,
    arguments: [usize; 6],
    /// Why these arguments change nothing, whoever makes the call.
    pub reason: &'static str,
}

/// A descriptor that is never open.
const NO_FD: usize = -1_isize as usize;
/// All flags at once, undefined ones included.
const ALL_FLAGS: usize = u32::MAX as usize;

const fn inert(
    name: &'static str,
    number: libc::c_long,
    arguments: [usize; 6],
    reason: &'static str,
) -> Inert {
    Inert { name, number, arguments, reason }
}

/// Every inert call, by name. Order is that of the red-team table.
pub const INERT: &[Inert] = &[
    inert("bpf", libc::SYS_bpf, [ALL_FLAGS, 0, 0, 0, 0, 0], "no such command"),
    inert("perf_event_open", libc::SYS_perf_event_open, [0, 0, NO_FD, NO_FD, 0, 0], "null attribute"),
    // UFFD_USER_MODE_ONLY, which needs no privilege, with a flag that doesn't exist.
    inert("userfaultfd", libc::SYS_userfaultfd, [0x4000_0001, 0, 0, 0, 0, 0], "no such flag"),
    inert("io_uring_setup", libc::SYS_io_uring_setup, [0, 0, 0, 0, 0, 0], "null parameters"),
    inert("io_uring_enter", libc::SYS_io_uring_enter, [NO_FD, 0, 0, 0, 0, 0], "no descriptor"),
    inert("io_uring_register", libc::SYS_io_uring_register, [NO_FD, 0, 0, 0, 0, 0], "no descriptor"),
    // KEYCTL_READ of serial 0.
    inert("keyctl", libc::SYS_keyctl, [11, 0, 0, 0, 0, 0], "there is no key 0"),
    inert("add_key", libc::SYS_add_key, [0, 0, 0, 0, 0, 0], "null type"),
    inert("request_key", libc::SYS_request_key, [0, 0, 0, 0, 0, 0], "null type"),
    inert("kexec_load", libc::SYS_kexec_load, [0, 0, 0, ALL_FLAGS, 0, 0], "no such flag"),
    inert("init_module", libc::SYS_init_module, [0, 0, 0, 0, 0, 0], "an empty image"),
    inert("finit_module", libc::SYS_finit_module, [NO_FD, 0, 0, 0, 0, 0], "no descriptor"),
    inert("delete_module", libc::SYS_delete_module, [0, 0, 0, 0, 0, 0], "null name"),
    inert("reboot", libc::SYS_reboot, [0, 0, 0, 0, 0, 0], "without its magic numbers"),
    inert("swapon", libc::SYS_swapon, [DEAD, 0, 0, 0, 0, 0], "unreadable path"),
    inert("swapoff", libc::SYS_swapoff, [DEAD, 0, 0, 0, 0, 0], "unreadable path"),
    // A null path would turn accounting off; a dead one is only unreadable.
    inert("acct", libc::SYS_acct, [DEAD, 0, 0, 0, 0, 0], "unreadable path"),
    inert("quotactl", libc::SYS_quotactl, [ALL_FLAGS, 0, 0, 0, 0, 0], "no such quota type"),
    // SYSLOG_ACTION_SIZE_BUFFER.
    inert("syslog", libc::SYS_syslog, [10, 0, 0, 0, 0, 0], "asks for the buffer's size"),
    inert("settimeofday", libc::SYS_settimeofday, [0, 0, 0, 0, 0, 0], "neither time nor zone given"),
    inert("sethostname", libc::SYS_sethostname, [0, NO_FD, 0, 0, 0, 0], "a negative length"),
    inert("setdomainname", libc::SYS_setdomainname, [0, NO_FD, 0, 0, 0, 0], "a negative length"),
    inert("mount", libc::SYS_mount, [0, 0, 0, 0, 0, 0], "null target"),
    inert("umount2", libc::SYS_umount2, [DEAD, 0, 0, 0, 0, 0], "unreadable path"),
    inert("pivot_root", libc::SYS_pivot_root, [DEAD, DEAD, 0, 0, 0, 0], "unreadable paths"),
    inert("fsmount", libc::SYS_fsmount, [NO_FD, 0, 0, 0, 0, 0], "no descriptor"),
    inert("fspick", libc::SYS_fspick, [NO_FD, DEAD, 0, 0, 0, 0], "unreadable path"),
    inert("fsconfig", libc::SYS_fsconfig, [NO_FD, 0, 0, 0, 0, 0], "no descriptor"),
    inert("move_mount", libc::SYS_move_mount, [NO_FD, DEAD, NO_FD, DEAD, 0, 0], "unreadable paths"),
    // 32 is the size of the first `struct mount_attr`, so that the pointer is what fails.
    inert("mount_setattr", libc::SYS_mount_setattr, [NO_FD, DEAD, 0, DEAD, 32, 0], "unreadable path"),
    inert("memfd_secret", libc::SYS_memfd_secret, [ALL_FLAGS, 0, 0, 0, 0, 0], "no such flag"),
    inert("setns", libc::SYS_setns, [NO_FD, 0, 0, 0, 0, 0], "no descriptor"),
    #[cfg(target_arch = "x86_64")]
    inert("ioperm", libc::SYS_ioperm, [0x80, 1, 0, 0, 0, 0], "gives up a port that it has not"),
];

/// Makes the inert call of this name.
///
/// # Errors
/// What the call says; `ENOENT` for a name that isn't in [`INERT`].
pub fn inert_call(name: &str) -> Result<i64, Errno> {
    let call = INERT.iter().find(|call| call.name == name).ok_or(Errno::NOENT)?;
    let [a, b, c, d, e, f] = call.arguments;
    // SAFETY: number and arguments come from the table above. No entry holds a pointer that the kernel
    // could write through (null or never mapped), and none creates a descriptor or changes the process.
    outcome(unsafe { libc::syscall(call.number, a, b, c, d, e, f) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_inert_calls_are_unique() {
        let mut names: Vec<_> = INERT.iter().map(|call| call.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), INERT.len());
    }

    #[test]
    fn no_inert_call_can_succeed_for_its_effect() {
        // All but these three fail on their arguments whoever makes them; these three succeed at nothing.
        let succeed_at_nothing = ["syslog", "settimeofday", "ioperm"];
        for call in INERT {
            let result = inert_call(call.name);
            assert!(result.is_err() || succeed_at_nothing.contains(&call.name), "{}: {result:?}", call.name);
        }
    }
}
