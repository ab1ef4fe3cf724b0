//! Doing something in a child process and bringing back how it went.

use redoma_sys::{Cloned, Errno, Namespaces, NoReturn};
use rustix::process::WaitOptions;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::channel::Channel;
use crate::error::{Failure, InStep, Step};
use crate::identity::Identity;

/// Does something as the user 0 of a user namespace with ranges: with the rights over files of the users in them that their
/// sandbox has. What the child changes about its own process ends with it.
///
/// # Errors
/// [`Failure`] of `act`, or at [`Step::MapUser`] and [`Step::Fork`].
pub fn as_root_of<T: Serialize + DeserializeOwned>(
    identity: &Identity,
    act: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let (ours, theirs) = Channel::pair().step(Step::Fork)?;
    match redoma_sys::clone_process(Namespaces::USER).step(Step::Fork)? {
        Cloned::Child => {
            let _never = NoReturn;
            drop(ours);
            let mapped = theirs.receive::<()>().and_then(|told| told.ok_or(Errno::PIPE));
            let done = mapped.and_then(|_| identity.map()).step(Step::MapUser).and_then(|()| act());
            let _ = theirs.send(&done, &[]);
            redoma_sys::exit_now(0)
        }
        Cloned::Parent { pid, .. } => {
            drop(theirs);
            let mapped = identity.map_from_outside(pid);
            if mapped.is_ok() {
                ours.send(&(), &[]).step(Step::Fork)?;
            }
            let done = ours.receive::<Result<T, Failure>>();
            drop(ours);
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
            mapped.step(Step::MapUser)?;
            done.ok().flatten().map_or(Err(Failure::new(Step::Fork, Errno::PIPE)), |(done, _)| done)
        }
    }
}

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
