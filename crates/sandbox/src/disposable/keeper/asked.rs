//! What a keeper is asked, and what it answers.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use redoma_audit::event::Phase;
use redoma_sys::Errno;

use super::Keeper;
use crate::disposable::control::{Ask, Refusal, Tell};
use crate::disposable::raise::start;
use crate::disposable::store;
use crate::error::RunError;

impl Keeper {
    pub(super) fn hear(&mut self, id: u64) -> Result<(), RunError> {
        let Some(client) = self.clients.get(&id) else { return Ok(()) };
        match client.channel.receive() {
            Ok(Some((ask, along))) => self.answer(id, ask, along),
            Ok(None) | Err(_) => self.lose(id),
        }
    }

    /// A client is gone: what it waited for ends with it.
    fn lose(&mut self, id: u64) -> Result<(), RunError> {
        let client = self.clients.remove(&id);
        if let Some(number) = client.and_then(|client| client.command) {
            self.resume()?;
            self.jail.end_command(number)?;
        }
        Ok(())
    }

    fn answer(&mut self, id: u64, ask: Ask, along: Vec<OwnedFd>) -> Result<(), RunError> {
        match ask {
            Ask::Exec(exec) => {
                self.resume()?;
                self.idle_until = None;
                self.claimed.touch();
                let root = self.jail.root();
                let started = self.commands.prepare(*exec, along, id, root).and_then(|(exec, streams)| {
                    let streams: Vec<BorrowedFd<'_>> = streams.iter().map(AsFd::as_fd).collect();
                    self.jail.start_command(exec, &streams).map_err(start)
                });
                started.or_else(|error| self.tell(id, &Tell::Failed(Refusal::of(&error)), &[]))
            }
            Ask::Signal(signal) => {
                let command = self.clients.get(&id).and_then(|client| client.command);
                command.map_or(Ok(()), |number| Ok(self.jail.signal(number, signal, true)?))
            }
            Ask::Pause => {
                self.pause()?;
                self.tell(id, &Tell::Done, &[])
            }
            Ask::Resume => {
                self.resume()?;
                self.tell(id, &Tell::Done, &[])
            }
            Ask::Root => {
                let root = self.jail.root().as_ref().map(BorrowedFd::try_clone_to_owned).transpose();
                let root = root.map_err(|_| RunError::Wait(Errno::MFILE))?;
                let along: Vec<BorrowedFd<'_>> = root.iter().map(AsFd::as_fd).collect();
                self.tell(id, &Tell::Done, &along)
            }
            Ask::Dial(port) => self.dial(id, port),
            Ask::Retire if self.idle_until.is_some() && self.commands.is_empty() => {
                self.over = true;
                Ok(())
            }
            Ask::Retire => self.tell(id, &Tell::Busy, &[]),
            Ask::Stop => {
                self.over = true;
                Ok(())
            }
        }
    }

    fn dial(&mut self, id: u64, port: u16) -> Result<(), RunError> {
        match self.jail.dial(port) {
            Ok(socket) => self.tell(id, &Tell::Done, &[socket.as_fd()]),
            Err(error) => self.tell(id, &Tell::Failed(Refusal::of(&start(error))), &[]),
        }
    }

    pub(super) fn tell(&mut self, id: u64, what: &Tell, along: &[BorrowedFd<'_>]) -> Result<(), RunError> {
        let told = self.clients.get(&id).map(|client| client.channel.send(what, along));
        // It is gone, or does not listen.
        if told.is_some_and(|told| told.is_err()) { self.lose(id) } else { Ok(()) }
    }

    pub(super) fn pause(&mut self) -> Result<(), RunError> {
        if !std::mem::replace(&mut self.paused, true) {
            self.jail.freeze(true)?;
            self.log.phase(Phase::Paused)?;
            let _ = fs::write(self.claimed.folder.join(store::PAUSED), []);
        }
        Ok(())
    }

    pub(super) fn resume(&mut self) -> Result<(), RunError> {
        if std::mem::take(&mut self.paused) {
            self.jail.freeze(false)?;
            self.log.phase(Phase::Resumed)?;
            let _ = fs::remove_file(self.claimed.folder.join(store::PAUSED));
        }
        Ok(())
    }
}
