//! Making system calls on behalf of commands, where only a look at their arguments tells whether they may be made
//! (landlock tier).
//!
//! The filter has such a call wait, and init, which is not confined, answers. It reads the arguments once, judges the
//! object that they lead to and acts on that object: nothing that changes meanwhile changes what was judged. The
//! kernel is never told to carry the call out itself, since it would read the arguments again. See
//! `seccomp_unotify(2)`.

use std::os::fd::OwnedFd;

use redoma_sys::{Errno, Listener};
use rustix::event::{PollFd, PollFlags};

use crate::attributes::{self, Granted};
use crate::blueprint::Blueprint;
use crate::caller::Caller;
use crate::error::Failure;
use crate::sockets::{self, Sockets};

/// Answers the calls of every command that was started.
pub(crate) struct Supervisor {
    makers: Makers,
    listeners: Vec<Listener>,
}

/// Who makes the calls.
struct Makers {
    granted: Granted,
    sockets: Option<Sockets>,
}

impl Supervisor {
    pub(crate) fn prepare(blueprint: &Blueprint) -> Result<Self, Failure> {
        let makers = Makers { granted: Granted::open(blueprint)?, sockets: Sockets::prepare(blueprint) };
        Ok(Self { makers, listeners: Vec::new() })
    }

    /// Takes on a command by its filter's listener.
    pub(crate) fn watch(&mut self, listener: OwnedFd) -> Result<(), Errno> {
        self.listeners.push(Listener::new(listener)?);
        Ok(())
    }

    /// What to wait for, in the order in which [`Self::answer`] wants the events.
    pub(crate) fn poll_fds(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN))
    }

    /// Answers one call of each command that has any, so that none waits for all those of another.
    pub(crate) fn answer(&mut self, events: &[PollFlags]) {
        let mut events = events.iter();
        let Self { makers, listeners } = self;
        listeners.retain(|listener| {
            let events = events.next().copied().unwrap_or(PollFlags::empty());
            // A listener that nobody is left to use, or that fails, is closed: whatever waits there fails.
            if events.contains(PollFlags::IN) {
                answer_one(listener, makers).is_ok()
            } else {
                events.is_empty()
            }
        });
    }
}

fn answer_one(listener: &Listener, makers: &Makers) -> Result<(), Errno> {
    let Some(notification) = listener.receive()? else { return Ok(()) };
    let outcome = Caller::new(listener, &notification).and_then(|caller| makers.make(&caller));
    match listener.answer(&notification, outcome) {
        // Killed while it waited.
        Err(Errno::NOENT) => Ok(()),
        sent => sent,
    }
}

impl Makers {
    /// Each family of calls that `data/seccomp.toml` has supervised; a call of none is refused.
    fn make(&self, caller: &Caller<'_>) -> Result<(), Errno> {
        if let Some(read) = attributes::reader(caller.call()) {
            return read(caller)?.make(caller, &self.granted);
        }
        match (sockets::reader(caller.call()), &self.sockets) {
            (Some(read), Some(sockets)) => sockets.make(&read(caller)?, caller),
            _ => Err(Errno::PERM),
        }
    }
}
