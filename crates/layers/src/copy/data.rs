//! The bytes of a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::fs::{SeekFrom, ftruncate, ioctl_ficlone, seek};
use rustix::io::Errno;

use super::Copy;
use crate::Error;

impl Copy<'_> {
    /// Shares the data of a file, or copies it without its holes. A file that grows meanwhile ends where it ended before.
    pub(super) fn data(&mut self, from: &File, to: &File, path: &Path) -> Result<(), Error> {
        let stat = rustix::fs::fstat(from).map_err(self.source.failed(path, "fstat"))?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if self.clones && size > 0 {
            match ioctl_ficlone(to, from) {
                Ok(()) => {
                    self.copied.shared += size;
                    return Ok(());
                }
                Err(Errno::OPNOTSUPP | Errno::NOTTY | Errno::NOSYS) => self.clones = false,
                // Of this file only: it is on another file system, or of a kind that cannot.
                Err(_) => {}
            }
        }
        self.copied.copied += spread(from, to, size).map_err(|source| Error::Write {
            path: self.to.join(path),
            step: "copy_file_range",
            source,
        })?;
        ftruncate(to, size).map_err(self.failed(path, "ftruncate"))
    }
}

/// Copies the first `size` bytes of a file to another, each stretch of data to its place: holes stay holes. How many bytes of
/// data there were.
///
/// # Errors
/// Those of lseek(2) and copy_file_range(2).
pub fn spread(from: &File, to: &File, size: u64) -> io::Result<u64> {
    let (mut at, mut copied) = (0, 0);
    while at < size {
        let begin = match seek(from, SeekFrom::Data(at)) {
            Err(Errno::NXIO) => break,
            begin => begin?.min(size),
        };
        let end = seek(from, SeekFrom::Hole(begin))?.min(size);
        seek(from, SeekFrom::Start(begin))?;
        seek(to, SeekFrom::Start(begin))?;
        // With two files, this is copy_file_range(2) where it works.
        let (mut stretch, mut place) = (from.take(end - begin), to);
        copied += io::copy(&mut stretch, &mut place)?;
        // A file that shrank has no data where it had some; it need not come forward by itself.
        at = end.max(at + 1);
    }
    Ok(copied)
}
