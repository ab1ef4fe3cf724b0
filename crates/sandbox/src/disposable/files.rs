//! Files in and out of a sandbox: by the root folder that its keeper holds, as its user 0 where there are other users inside.

use std::io::{Read, Seek};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::control::{Ask, Line};
use super::{Native, mapped};
use crate::driver::{Copied, DriverError, Entry, Files, SandboxId};
use crate::transfer::{Inside, Limits, TransferError};

/// The links of `/proc/self/task` in a process with one thread: two, and one for each folder in it.
const ONE_THREAD: u64 = 3;

/// The files of a sandbox.
struct Reached {
    inside: Inside,
    /// What is mounted inside stays as long as the keeper does, and that as long as it has a client.
    _line: Line,
}

impl Native {
    /// Starts the sandbox's keeper where there is none.
    pub(super) fn reach(&self, id: &SandboxId) -> Result<Box<dyn Files>, DriverError> {
        if self.store.read(id)?.is_none() {
            return Err(DriverError::NoSandbox(id.to_string()));
        }
        let (line, _, along) = Line::ask(&self.store, &self.keepers, id, &Ask::Root, &[])?;
        let root = along.into_iter().next().ok_or(DriverError::Gone(None))?;
        Ok(Box::new(Reached { inside: Inside::new(root, Limits::default()), _line: line }))
    }
}

impl Files for Reached {
    fn copy_in(&self, from: &Path, to: &Path) -> Result<Copied, DriverError> {
        as_owner(|| self.inside.copy_in(from, to))
    }

    fn copy_out(&self, from: &Path, to: &Path) -> Result<Copied, DriverError> {
        as_owner(|| self.inside.copy_out(from, to))
    }

    fn read(&self, path: &Path, offset: u64, length: u64) -> Result<Box<dyn Read>, DriverError> {
        match self.inside.read(path, offset, length) {
            // A descriptor does not come back from whoever may open it, so the content does.
            Err(error) if error.is_permission() => {
                let held = |source| DriverError::Store { what: "hold", path: path.into(), source };
                let mut content = tempfile::tempfile().map_err(held)?;
                as_owner(|| self.inside.read_to(path, offset, length, &content))?;
                content.rewind().map_err(held)?;
                Ok(Box::new(content))
            }
            content => Ok(Box::new(content?)),
        }
    }

    fn write(&self, path: &Path, mode: u32, content: &mut dyn Read) -> Result<(), DriverError> {
        as_owner(|| self.inside.write(path, mode, content)).map(drop)
    }

    fn list(&self, path: &Path) -> Result<Vec<Entry>, DriverError> {
        match self.inside.list(path) {
            Err(error) if error.is_permission() => as_owner(|| self.inside.list(path)),
            entries => Ok(entries?),
        }
    }
}

/// With the rights of the sandbox's user 0 over the files of its other users, where there are any and the caller has not all
/// rights anyway. A process with threads cannot become somebody else by a fork: there the caller's own rights have to do.
fn as_owner<T: Serialize + DeserializeOwned>(
    act: impl FnOnce() -> Result<T, TransferError>,
) -> Result<T, DriverError> {
    let alone = std::fs::metadata("/proc/self/task").is_ok_and(|tasks| tasks.nlink() == ONE_THREAD);
    if rustix::process::geteuid().is_root() || !alone || mapped::identity(true).is_err() {
        return Ok(act()?);
    }
    let done: Result<T, (String, String)> =
        mapped::act(|| Ok(act().map_err(|error| (error.to_string(), error.hint())))).map_err(|failure| {
            DriverError::Files { why: format!("cannot {failure}"), hint: "redoma doctor".into() }
        })?;
    done.map_err(|(why, hint)| DriverError::Files { why, hint })
}
