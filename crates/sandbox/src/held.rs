//! Covers and pins that somebody outside takes away by replacing the file below them.
//!
//! An editor's atomic save of a denied file, or `git config` on a protected one, renames a new file over it. The kernel
//! then drops every mount on the old one, in all mount namespaces, and the new file shows inside. So the folders that
//! hold covered and pinned names are watched (inotify(7)), and what was replaced is covered again. Between the two there
//! is a moment in which a command inside can open the new file; the record says when that was.

use std::collections::HashMap;
use std::ffi::OsString;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use redoma_jail::Piece;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use crate::quarantine::QuarantineError;

/// Watches the names that covers and pins lie on.
#[derive(Debug)]
pub(crate) struct Held {
    events: OwnedFd,
    /// By watch descriptor and name: what lies there, outermost first.
    pieces: HashMap<(i32, OsString), Vec<Piece>>,
}

impl Held {
    /// Watches for every pin and cover of `layout` that lies on something of the host's.
    ///
    /// # Errors
    /// When the kernel gives no more watches: then the session must not start.
    pub(crate) fn new(layout: &[Piece]) -> Result<Self, QuarantineError> {
        let events =
            inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).map_err(QuarantineError::Inotify)?;
        let mut held = Self { events, pieces: HashMap::new() };
        let mut watched = HashMap::new();
        for piece in layout.iter().filter(|piece| matches!(piece, Piece::Pin { .. } | Piece::Cover { .. })) {
            held.hold(piece, &mut watched)?;
        }
        Ok(held)
    }

    fn hold(&mut self, piece: &Piece, watched: &mut HashMap<PathBuf, i32>) -> Result<(), QuarantineError> {
        let (Some(folder), Some(name)) = (piece.at().parent(), piece.at().file_name()) else { return Ok(()) };
        let watch = match watched.get(folder) {
            Some(watch) => *watch,
            None => match self.watch(folder) {
                // A decoy in the private home: nothing of the host's lies below it.
                Err(Errno::NOENT | Errno::ACCESS) => return Ok(()),
                Err(source) => return Err(QuarantineError::Watch { path: folder.to_owned(), source }),
                Ok(watch) => *watched.entry(folder.to_owned()).or_insert(watch),
            },
        };
        self.pieces.entry((watch, name.to_owned())).or_default().push(piece.clone());
        Ok(())
    }

    fn watch(&self, folder: &Path) -> Result<i32, Errno> {
        let mask = WatchFlags::MOVED_TO | WatchFlags::CREATE | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
        inotify::add_watch(&self.events, folder, mask)
    }

    /// Readable when a name was made or replaced.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// The pieces whose names were made or replaced since the last call, in the order in which to place them.
    pub(crate) fn lost(&mut self) -> Vec<Piece> {
        let mut lost: Vec<Piece> = Vec::new();
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut reader = inotify::Reader::new(&self.events, &mut buffer);
        while let Ok(event) = reader.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                // Which ones is not known any more.
                return self.all();
            }
            let Some(name) = event.file_name() else { continue };
            let key = (event.wd(), OsString::from_vec(name.to_bytes().to_vec()));
            lost.extend(self.pieces.get(&key).into_iter().flatten().cloned());
        }
        in_order(lost)
    }

    fn all(&self) -> Vec<Piece> {
        in_order(self.pieces.values().flatten().cloned().collect())
    }
}

/// Outermost first, each once.
fn in_order(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.sort_by_key(|piece| (piece.at().components().count(), piece.at().clone()));
    pieces.dedup();
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_file_is_told_and_an_untouched_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["config", "other"] {
            std::fs::write(at(name), "").unwrap();
        }
        let pin = |name: &str| Piece::Pin { at: at(name), read_only: true };
        let mut held = Held::new(&[pin("config"), pin("other")]).unwrap();
        assert_eq!(held.lost(), []);
        std::fs::write(at("config.lock"), "new").unwrap();
        std::fs::rename(at("config.lock"), at("config")).unwrap();
        std::fs::write(at("other"), "in place, under the mount").unwrap();
        assert_eq!(held.lost(), [pin("config")]);
    }
}
