use bollard::container::CreateCheckpointOptions;
use redoma_sandbox::driver::{Checkpoints, DriverError, SandboxId, State};

use crate::driver::OciDriver;
use crate::error::{unsupported, words};

/// A sandbox has one at most.
const NAME: &str = "redoma";

impl Checkpoints for OciDriver {
    fn checkpoint(&self, id: &SandboxId) -> Result<(), DriverError> {
        let found = self.find(id)?;
        if found.state() == State::Stopped {
            return Err(DriverError::NotRunning(id.to_string()));
        }
        let options =
            CreateCheckpointOptions { checkpoint_id: NAME.into(), checkpoint_dir: None, exit: true };
        let made = self.wait(self.docker().create_checkpoint(found.id(), options));
        made.map_err(|error| {
            unsupported(
                format!("keep what runs on disk here: {}", words(&error)),
                format!("redoma sandbox snapshot {id} NAME"),
            )
        })
    }

    fn restore(&self, id: &SandboxId) -> Result<(), DriverError> {
        self.find(id)?;
        Err(unsupported(
            "bring back what is kept on disk: the engine's interface for it is experimental",
            format!("redoma sandbox exec {id} -- true"),
        ))
    }
}
