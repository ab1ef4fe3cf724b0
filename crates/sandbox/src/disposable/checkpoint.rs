//! Checkpoints: refused, with the reason that holds here.
//!
//! CRIU brings back processes under the process that asks for it. A sandbox's init is a child of its keeper, holds a socket to it
//! and is closed to tracing, so that nobody inside reads the keeper's memory; CRIU needs all of that otherwise.

use std::process::Command;

use super::Native;
use crate::driver::{Checkpoints, DriverError, DriverName, SandboxId};

impl Checkpoints for Native {
    fn checkpoint(&self, _: &SandboxId) -> Result<(), DriverError> {
        Err(refusal("checkpoint"))
    }

    fn restore(&self, _: &SandboxId) -> Result<(), DriverError> {
        Err(refusal("restore"))
    }
}

fn refusal(what: &str) -> DriverError {
    let reason = match Command::new("criu").arg("check").output() {
        Err(_) => "the program criu is not installed here, and".to_owned(),
        Ok(output) if !output.status.success() => {
            let said = String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned();
            format!("criu says that this kernel cannot ({said}), and")
        }
        Ok(_) => String::new(),
    };
    DriverError::Unsupported {
        driver: DriverName::Native,
        what: format!(
            "{what} processes: {reason} its init is tied to its keeper and closed to tracing, which criu cannot bring back"
        ),
        hint: "freeze the files instead: redoma sandbox snapshot ID NAME".into(),
    }
}
