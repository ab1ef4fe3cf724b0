//! What the services of a group wrote.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::sync_channel;
use std::thread;

use crate::driver::{Driver, DriverError, Info, SandboxId};

/// A line of one service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Whose.
    pub service: String,
    /// With its line feed, unless it is cut.
    pub bytes: Vec<u8>,
}

/// A longer line comes in pieces.
const LONGEST: u64 = 64 << 10;

/// Tells every line of these services: with `follow` as they come, until all have ended; else one service after the other.
///
/// # Errors
/// [`DriverError`], also where the driver keeps no logs; and what `tell` says.
pub fn follow<E: From<DriverError>>(
    of: &[(&dyn Driver, Info)],
    follow: bool,
    tell: &mut dyn FnMut(Line) -> Result<(), E>,
) -> Result<(), E> {
    let name =
        |info: &Info| info.spec.labels.get(&crate::driver::Label::Service).cloned().unwrap_or_default();
    if !follow {
        for (driver, info) in of {
            let service = name(info);
            lines(open(*driver, &info.spec.id, false)?, |bytes| {
                tell(Line { service: service.clone(), bytes })
            })?;
        }
        return Ok(());
    }
    // Enough for what comes while one line is shown.
    let (sender, receiver) = sync_channel(64);
    for (driver, info) in of {
        // Fails before any thread waits for something that never comes.
        drop(open(*driver, &info.spec.id, false)?);
    }
    thread::scope(|scope| {
        for (driver, info) in of {
            let (sender, service) = (sender.clone(), name(info));
            scope.spawn(move || {
                let Ok(text) = open(*driver, &info.spec.id, true) else { return };
                // Nobody listens any more: that is the end.
                let _ = lines(text, |bytes| sender.send(Line { service: service.clone(), bytes }));
            });
        }
        drop(sender);
        // Moved in, so that threads that still send are told when this ends early.
        let receiver = receiver;
        receiver.iter().try_for_each(tell)
    })
}

fn open(driver: &dyn Driver, id: &SandboxId, follow: bool) -> Result<Box<dyn Read>, DriverError> {
    let logging = driver.logging().ok_or_else(|| DriverError::Unsupported {
        driver: driver.name(),
        what: "show logs".into(),
        hint: "redoma ps".into(),
    })?;
    logging.logs(id, follow)
}

fn lines<E>(text: impl Read, mut tell: impl FnMut(Vec<u8>) -> Result<(), E>) -> Result<(), E> {
    let mut text = BufReader::new(text);
    loop {
        let mut line = Vec::new();
        match text.by_ref().take(LONGEST).read_until(b'\n', &mut line) {
            Ok(1..) => tell(line)?,
            // A log that ends is no failure of whoever reads it.
            Ok(0) | Err(_) => return Ok(()),
        }
    }
}

/// The last lines of a sandbox's log, as far as there is one.
#[must_use]
pub fn last_lines(driver: &dyn Driver, id: &SandboxId, count: usize) -> Vec<String> {
    const WIDEST: usize = 300;
    let Ok(text) = open(driver, id, false) else { return Vec::new() };
    let mut last: VecDeque<String> = VecDeque::new();
    let _ = lines(text, |bytes| -> Result<(), ()> {
        if last.len() == count {
            last.pop_front();
        }
        let line = String::from_utf8_lossy(&bytes);
        last.push_back(line.trim_end().chars().take(WIDEST).collect());
        Ok(())
    });
    last.into()
}
