//! What is done to files of users that exist only inside: as user 0 of such a user namespace.

use std::path::Path;

use redoma_jail::{Failure, Identity, Step};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::store::failed;
use crate::driver::DriverError;
use crate::leftovers::remove_path;

/// The ranges of users of sandboxes here; what is missing where there are none.
pub(crate) fn identity(as_root: bool) -> Result<Identity, String> {
    Identity::with_ranges(as_root, &user_name())
}

/// What the machine's own list of users calls the caller; a directory's users are in the environment alone.
fn user_name() -> String {
    let number = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let entry = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let listed = entry
        .filter(|entry| entry.get(2) == Some(&number.as_str()))
        .find_map(|entry| entry.first().map(|name| (*name).to_owned()));
    let told = || std::env::var("USER").ok().filter(|name| !name.is_empty());
    listed.or_else(told).unwrap_or(number)
}

/// Does something with the rights that a sandbox's user 0 has over the sandbox's files.
pub(crate) fn act<T: Serialize + DeserializeOwned>(
    act: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let ranges = identity(true).map_err(|_| Failure::new(Step::MapUser, rustix::io::Errno::PERM))?;
    redoma_jail::as_root_of(&ranges, act)
}

pub(crate) fn remove(folder: &Path) -> Result<(), DriverError> {
    let errno =
        |error: std::io::Error| rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO);
    act(|| remove_path(folder).map_err(|error| Failure::at(Step::Create, folder, errno(error))))
        .map_err(|failure| failed("remove", folder, failure.errno().into()))
}

/// Copies a layer as it is; how many bytes of files are in it.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<u64, DriverError> {
    let copy = || match redoma_layers::copy(from, to) {
        Ok(copied) => Ok(copied.shared + copied.copied),
        Err(error) => Err((error.to_string(), error.hint())),
    };
    let copied = match identity(true) {
        Ok(_) => act(|| Ok(copy())).map_err(|failure| failed("copy", from, failure.errno().into()))?,
        // Without ranges all in it is the caller's own.
        Err(_) => copy(),
    };
    copied.map_err(|(why, hint)| DriverError::Files { why, hint })
}
