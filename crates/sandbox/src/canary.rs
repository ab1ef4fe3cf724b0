//! What must not work inside, made so that it works outside.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use redoma_jail::Canary;

use crate::error::RunError;
use crate::folder;
use crate::homes::Homes;

/// Three things that work out here and must not in there; the port listens as long as the listener is held.
pub(crate) fn set_out(homes: &Homes) -> Result<(Canary, TcpListener), RunError> {
    let path = homes.state().join("canary");
    let prepare =
        |path: &Path, source| RunError::Prepare { what: "the canary", path: path.to_owned(), source };
    folder::private(&path).map_err(|source| prepare(&path, source))?;
    let read = path.join("secret");
    if !read.exists() {
        let mut options = fs::OpenOptions::new();
        let secret = options.write(true).create(true).truncate(true).mode(0o600);
        secret.open(&read).map_err(|source| prepare(&read, source))?;
    }
    fs::File::open(&read).map_err(|source| prepare(&read, source))?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|source| prepare(&path, source))?;
    let connect = listener.local_addr().map_err(|source| prepare(&path, source))?.port();
    Ok((Canary { read, write: path, connect }, listener))
}
