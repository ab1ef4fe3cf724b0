//! Unpacks one layer in the format of overlayfs: the part that reads what a stranger wrote and writes files.
//!
//! Names are read by `name`, files are reached by `root` alone, and what they say of themselves is set by `attributes`.
//! An archive may try to leave its folder (absolute names, `..`, symbolic links as parents, hard links to outside), to make
//! devices, to set overlayfs's own attributes, or to contradict itself; the first is refused and ends the unpacking, devices and
//! foreign attributes are left out with a note, and of contradicting entries the last holds, as in every tar program.

mod attributes;
mod name;
mod notes;
mod root;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::rc::Rc;

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::archive::{Archive, Entry, Kind, malformed};
use crate::limits::{Limits, within};
pub(crate) use attributes::OPAQUE;
use attributes::{Attributes, Folders, unpack_error};
use name::{Meaning, Name, lossy};
use notes::Notes;
use root::{Found, Root, os};

/// Whose the files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ownership {
    /// As in the archive. For a process in a user namespace where those users exist.
    Keep,
    /// The caller's.
    Mine,
}

/// What was unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// Files, folders and links.
    pub entries: u64,
    /// Bytes in files.
    pub bytes: u64,
    /// What was left out, for the user.
    pub notes: Vec<String>,
    /// Whether the archive had its end mark: without it, it may have been cut.
    pub is_complete: bool,
}

/// Unpacks the tar stream `reader` into `dest`, an empty folder that nobody else writes to.
///
/// `.wh.NAME` becomes a whiteout (character device 0:0), `.wh..wh..opq` makes its folder opaque (`user.overlay.opaque`). The
/// stream is read to its end, so that whoever hashes it has all of it.
///
/// # Errors
/// [`Error::Entry`] for an entry that would leave `dest` or makes no sense, [`Error::Archive`] for a malformed stream,
/// [`Error::Limit`] for too much of something, [`Error::Unpack`] where the kernel refuses. What was made until then stays.
pub fn unpack(
    reader: impl Read,
    dest: &Path,
    ownership: Ownership,
    limits: &Limits,
) -> Result<Unpacked, Error> {
    let root = Root::open(dest).map_err(|errno| Error::Open { path: dest.into(), source: errno.into() })?;
    let mut unpacker = Unpacker {
        root,
        ownership,
        limits: *limits,
        folders: Folders::default(),
        notes: Notes::default(),
        entries: 0,
        bytes: 0,
    };
    unpacker.folders.add(Path::new(""));
    let mut archive = Archive::new(reader, limits);
    while let Some(entry) = archive.next()? {
        unpacker.take(&entry, &mut archive)?;
    }
    let is_complete = archive.finish()?;
    unpacker.finish(is_complete)
}

struct Unpacker {
    root: Root,
    ownership: Ownership,
    limits: Limits,
    folders: Folders,
    notes: Notes,
    entries: u64,
    bytes: u64,
}

/// A folder, and the name that something gets in it.
struct Place<'a> {
    folder: Rc<OwnedFd>,
    file: &'a std::ffi::OsStr,
    name: &'a Name,
    shown: String,
}

// === impl Unpacker ===

impl Unpacker {
    fn take(&mut self, entry: &Entry, data: &mut impl Read) -> Result<(), Error> {
        self.entries += 1;
        match Name::parse(&entry.path, &self.limits)?.meaning()? {
            Meaning::Make(name) => self.make(entry, &name, data),
            Meaning::Hide(name) => self.hide(&name),
            Meaning::HideAll(name) => {
                if self.folder_to_hide_in(name.path())?.is_some() {
                    self.folders.hide_below(name.path());
                }
                Ok(())
            }
            Meaning::Nothing => Ok(()),
        }
    }

    fn make(&mut self, entry: &Entry, name: &Name, data: &mut impl Read) -> Result<(), Error> {
        match entry.kind {
            Kind::Folder => self.make_folder(entry, name),
            Kind::File => self.make_file(entry, name, data),
            Kind::Symlink => self.make_symlink(entry, name),
            Kind::Hardlink => self.make_hardlink(entry, name),
            Kind::Fifo => self.make_fifo(entry, name),
            Kind::Device => {
                // Whatever a sandbox sees in /dev is its own.
                if !name.path().starts_with("dev") {
                    self.notes.add(|| format!("{}: a device is left out", lossy(&entry.path)));
                }
                Ok(())
            }
            Kind::Other(_) => Err(refused(entry, "nothing is known of its kind")),
        }
    }

