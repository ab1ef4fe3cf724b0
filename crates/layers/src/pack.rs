//! What a chain shows, as a tar stream.
//!
//! The format is POSIX's pax interchange format, with attributes as `SCHILY.xattr.*`, which GNU tar, libarchive and container
//! engines read.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tar::{EntryType, Header};

use crate::links::{Known, Links};
use crate::{Entry, Error, Kind, Tree};

/// What tar counts in.
const BLOCK: u64 = 512;

/// What a header has room for; longer names go before it.
const NAME_MAX: usize = 100;

/// What was packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    /// Paths.
    pub entries: u64,
    /// Bytes of the stream.
    pub bytes: u64,
    /// Sockets, which a tar stream cannot hold.
    pub skipped: u64,
}

/// Writes what a chain shows to `out` as a tar stream, the root as `./`. Holes are written out as zeros: a sparse file can be far
/// longer than it is on disk, so limit what `out` takes.
///
/// # Errors
/// Those of reading the layers; [`Error::Output`]; [`Error::Changed`] if a file became shorter meanwhile. Then the stream lacks its
/// end, by which readers know.
pub fn pack(chain: &[PathBuf], out: impl Write) -> Result<Packed, Error> {
    let tree = Tree::open(chain)?;
    let mut packing = Packing { tree: &tree, out, links: Links::default(), packed: Packed::default() };
    tree.walk(|entry| packing.entry(entry))?;
    packing.write(&[0; 2 * BLOCK as usize], Path::new("the end"))?;
    packing.out.flush().map_err(|source| Error::Output { path: PathBuf::from("the end"), source })?;
    Ok(packing.packed)
}

struct Packing<'t, W> {
    tree: &'t Tree,
    out: W,
    links: Links,
    packed: Packed,
}

impl<W: Write> Packing<'_, W> {
    fn entry(&mut self, entry: &Entry) -> Result<(), Error> {
        let Some(kind) = entry_type(entry.kind) else {
            self.packed.skipped += 1;
            return Ok(());
        };
        self.packed.entries += 1;
        let names = if entry.kind == Kind::Folder { 1 } else { entry.names };
        if let Known::Again(first) = self.links.note(entry.inode, names, &entry.path) {
            return self.head(entry, EntryType::Link, 0, first.as_os_str().as_bytes());
        }
        match entry.kind {
            Kind::File => self.file(entry),
            Kind::Link => self.head(entry, kind, 0, &self.tree.target(entry)?),
            _ => self.head(entry, kind, 0, b""),
        }
    }

    fn file(&mut self, entry: &Entry) -> Result<(), Error> {
        let file = self.tree.read(entry)?;
        self.head(entry, EntryType::Regular, entry.size, b"")?;
        let mut content = Exact { file, left: entry.size };
        let written = io::copy(&mut content, &mut self.out).map_err(|source| match source.kind() {
            io::ErrorKind::UnexpectedEof => Error::Changed { path: entry.layer.path().join(&entry.path) },
            _ => Error::Output { path: entry.path.clone(), source },
        })?;
        self.packed.bytes += written;
        self.pad(written, &entry.path)
    }

    /// A header, after an extended one for what it has no room for.
    fn head(&mut self, entry: &Entry, kind: EntryType, size: u64, target: &[u8]) -> Result<(), Error> {
        let name = shown_name(entry);
        let mut records = Vec::new();
        if name.len() > NAME_MAX {
            record(&mut records, b"path", &name);
        }
        if target.len() > NAME_MAX {
            record(&mut records, b"linkpath", target);
        }
        if kind != EntryType::Link {
            for (attribute, value) in self.tree.attributes(entry)? {
                // An equals sign would end the name.
                if !attribute.contains(&b'=') {
                    record(&mut records, &[b"SCHILY.xattr.", attribute.as_slice()].concat(), &value);
                }
            }
        }
        if !records.is_empty() {
            let header = header(entry, EntryType::XHeader, records.len() as u64, b"pax", b"");
            self.write(header.as_bytes(), &entry.path)?;
            self.write(&records, &entry.path)?;
            self.pad(records.len() as u64, &entry.path)?;
        }
        self.write(header(entry, kind, size, &name, target).as_bytes(), &entry.path)
    }

    fn pad(&mut self, length: u64, path: &Path) -> Result<(), Error> {
        let rest = (BLOCK - length % BLOCK) % BLOCK;
        self.write(&[0; BLOCK as usize][..rest as usize], path)
    }

    fn write(&mut self, bytes: &[u8], path: &Path) -> Result<(), Error> {
        self.packed.bytes += bytes.len() as u64;
        self.out.write_all(bytes).map_err(|source| Error::Output { path: path.to_path_buf(), source })
    }
}

fn entry_type(kind: Kind) -> Option<EntryType> {
    match kind {
        Kind::File => Some(EntryType::Regular),
        Kind::Folder => Some(EntryType::Directory),
        Kind::Link => Some(EntryType::Symlink),
        Kind::Fifo => Some(EntryType::Fifo),
        Kind::BlockDevice => Some(EntryType::Block),
        Kind::CharacterDevice => Some(EntryType::Char),
        Kind::Socket => None,
    }
}

/// Folders end with a slash, as readers of old formats expect.
fn shown_name(entry: &Entry) -> Vec<u8> {
    let mut name = entry.path.as_os_str().as_bytes().to_vec();
    if name.is_empty() {
        name.push(b'.');
    }
    if entry.kind == Kind::Folder {
        name.push(b'/');
    }
    name
}

fn header(entry: &Entry, kind: EntryType, size: u64, name: &[u8], target: &[u8]) -> Header {
    let mut header = Header::new_ustar();
    let fit = |bytes: &[u8]| bytes.len().min(NAME_MAX);
    header.as_old_mut().name[..fit(name)].copy_from_slice(&name[..fit(name)]);
    header.as_old_mut().linkname[..fit(target)].copy_from_slice(&target[..fit(target)]);
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(entry.mode);
    header.set_uid(entry.uid.into());
    header.set_gid(entry.gid.into());
    header.set_mtime(u64::try_from(entry.modified.0).unwrap_or(0));
    if let (Kind::BlockDevice | Kind::CharacterDevice, Some(ustar)) = (entry.kind, header.as_ustar_mut()) {
        ustar.set_device_major(entry.device.0);
        ustar.set_device_minor(entry.device.1);
    }
    header.set_cksum();
    header
}

/// One record of an extended header: its length in decimal, which counts its own digits, a space, `key=value`, a newline.
fn record(records: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    let mut length = rest + 1;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    records.extend_from_slice(format!("{length} ").as_bytes());
    records.extend_from_slice(&[key, b"=", value, b"\n"].concat());
}

/// As much of a file as its header says, and an error if there is less.
struct Exact {
    file: File,
    left: u64,
}

impl Read for Exact {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.file.read(&mut buffer[..most])?;
        self.left -= read as u64;
        if read == 0 && self.left > 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(read)
    }
}
