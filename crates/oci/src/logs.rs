//! What detached commands wrote: files inside, which go with the sandbox.

use std::io::{self, Read, Seek};
use std::path::Path;

use redoma_sandbox::driver::{DriverError, Logging, SandboxId};
use tar::{Archive, EntryType};

use crate::driver::OciDriver;
use crate::error::unsupported;
use crate::files::ContainerFiles;

/// Where they are.
pub(crate) const FOLDER: &str = "/var/log/redoma";
/// Of all of them.
const MOST: u64 = 64 << 20;

impl Logging for OciDriver {
    fn logs(&self, id: &SandboxId, follow: bool) -> Result<Box<dyn Read>, DriverError> {
        if follow {
            let hint = format!("redoma sandbox exec {id} -- tail -F {FOLDER}/NAME");
            return Err(unsupported("follow what is being written", hint));
        }
        let files = ContainerFiles::new(self.clone(), &self.find(id)?)?;
        match files.fetch(Path::new(FOLDER), contents) {
            // Nothing was written yet.
            Err(DriverError::Files { why, .. }) if why.ends_with("no such file") => Ok(Box::new(io::empty())),
            other => Ok(Box::new(other?)),
        }
    }
}

/// All that is in the files of an archive, one after another.
fn contents(archive: &mut dyn Read) -> io::Result<std::fs::File> {
    let mut all = tempfile::tempfile()?;
    for entry in Archive::new(archive.take(MOST)).entries()? {
        let mut entry = entry?;
        if entry.header().entry_type() == EntryType::Regular {
            io::copy(&mut entry, &mut all)?;
        }
    }
    all.rewind()?;
    Ok(all)
}
