//! Telling whether a service does its work.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::file::{Health, Service};
use crate::attach;
use crate::driver::{Command, Driver, DriverError, Past, SandboxId, State};
use crate::run::RunEnd;

/// What became of waiting for a service.
pub(super) enum Waited {
    Healthy,
    /// Its command ended before it did its work, with this code.
    Ended(Option<i32>),
    TooLate,
}

/// Waits until a service that was started does its work.
pub(super) fn wait(driver: &dyn Driver, id: &SandboxId, service: &Service) -> Result<Waited, DriverError> {
    let Health { interval, timeout, .. } = service.health;
    let deadline = Instant::now() + timeout;
    loop {
        if let Some(code) = ended(driver, id)? {
            return Ok(Waited::Ended(code));
        }
        if works(driver, id, service)? {
            return Ok(Waited::Healthy);
        }
        if Instant::now() >= deadline {
            return Ok(Waited::TooLate);
        }
        std::thread::sleep(interval);
    }
}

/// Whether nothing of it runs any more, and how its last command ended.
fn ended(driver: &dyn Driver, id: &SandboxId) -> Result<Option<Option<i32>>, DriverError> {
    if driver.info(id)?.state == State::Stopped {
        return Ok(Some(None));
    }
    let Some(last) = last(driver, id)? else { return Ok(None) };
    Ok(last.exit.map(Some))
}

/// Its own command; what health is told by comes after it.
pub(super) fn last(driver: &dyn Driver, id: &SandboxId) -> Result<Option<Past>, DriverError> {
    let Some(histories) = driver.histories() else { return Ok(None) };
    Ok(histories.history(id)?.into_iter().rfind(|past| past.argv.first().is_none_or(|first| first != PROBE)))
}

/// The first word of commands that only look.
const PROBE: &str = "/usr/bin/env";

fn works(driver: &dyn Driver, id: &SandboxId, service: &Service) -> Result<bool, DriverError> {
    match (&service.health.command, service.ports.first()) {
        (Some(command), _) => {
            let argv = std::iter::once(PROBE).chain(command.iter().map(String::as_str));
            let command = Command {
                argv: argv.map(Into::into).collect(),
                timeout: Some(service.health.timeout),
                ..Command::default()
            };
            let null = attach::nowhere()?;
            let streams = attach::on([std::os::fd::AsFd::as_fd(&null); 3]);
            let mut process = driver.exec(id, &command, &streams)?;
            let end = attach::wait(process.as_mut())?;
            Ok(matches!(end, RunEnd::Command(redoma_jail::Ending::Exited(0))))
        }
        (None, Some(port)) => Ok(answers(port.outside.get())),
        (None, None) => Ok(true),
    }
}

/// The gateway takes every connection to a published port, and drops those that nobody takes inside: who answers, or is
/// still there a moment later, is somebody.
fn answers(port: u16) -> bool {
    const A_MOMENT: Duration = Duration::from_millis(200);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let Ok(mut stream) = TcpStream::connect_timeout(&address, A_MOMENT) else { return false };
    if stream.set_read_timeout(Some(A_MOMENT)).is_err() {
        return false;
    }
    match stream.read(&mut [0]) {
        Ok(read) => read > 0,
        Err(error) => matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut),
    }
}
