//! Covers and pins that somebody outside takes away by replacing the file below them.
//!
//! An editor's atomic save of a denied file, or `git config` on a protected one, renames a new file over it. The kernel
//! then drops every mount on the old one, in all mount namespaces, and the new file shows inside. So the folders that
//! hold covered and pinned names are watched (inotify(7)), and what was replaced is covered again. Between the two there
//! is a moment in which a command inside can open the new file; the record says when that was.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

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
    /// What was protected, and what it held then.
    protected: Vec<(PathBuf, Identity, Content)>,
}

/// Size and times of the last change of content and of anything.
type Content = (u64, i128, i128);

/// Device, inode and time of birth, where the file system has one.
type Identity = (u64, u64, Option<SystemTime>);

impl Held {
    /// Notes what every pin and cover of `layout` lies on. A decoy in the private home lies on nothing of the host's.
    pub(crate) fn new(layout: &[Piece]) -> Self {
        let held = layout.iter().filter(|piece| matches!(piece, Piece::Pin { .. } | Piece::Cover { .. }));
        let pieces = held.filter_map(|piece| Some((piece.clone(), identity(piece)?))).collect();
        let read_only = layout.iter().filter(|piece| matches!(piece, Piece::Pin { read_only: true, .. }));
        let protected = read_only.filter_map(|piece| {
            let stat = piece.at().symlink_metadata().ok()?;
            Some((piece.at().clone(), identity(piece)?, content(&stat)))
        });
        Self { pieces, events: None, names: HashMap::new(), protected: protected.collect() }
    }

    /// Starts to listen; the pieces that were lost since [`Held::new`]. Late, for the reason that
    /// [`Watch::listen`](crate::quarantine::Watch::listen) gives.
    ///
    /// # Errors
    /// When the kernel gives no more watches: then the session must end.
    pub(crate) fn listen(&mut self) -> Result<Vec<Piece>, QuarantineError> {
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let events = inotify::init(flags).map_err(QuarantineError::Inotify)?;
        self.events = Some(events);
        self.watch(|_| true)?;
        let changed = self.pieces.iter().filter(|(piece, before)| identity(piece) != Some(*before));
        let replaced: Vec<PathBuf> = changed.map(|(piece, _)| piece.at().clone()).collect();
        Ok(self.held_by(&replaced))
    }

    /// Readable when a name was made or replaced, once it listens.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.events.as_ref().map(AsFd::as_fd)
    }

    /// The pieces whose names were made or replaced since the last call, in the order in which to place them, and with a
    /// folder that was replaced all that it held.
    ///
    /// # Errors
    /// When the kernel gives no more watches: then the session must end.
    pub(crate) fn lost(&mut self) -> Result<Vec<Piece>, QuarantineError> {
        let replaced = self.replaced();
        // The watches on a folder that was replaced went with it. First those, so that nothing is missed in between.
        self.watch(|folder| replaced.iter().any(|replaced| folder.starts_with(replaced)))?;
        Ok(self.held_by(&replaced))
    }

    /// Protected paths that are not what they were. A program outside may have changed them, or replaced them and left a
    /// moment in which a command inside got hold of the new file: which it was cannot be told, so the user is.
    pub(crate) fn changed(&self) -> Vec<PathBuf> {
        let changed = self.protected.iter().filter(|(path, before, held)| match path.symlink_metadata() {
            Ok(stat) => id(&stat) != *before || content(&stat) != *held,
            Err(_) => true,
        });
        changed.map(|(path, ..)| path.clone()).collect()
    }

    /// The pieces at these paths and below.
    fn held_by(&self, replaced: &[PathBuf]) -> Vec<Piece> {
        let pieces = self.pieces.iter().map(|(piece, _)| piece);
        let lying = pieces.filter(|piece| replaced.iter().any(|replaced| piece.at().starts_with(replaced)));
        in_order(lying.cloned().collect())
    }

    fn replaced(&self) -> Vec<PathBuf> {
        let Some(events) = &self.events else { return Vec::new() };
        let mut replaced = Vec::new();
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut reader = inotify::Reader::new(events, &mut buffer);
        while let Ok(event) = reader.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                // Which ones is not known any more.
                return vec![PathBuf::from("/")];
            }
            let Some(name) = event.file_name() else { continue };
            let key = (event.wd(), OsString::from_vec(name.to_bytes().to_vec()));
            let lying = self.names.get(&key).into_iter().flatten();
            replaced.extend(lying.map(|&index| self.pieces[index].0.at().clone()));
        }
        replaced
    }

    /// Watches the chosen folders among those that hold pieces.
    fn watch(&mut self, chosen: impl Fn(&Path) -> bool) -> Result<(), QuarantineError> {
        let Some(events) = &self.events else { return Ok(()) };
        for (index, (piece, _)) in self.pieces.iter().enumerate() {
            let (Some(folder), Some(name)) = (piece.at().parent(), piece.at().file_name()) else { continue };
            if !chosen(folder) {
                continue;
            }
            // The same number again for a folder that is watched already.
            match watch(events, folder) {
                Ok(watch) => {
                    let lying = self.names.entry((watch, name.to_owned())).or_default();
                    lying.extend((!lying.contains(&index)).then_some(index));
                }
                // What the host has removed holds nothing; that it comes again is seen where it lay.
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(source) => return Err(QuarantineError::Watch { path: folder.to_owned(), source }),
            }
        }
        Ok(())
    }
}

fn watch(events: &OwnedFd, folder: &Path) -> Result<i32, Errno> {
    let mask = WatchFlags::MOVED_TO | WatchFlags::CREATE | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
    inotify::add_watch(events, folder, mask)
}

/// The time of birth tells a file from a later one of the same number: file systems give numbers out again at once.
fn identity(piece: &Piece) -> Option<Identity> {
    piece.at().symlink_metadata().ok().map(|stat| id(&stat))
}

fn id(stat: &Metadata) -> Identity {
    (stat.dev(), stat.ino(), stat.created().ok())
}

fn content(stat: &Metadata) -> Content {
    let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
    (stat.size(), nanos(stat.mtime(), stat.mtime_nsec()), nanos(stat.ctime(), stat.ctime_nsec()))
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
        assert_eq!(held.lost().unwrap(), []);
        assert_eq!(held.changed(), [] as [PathBuf; 0]);
        std::fs::write(at("config.lock"), "new").unwrap();
        std::fs::rename(at("config.lock"), at("config")).unwrap();
        std::fs::write(at("other"), "in place, under the mount").unwrap();
        assert_eq!(held.lost().unwrap(), [pin("config")]);
        let mut late = Held::new(&[pin("config"), pin("other")]);
        std::fs::rename(at("other"), at("config")).unwrap();
        assert_eq!(late.listen().unwrap(), [pin("config"), pin("other")]);
    }

    #[test]
    fn with_a_replaced_folder_all_that_it_held_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let pin = |name: &str| Piece::Pin { at: at(name), read_only: true };
        let make = |name: &str| {
            std::fs::create_dir(at(name)).unwrap();
            std::fs::write(at(name).join("config"), "").unwrap();
        };
        make("git");
        let mut held = Held::new(&[pin("git"), pin("git/config")]);
        assert_eq!(held.listen().unwrap(), []);
        make("other");
        std::fs::rename(at("git"), at("aside")).unwrap();
        std::fs::rename(at("other"), at("git")).unwrap();
        assert_eq!(held.lost().unwrap(), [pin("git"), pin("git/config")]);
        std::fs::rename(at("aside/config"), at("git/config")).unwrap();
        assert_eq!(held.lost().unwrap(), [pin("git/config")], "the new folder is watched as the old one was");
    }
}
