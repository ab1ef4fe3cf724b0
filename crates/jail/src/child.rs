//! Doing something in a child process and bringing back how it went.

use redoma_sys::{Cloned, Errno, Namespaces, NoReturn};
use rustix::process::WaitOptions;

use crate::error::{Failure, InStep, Step};

/// Runs `attempt` in a child born into `namespaces`. What it changes about its own process ends with it.
pub(crate) fn in_child(
    namespaces: Namespaces,
    attempt: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (told, tell) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).step(Step::Fork)?;
    match redoma_sys::clone_process(namespaces).step(Step::Fork)? {
        Cloned::Child => {
            let _never = NoReturn;
            let outcome = attempt();
            let _ = rustix::io::write(&tell, &postcard::to_allocvec(&outcome).unwrap_or_default());
            redoma_sys::exit_now(0)
        }
        Cloned::Parent { pid, .. } => {
            drop(tell);
            let mut bytes = [0u8; 8192];
            let length =
                rustix::io::retry_on_intr(|| rustix::io::read(&told, &mut bytes)).step(Step::Fork)?;
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
            // No word at all is no success.
            postcard::from_bytes(&bytes[..length]).unwrap_or(Err(Failure::new(Step::Fork, Errno::PIPE)))
        }
    }
}
