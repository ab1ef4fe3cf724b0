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
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use redoma_jail::Piece;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use crate::quarantine::QuarantineError;

/// Watches the names that covers and pins lie on.
#[derive(Debug)]
pub(crate) struct Held {
    /// Every pin and cover on something of the host's, and what that was when the session began.
    pieces: Vec<(Piece, Identity)>,
    /// None before [`Held::listen`].
    events: Option<OwnedFd>,
    /// By watch descriptor and name: which of the pieces lie there.
    names: HashMap<(i32, OsString), Vec<usize>>,
}

/// Device and inode.
type Identity = (u64, u64);

impl Held {
    /// Notes what every pin and cover of `layout` lies on. A decoy in the private home lies on nothing of the host's.
    pub(crate) fn new(layout: &[Piece]) -> Self {
        let held = layout.iter().filter(|piece| matches!(piece, Piece::Pin { .. } | Piece::Cover { .. }));
        let pieces = held.filter_map(|piece| Some((piece.clone(), identity(piece)?))).collect();
        Self { pieces, events: None, names: HashMap::new() }
    }

    /// Starts to listen; the pieces that were lost since [`Held::new`]. Late, for the reason that
    /// [`Watch::listen`](crate::quarantine::Watch::listen) gives.
    ///
    /// # Errors
    /// When the kernel gives no more watches: then the session must end.
    pub(crate) fn listen(&mut self) -> Result<Vec<Piece>, QuarantineError> {
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let events = inotify::init(flags).map_err(QuarantineError::Inotify)?;
        let mut watched: HashMap<&Path, i32> = HashMap::new();
        for (index, (piece, _)) in self.pieces.iter().enumerate() {
            let (Some(folder), Some(name)) = (piece.at().parent(), piece.at().file_name()) else { continue };
            let watch = match watched.get(folder) {
                Some(watch) => *watch,
                None => {
                    let watch = watch(&events, folder);
                    let failed = |source| QuarantineError::Watch { path: folder.to_owned(), source };
                    *watched.entry(folder).or_insert(watch.map_err(failed)?)
                }
            };
            self.names.entry((watch, name.to_owned())).or_default().push(index);
        }
        self.events = Some(events);
        let lost = self.pieces.iter().filter(|(piece, before)| identity(piece) != Some(*before));
        Ok(in_order(lost.map(|(piece, _)| piece.clone()).collect()))
    }

    /// Readable when a name was made or replaced, once it listens.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.events.as_ref().map(AsFd::as_fd)
    }

    /// The pieces whose names were made or replaced since the last call, in the order in which to place them.
    pub(crate) fn lost(&self) -> Vec<Piece> {
        let Some(events) = &self.events else { return Vec::new() };
        let mut lost: Vec<Piece> = Vec::new();
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut reader = inotify::Reader::new(events, &mut buffer);
        while let Ok(event) = reader.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                // Which ones is not known any more.
                return in_order(self.pieces.iter().map(|(piece, _)| piece.clone()).collect());
            }
            let Some(name) = event.file_name() else { continue };
            let key = (event.wd(), OsString::from_vec(name.to_bytes().to_vec()));
            let lying = self.names.get(&key).into_iter().flatten();
            lost.extend(lying.map(|&index| self.pieces[index].0.clone()));
        }
        in_order(lost)
    }
}

fn watch(events: &OwnedFd, folder: &Path) -> Result<i32, Errno> {
    let mask = WatchFlags::MOVED_TO | WatchFlags::CREATE | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
    inotify::add_watch(events, folder, mask)
}

fn identity(piece: &Piece) -> Option<Identity> {
    let stat = piece.at().symlink_metadata().ok()?;
    Some((stat.dev(), stat.ino()))
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
        let mut held = Held::new(&[pin("config"), pin("other"), pin("decoy")]);
        assert_eq!(held.listen().unwrap(), []);
        assert_eq!(held.lost(), []);
        std::fs::write(at("config.lock"), "new").unwrap();
        std::fs::rename(at("config.lock"), at("config")).unwrap();
        std::fs::write(at("other"), "in place, under the mount").unwrap();
        assert_eq!(held.lost(), [pin("config")]);
        let mut late = Held::new(&[pin("config"), pin("other")]);
        std::fs::rename(at("other"), at("config")).unwrap();
        assert_eq!(late.listen().unwrap(), [pin("config"), pin("other")]);
    }
}
