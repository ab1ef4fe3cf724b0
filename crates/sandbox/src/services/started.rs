//! A service that was started, or had been.

use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};

use super::plan::Planned;
use crate::attach;
use crate::driver::{Command, Driver, DriverError, Happening, Info, Process, Restart, State};

/// It.
pub(super) struct Started<'p> {
    pub(super) planned: &'p Planned,
    pub(super) info: Info,
    /// What was started just now; it goes on without us.
    process: Option<Box<dyn Process>>,
    /// What that ended with, once it has.
    pub(super) ended: Option<i32>,
    /// Whether anything was to be started at all.
    pub(super) has_command: bool,
    /// Whether it was found running.
    pub(super) was_running: bool,
}

impl<'p> Started<'p> {
    /// Starts what the service is, unless it runs already.
    pub(super) fn start(driver: &dyn Driver, planned: &'p Planned, info: Info) -> Result<Self, DriverError> {
        let argv = planned.service.argv(&info.entrypoint, &info.cmd);
        let mut started = Self {
            planned,
            info,
            process: None,
            ended: None,
            has_command: !argv.is_empty(),
            was_running: false,
        };
        if argv.is_empty() {
            return Ok(started);
        }
        if started.runs(driver, &argv) {
            started.was_running = true;
            return Ok(started);
        }
        let id = started.info.spec.id;
        if started.info.state == State::Running && planned.service.restart != Restart::No {
            // Its keeper is about to start it again: then it would run twice.
            driver.stop(&id)?;
        }
        let command = Command {
            argv: argv.into_iter().map(Into::into).collect(),
            detached: true,
            restart: planned.service.restart,
            log: Some(planned.name.clone()),
            ..Command::default()
        };
        let null = attach::nowhere()?;
        let null = null.as_fd();
        started.process = Some(driver.exec(&id, &command, &attach::on([null; 3]))?);
        Ok(started)
    }

    /// By its history where the driver has one: something else may run in the sandbox. Arguments are not compared, since the
    /// record redacts them.
    fn runs(&self, driver: &dyn Driver, argv: &[String]) -> bool {
        if !matches!(self.info.state, State::Running | State::Paused) {
            return false;
        }
        let Some(Ok(past)) = driver.histories().map(|histories| histories.history(&self.info.spec.id)) else {
            return true;
        };
        let same = |past: &[String]| past.len() == argv.len() && past.first() == argv.first();
        past.iter().any(|past| past.exit.is_none() && same(&past.argv))
    }

    /// Waits for so long, or until it ends.
    pub(super) fn pause(&mut self, span: Duration) {
        let Some(process) = self.process.as_mut().filter(|_| self.ended.is_none()) else {
            std::thread::sleep(span);
            return;
        };
        let timeout = Timespec::try_from(span).unwrap_or_default();
        let ready = {
            let events = process.events();
            rustix::event::poll(&mut [PollFd::from_borrowed_fd(events, PollFlags::IN)], Some(&timeout))
        };
        if ready.is_ok_and(|ready| ready > 0) {
            self.ended = match process.event() {
                Ok(Happening::Ended(ending)) => Some(attach::exit_code(ending)),
                Ok(Happening::TimedOut) => Some(124),
                Ok(Happening::Stopped) => None,
                // The sandbox ended under it.
                Err(_) => Some(137),
            };
        }
    }

    /// What it ended with, by the driver's history where it was not started just now.
    pub(super) fn exit(&self, driver: &dyn Driver) -> Option<i32> {
        if self.process.is_some() {
            return self.ended;
        }
        let past = driver.histories()?.history(&self.info.spec.id).ok()?;
        past.last().and_then(|past| past.exit)
    }
}
