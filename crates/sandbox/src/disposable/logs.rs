//! What detached commands wrote.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use super::Native;
use super::store::{Store, failed};
use crate::driver::{DriverError, Logging, SandboxId};

impl Logging for Native {
    fn logs(&self, id: &SandboxId, follow: bool) -> Result<Box<dyn Read>, DriverError> {
        let folder = self.store.folder(id).join("logs");
        let mut files: Vec<PathBuf> = match fs::read_dir(&folder) {
            Ok(entries) => entries.flatten().map(|entry| entry.path()).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(failed("list", &folder, source)),
        };
        // `x.log.1` is what came before `x.log`.
        files.sort_by_key(|path| {
            (path.with_extension("").with_extension(""), path.extension() != Some("1".as_ref()))
        });
        let open = |path: PathBuf| File::open(&path).map_err(|source| failed("read", &path, source));
        let files = files.into_iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let store = self.store.clone();
        Ok(Box::new(Kept { files: files.into(), store, id: *id, follow }))
    }
}

/// The files one after the other; the last is waited at as long as the sandbox lives.
struct Kept {
    files: std::collections::VecDeque<File>,
    store: Store,
    id: SandboxId,
    follow: bool,
}

impl Read for Kept {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        /// Between two looks at whether there is more.
        const PAUSE: Duration = Duration::from_millis(100);
        loop {
            let Some(file) = self.files.front_mut() else { return Ok(0) };
            match file.read(buffer)? {
                0 if self.files.len() > 1 => drop(self.files.pop_front()),
                0 if self.follow && self.store.is_held(&self.id) => std::thread::sleep(PAUSE),
                read => return Ok(read),
            }
        }
    }
}
