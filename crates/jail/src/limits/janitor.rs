//! The process that clears up after a keeper, however that ended.

use std::os::fd::{AsFd, OwnedFd};

use redoma_sys::{Cloned, Errno, Namespaces, NoReturn};
use rustix::pipe::PipeFlags;
use rustix::process::{DumpableBehavior, Signal, WaitId, WaitIdOptions};

/// The other end of the janitor: as long as it is held, nothing is cleared away.
#[derive(Debug)]
pub(super) struct Janitor {
    process: OwnedFd,
    line: OwnedFd,
}

impl Janitor {
    /// Forks a process that waits until this value, and with it the keeper, is gone, and then does `chores`.
    pub(super) fn start(chores: impl FnOnce()) -> Result<Self, Errno> {
        let (watched, line) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        match redoma_sys::clone_process(Namespaces::NONE)? {
            Cloned::Parent { pidfd, .. } => Ok(Self { process: pidfd, line }),
            Cloned::Child => {
                let _never = NoReturn;
                // A janitor that held the line itself would wait for ever.
                let ready = redoma_sys::close_all_but(&[watched.as_fd()]).and_then(|()| withdraw());
                if ready.is_ok() {
                    wait_for_end(&watched);
                    chores();
                }
                redoma_sys::exit_now(i32::from(ready.is_err()))
            }
        }
    }

    /// Has it do its chores now and waits for the end; whether it did them.
    pub(super) fn dismiss(self) -> bool {
        drop(self.line);
        let ended = rustix::io::retry_on_intr(|| {
            rustix::process::waitid(WaitId::PidFd(self.process.as_fd()), WaitIdOptions::EXITED)
        });
        ended.ok().flatten().is_some_and(|status| status.exit_status() == Some(0))
    }
}

/// Takes it out of reach of what ends the keeper, and of whoever could read the keeper's memory in its copy.
fn withdraw() -> Result<(), Errno> {
    rustix::process::setsid()?;
    redoma_sys::block_signals(&catchable())?;
    rustix::thread::set_name(c"redoma-janitor")?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // It must keep no folder busy, and no reader of the keeper's output waiting.
    rustix::process::chdir(c"/")?;
    crate::spawn::replace_standard_streams()
}

fn catchable() -> Vec<Signal> {
    const STANDARD: std::ops::RangeInclusive<i32> = 1..=31;
    STANDARD.filter_map(Signal::from_named_raw).collect()
}

/// The keeper never writes: what comes is the end of the file, once no process holds the other end.
fn wait_for_end(line: &OwnedFd) {
    let _ = rustix::io::retry_on_intr(|| rustix::io::read(line, &mut [0u8; 1]));
}
