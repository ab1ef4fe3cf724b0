//! How much a sandbox has changed on its disk, told now and then by a process of its own: no file system here gives an ordinary
//! user a quota for a folder. It runs as user 0 of the sandbox's users, or it could not look into folders of others.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use redoma_jail::{Failure, Step};
use redoma_sys::{Cloned, Namespaces, NoReturn};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Signal, WaitId, WaitIdOptions};

use super::mapped;

/// A process that measures. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Gauge {
    process: OwnedFd,
    told: OwnedFd,
    limit: u64,
}

/// At least this long between two looks.
const PAUSE: Duration = Duration::from_millis(500);
/// Looking takes at most this part of the time.
const SHARE: u32 = 20;
/// What nobody counts: a sandbox with more is over its limit.
const ENTRIES: u64 = 4 << 20;

impl Gauge {
    /// Begins to measure what lies in `folders`. The process must have no other threads.
    pub(crate) fn start(folders: &[PathBuf], limit: u64) -> io::Result<Self> {
        let (told, tell) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        match redoma_sys::clone_process(Namespaces::NONE)? {
            Cloned::Parent { pidfd, .. } => Ok(Self { process: pidfd, told, limit }),
            Cloned::Child => {
                let _never = NoReturn;
                if leave(&tell).is_ok() {
                    measure_as_owner(folders, &tell);
                }
                redoma_sys::exit_now(0)
            }
        }
    }

    /// The limit in bytes, if it has been passed by what was told since the last time.
    pub(crate) fn passed(&self) -> Option<u64> {
        let mut bytes = [0u8; 4096];
        let read = rustix::io::read(&self.told, &mut bytes).ok()?;
        let last = bytes[..read].chunks_exact(8).next_back()?;
        let used = u64::from_le_bytes(last.try_into().ok()?);
        (used > self.limit).then_some(self.limit)
    }
}

impl AsFd for Gauge {
    /// Readable when something was told.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        let _ = rustix::process::pidfd_send_signal(&self.process, Signal::KILL);
        let _ = rustix::process::waitid(WaitId::PidFd(self.process.as_fd()), WaitIdOptions::EXITED);
    }
}

/// It dies with the keeper, and holds nothing of it.
fn leave(tell: &OwnedFd) -> Result<(), Errno> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    redoma_sys::close_all_but(&[tell.as_fd()])
}

fn measure_as_owner(folders: &[PathBuf], tell: &OwnedFd) {
    if mapped::identity(true).is_err() {
        return measure(folders, tell);
    }
    let _ = mapped::act(|| {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
            .map_err(|errno| Failure::new(Step::Guard, errno))?;
        measure(folders, tell);
        Ok(())
    });
}

fn measure(folders: &[PathBuf], tell: &OwnedFd) {
    loop {
        let began = Instant::now();
        let there: Vec<PathBuf> = folders.iter().filter(|folder| folder.is_dir()).cloned().collect();
        // What is being written while it is counted is counted the next time.
        if let Ok(size) = redoma_layers::size(&there, ENTRIES) {
            let used = if size.is_whole { size.bytes } else { u64::MAX };
            if rustix::io::write(tell, &used.to_le_bytes()) == Err(Errno::PIPE) {
                return;
            }
        }
        std::thread::sleep(PAUSE.max(began.elapsed() * SHARE));
    }
}

/// What a sandbox changes, by its folder.
pub(crate) fn changed(folder: &Path, mounts: usize) -> Vec<PathBuf> {
    let mounts = (0..mounts).map(|number| folder.join("mounts").join(number.to_string()).join("upper"));
    std::iter::once(folder.join("upper")).chain(mounts).collect()
}