    fn make_folder(&mut self, entry: &Entry, name: &Name) -> Result<(), Error> {
        if name.split().is_some() {
            let place = self.place(entry, name)?;
            match self.look(&place)? {
                Found::Folder => {}
                Found::Nothing => self.make_folder_at(&place)?,
                // What the layers below have of this name had been taken away: it must not come back.
                Found::Whiteout | Found::Other => {
                    self.clear(&place)?;
                    self.make_folder_at(&place)?;
                    self.folders.hide_below(name.path());
                }
            }
        }
        self.folders.describe(name.path(), Attributes::of(entry));
        Ok(())
    }

    fn make_file(&mut self, entry: &Entry, name: &Name, data: &mut impl Read) -> Result<(), Error> {
        let place = self.place(entry, name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let create = |place: &Place| fs::openat(&place.folder, place.file, flags, Mode::RUSR | Mode::WUSR);
        let mut file = File::from(self.instead(&place, "open", create)?);
        self.fill(entry, &place, &mut file, data)?;
        Attributes::of(entry).set(&file, &place.shown, self.ownership, &mut self.notes)
    }

    fn fill(
        &mut self,
        entry: &Entry,
        place: &Place,
        file: &mut File,
        data: &mut impl Read,
    ) -> Result<(), Error> {
        let failed = |step| move |source| Error::Unpack { entry: place.shown.clone(), step, source };
        let mut end = 0;
        // GNU tar ends its maps with an empty piece where the file ends: that writes nothing, and makes no file longer.
        for chunk in entry.chunks.iter().filter(|chunk| chunk.length > 0) {
            if chunk.offset != end {
                file.seek(SeekFrom::Start(chunk.offset)).map_err(failed("lseek"))?;
            }
            self.bytes += chunk.length;
            within("the size of a layer", self.bytes, self.limits.unpacked)?;
            copy(data, chunk.length, |piece| file.write_all(piece).map_err(failed("write")))?;
            end = chunk.offset + chunk.length;
        }
        if end == entry.size { Ok(()) } else { file.set_len(entry.size).map_err(failed("ftruncate")) }
    }

    fn make_symlink(&mut self, entry: &Entry, name: &Name) -> Result<(), Error> {
        let place = self.place(entry, name)?;
        within("the length of a link", entry.link.len() as u64, self.limits.path)?;
        // Where it points to does not matter: nothing here ever follows it.
        self.instead(&place, "symlink", |place| fs::symlinkat(os(&entry.link), &place.folder, place.file))?;
        Attributes::of(entry).set_at(&place.folder, place.file, &place.shown, self.ownership)
    }

    /// Another name for a file of this layer. A symbolic link may be meant: then it gets another name, and is not followed.
    fn make_hardlink(&mut self, entry: &Entry, name: &Name) -> Result<(), Error> {
        let target = Name::parse(&entry.link, &self.limits)?;
        if target == *name {
            return Ok(());
        }
        let place = self.place(entry, name)?;
        let (parent, file) = target.split().ok_or_else(|| refused(entry, "it links to the layer's root"))?;
        let missing = |_| refused(entry, "it links to nothing in its layer");
        let from = self.root.folder(parent).map_err(missing)?;
        match Root::look(&from, file).map_err(missing)? {
            Found::Other => {}
            Found::Folder => return Err(refused(entry, "it links to a folder")),
            Found::Nothing | Found::Whiteout => return Err(missing(Errno::NOENT)),
        }
        self.instead(&place, "link", |place| {
            fs::linkat(&from, file, &place.folder, place.file, AtFlags::empty())
        })
    }

    fn make_fifo(&mut self, entry: &Entry, name: &Name) -> Result<(), Error> {
        let place = self.place(entry, name)?;
        let make =
            |place: &Place| fs::mknodat(&place.folder, place.file, fs::FileType::Fifo, Mode::empty(), 0);
        self.instead(&place, "mknod", make)?;
        Attributes::of(entry).set_at(&place.folder, place.file, &place.shown, self.ownership)?;
        // It was made just now and in a folder of ours alone: no link can be in its place.
        fs::chmodat(&place.folder, place.file, Mode::from_raw_mode(entry.mode), AtFlags::empty())
            .map_err(|errno| unpack_error(&place.shown, "chmod", errno))
    }

    /// A whiteout speaks of the layers below: what this layer has of the name stays.
    fn hide(&mut self, name: &Name) -> Result<(), Error> {
        let Some((parent, file)) = name.split() else { return Ok(()) };
        let Some(folder) = self.folder_to_hide_in(parent)? else { return Ok(()) };
        let failed = |errno| unpack_error(&name.path().to_string_lossy(), "mknod", errno);
        match Root::look(&folder, file).map_err(failed)? {
            Found::Nothing => Root::make_whiteout(&folder, file).map_err(failed),
            Found::Folder => {
                self.folders.hide_below(name.path());
                Ok(())
            }
            Found::Whiteout | Found::Other => Ok(()),
        }
    }

    /// `None` where this layer has something else than a folder: that hides everything below by itself. umoci writes such
    /// whiteouts when a file has taken a folder's place.
    fn folder_to_hide_in(&mut self, path: &Path) -> Result<Option<Rc<OwnedFd>>, Error> {
        match self.ensure_folder(path) {
            Err(Error::Entry { .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Does `make`; if something has the name already, in its stead.
    fn instead<T>(
        &mut self,
        place: &Place,
        step: &'static str,
        make: impl Fn(&Place) -> Result<T, Errno>,
    ) -> Result<T, Error> {
        let made = match make(place) {
            Err(Errno::EXIST) => {
                self.clear(place)?;
                make(place)
            }
            other => other,
        };
        made.map_err(|errno| unpack_error(&place.shown, step, errno))
    }

    fn look(&self, place: &Place) -> Result<Found, Error> {
        Root::look(&place.folder, place.file).map_err(|errno| unpack_error(&place.shown, "stat", errno))
    }

    fn clear(&mut self, place: &Place) -> Result<(), Error> {
        self.folders.forget(place.name.path());
        let removed = self.root.remove(&place.folder, place.file);
        removed.map_err(|errno| unpack_error(&place.shown, "unlink", errno))
    }

    fn make_folder_at(&self, place: &Place) -> Result<(), Error> {
        let made = Root::make_folder(&place.folder, place.file);
        made.map_err(|errno| unpack_error(&place.shown, "mkdir", errno))
    }

    /// Where the entry belongs; folders above it that the layer does not describe are made.
    fn place<'a>(&mut self, entry: &Entry, name: &'a Name) -> Result<Place<'a>, Error> {
        let (parent, file) =
            name.split().ok_or_else(|| refused(entry, "it would replace the layer's root"))?;
        let folder = self.ensure_folder(parent)?;
        Ok(Place { folder, file, name, shown: lossy(&entry.path) })
    }

    fn ensure_folder(&mut self, path: &Path) -> Result<Rc<OwnedFd>, Error> {
        match self.root.folder(path) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => self.make_way(path),
            other => other.map_err(|errno| unpack_error(&path.to_string_lossy(), "openat2", errno)),
        }
    }

    fn make_way(&mut self, path: &Path) -> Result<Rc<OwnedFd>, Error> {
        let failed = |step| move |errno| unpack_error(&path.to_string_lossy(), step, errno);
        let mut way = std::path::PathBuf::new();
        for part in path {
            let folder = self.root.folder(&way).map_err(failed("openat2"))?;
            way.push(part);
            match Root::look(&folder, part).map_err(failed("stat"))? {
                Found::Folder => continue,
                Found::Nothing => {}
                Found::Whiteout => {
                    self.root.remove(&folder, part).map_err(failed("unlink"))?;
                    self.folders.hide_below(&way);
                }
                Found::Other => {
                    let entry = path.to_string_lossy().into_owned();
                    return Err(Error::Entry {
                        entry,
                        why: "a file or a symbolic link stands where a folder should",
                    });
                }
            }
            Root::make_folder(&folder, part).map_err(failed("mkdir"))?;
            self.folders.add(&way);
        }
        self.root.folder(path).map_err(failed("openat2"))
    }

    fn finish(mut self, is_complete: bool) -> Result<Unpacked, Error> {
        self.folders.finish(&self.root, self.ownership, &mut self.notes)?;
        Ok(Unpacked { entries: self.entries, bytes: self.bytes, notes: self.notes.finish(), is_complete })
    }
}

fn refused(entry: &Entry, why: &'static str) -> Error {
    Error::Entry { entry: lossy(&entry.path), why }
}

/// Hands exactly `length` bytes on, in pieces.
fn copy(
    data: &mut impl Read,
    length: u64,
    mut write: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut buffer = [0; 64 << 10];
    let mut left = length;
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        match data.read(&mut buffer[..most]) {
            Ok(0) => return Err(malformed("it ends within a file")),
            Ok(count) => {
                write(&buffer[..count])?;
                left -= count as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::from_stream(error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
