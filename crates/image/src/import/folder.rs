//! Packs a folder into a tar stream, so that it comes in by the same way as every other layer.
//!
//! The folder may change meanwhile, and may hold links to anywhere: every name is opened from its folder's descriptor, and no link
//! is followed. Sockets and devices are left out. The same files give the same digest: names are sorted, and what varies without
//! meaning (device and inode numbers, access times) is not written.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use redoma_layers::beneath;
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use tar::{Builder, EntryType, Header};

use crate::digest::Hasher;
use crate::{Digest, Error};

/// Packs `folder` into the file `archive`; the digest of what was written.
pub(super) fn pack(folder: &Path, archive: &Path) -> Result<Digest, Error> {
    let file = File::create(archive).map_err(|source| Error::Create { path: archive.into(), source })?;
    let writer = Hashed { file: BufWriter::with_capacity(128 << 10, file), hasher: Hasher::new() };
    let mut packer =
        Packer { builder: Builder::new(writer), links: HashMap::new(), device: None, archive, folder };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = fs::open(folder, flags, Mode::empty()).map_err(|errno| packer.read(Path::new(""))(errno))?;
    packer.folder(&fd, Path::new(""))?;
    let failed = |source| Error::Write { path: archive.into(), source };
    let mut writer = packer.builder.into_inner().map_err(failed)?;
    writer.flush().map_err(failed)?;
    Ok(writer.hasher.finish())
}

struct Packer<'a> {
    builder: Builder<Hashed>,
    /// The first name of each file that has several.
    links: HashMap<(u64, u64), PathBuf>,
    /// What is mounted below is not part of the folder.
    device: Option<u64>,
    archive: &'a Path,
    folder: &'a Path,
}

struct Hashed {
    file: BufWriter<File>,
    hasher: Hasher,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

// === impl Packer ===

impl Packer<'_> {
    /// One folder and what is in it. Its depth is bounded by how long a path the kernel takes in one piece.
    fn folder(&mut self, fd: &OwnedFd, path: &Path) -> Result<(), Error> {
        let stat = fs::fstat(fd).map_err(self.read(path))?;
        self.attributes(fd, path)?;
        let shown = if path.as_os_str().is_empty() { Path::new("./") } else { path };
        self.add(&mut header(&stat, EntryType::Directory), shown, io::empty())?;
        if *self.device.get_or_insert(stat.st_dev) != stat.st_dev {
            return Ok(());
        }
        let mut names = Vec::new();
        let mut name = |entry: beneath::Entry| {
            names.push(entry.name.to_vec());
            Ok(())
        };
        beneath::list(fd, &mut beneath::dirent_buffer(), &mut name).map_err(self.read(path))?;
        names.sort();
        for name in names {
            let name = OsStr::from_bytes(&name);
            self.entry(fd, name, &path.join(name))?;
        }
        Ok(())
    }

    fn entry(&mut self, folder: &OwnedFd, name: &OsStr, path: &Path) -> Result<(), Error> {
        let stat = match fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            // It was removed just now.
            Err(Errno::NOENT) => return Ok(()),
            other => other.map_err(self.read(path))?,
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let flags = flags | OFlags::DIRECTORY;
                let fd = fs::openat(folder, name, flags, Mode::empty()).map_err(self.read(path))?;
                self.folder(&fd, path)
            }
            FileType::RegularFile => {
                let fd = fs::openat(folder, name, flags, Mode::empty()).map_err(self.read(path))?;
                self.file(fd, path)
            }
            FileType::Symlink => {
                let target = fs::readlinkat(folder, name, Vec::new()).map_err(self.read(path))?;
                let mut header = header(&stat, EntryType::Symlink);
                let target = Path::new(OsStr::from_bytes(target.to_bytes()));
                self.builder.append_link(&mut header, path, target).map_err(self.write())
            }
            FileType::Fifo => self.add(&mut header(&stat, EntryType::Fifo), path, io::empty()),
            _ => Ok(()),
        }
    }

    fn file(&mut self, fd: OwnedFd, path: &Path) -> Result<(), Error> {
        let stat = fs::fstat(&fd).map_err(self.read(path))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(());
        }
        if stat.st_nlink > 1 {
            let first = self.links.entry((stat.st_dev, stat.st_ino)).or_insert_with(|| path.into());
            if first != path {
                let mut header = header(&stat, EntryType::Link);
                let first = first.clone();
                return self.builder.append_link(&mut header, path, first).map_err(self.write());
            }
        }
        self.attributes(&fd, path)?;
        let mut header = header(&stat, EntryType::Regular);
        let size = stat.st_size.cast_unsigned();
        header.set_size(size);
        // One that shrinks meanwhile is filled up: the archive has said how long it is.
        let content = File::from(fd).take(size).chain(io::repeat(0)).take(size);
        self.add(&mut header, path, content)
    }

    /// Attributes that users may set, as PAX records before the entry.
    fn attributes(&mut self, fd: impl AsFd, path: &Path) -> Result<(), Error> {
        let mut list = vec![0; 64 << 10];
        let length = match fs::flistxattr(&fd, &mut list[..]) {
            Err(Errno::NOTSUP) => 0,
            other => other.map_err(self.read(path))?,
        };
        let names = list[..length].split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
        let wanted = names.filter(|name| name.starts_with("user.") && !name.starts_with("user.overlay."));
        let mut records = Vec::new();
        for name in wanted {
            let mut value = vec![0; 64 << 10];
            let length = fs::fgetxattr(&fd, name, &mut value[..]).map_err(self.read(path))?;
            value.truncate(length);
            records.push((format!("SCHILY.xattr.{name}"), value));
        }
        records.sort();
        let records = records.iter().map(|(key, value)| (key.as_str(), value.as_slice()));
        self.builder.append_pax_extensions(records).map_err(self.write())
    }

    fn add(&mut self, header: &mut Header, path: &Path, content: impl Read) -> Result<(), Error> {
        self.builder.append_data(header, path, content).map_err(self.write())
    }

    fn read(&self, path: &Path) -> impl Fn(Errno) -> Error + use<> {
        let path = self.folder.join(path);
        move |errno| Error::Read { path: path.clone(), source: errno.into() }
    }

    fn write(&self) -> impl Fn(io::Error) -> Error + use<> {
        let path = self.archive.to_path_buf();
        move |source| Error::Write { path: path.clone(), source }
    }
}

fn header(stat: &Stat, kind: EntryType) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(stat.st_mode & 0o7777);
    // In a sandbox the caller is root: so is whoever owns what the caller made.
    let is_own = stat.st_uid == rustix::process::geteuid().as_raw();
    header.set_uid(if is_own { 0 } else { stat.st_uid.into() });
    header.set_gid(if is_own && stat.st_gid == rustix::process::getegid().as_raw() {
        0
    } else {
        stat.st_gid.into()
    });
    header.set_mtime(u64::try_from(stat.st_mtime).unwrap_or(0));
    header.set_size(0);
    header
}
