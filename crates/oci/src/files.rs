//! Files of a container, through the engine's archives: no shell inside, and whether or not anything runs.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Component, Path, PathBuf};

use bollard::query_parameters::{
    ContainerArchiveInfoOptionsBuilder, DownloadFromContainerOptionsBuilder, UploadToContainerOptionsBuilder,
};
use redoma_sandbox::driver::{Copied, DriverError, Entry, EntryKind, Files, User};
use tar::{Archive, EntryType};

use crate::driver::{Found, OciDriver};
use crate::error::{engine, status, words};
use crate::pack::{self, Ownership, Packer, Reader};
use crate::unpack::Unpacker;

/// The files of one container.
pub(crate) struct ContainerFiles {
    driver: OciDriver,
    container: String,
    owner: Ownership,
}

/// What lies at a path inside.
#[derive(Clone, Copy, PartialEq, Eq)]
enum There {
    Nothing,
    Folder,
    Else,
}

/// As many links as the kernel follows.
const LINKS: usize = 40;

impl ContainerFiles {
    pub(crate) fn new(driver: OciDriver, found: &Found) -> Result<Self, DriverError> {
        let owner = match found.spec()?.user {
            User::Root => Ownership { user: 0, group: 0 },
            User::Me => Ownership {
                user: rustix::process::getuid().as_raw().into(),
                group: rustix::process::getgid().as_raw().into(),
            },
        };
        Ok(Self { driver, container: found.id().to_owned(), owner })
    }

    /// What is there, links followed inside.
    fn there(&self, path: &Path) -> Result<There, DriverError> {
        // With a slash behind it a link is followed, by the engine and inside the container.
        let look = |path: String| {
            let options = ContainerArchiveInfoOptionsBuilder::default().path(&path).build();
            let info = self.driver.docker().get_container_archive_info(&self.container, Some(options));
            match self.driver.wait(info) {
                Ok(_) => Ok(true),
                Err(error) if matches!(status(&error), Some(404 | 400)) => Ok(false),
                Err(error) if words(&error).contains("not a directory") => Ok(false),
                Err(error) => Err(engine(error)),
            }
        };
        let text = path.display().to_string();
        Ok(match look(format!("{}/.", text.trim_end_matches('/')))? {
            true => There::Folder,
            false if look(text)? => There::Else,
            false => There::Nothing,
        })
    }

    /// The deepest folder above `path` that is there, and the names of those that are not.
    fn ground(&self, path: &Path) -> Result<(PathBuf, PathBuf), DriverError> {
        let mut ground = path.parent().unwrap_or(Path::new("/"));
        loop {
            match self.there(ground)? {
                There::Folder => break,
                There::Else => return Err(refused(ground, "it is no folder")),
                There::Nothing => ground = ground.parent().unwrap_or(Path::new("/")),
            }
        }
        let missing =
            path.parent().and_then(|parent| parent.strip_prefix(ground).ok()).unwrap_or(Path::new(""));
        Ok((ground.to_owned(), missing.to_owned()))
    }

    /// Sends an archive that `write` writes into an existing folder inside.
    fn send(
        &self,
        into: &Path,
        write: impl FnOnce(&mut Packer<&mut pack::Writer>) -> io::Result<()> + Send + 'static,
    ) -> Result<Copied, DriverError> {
        let owner = self.owner;
        let (tell, told) = std::sync::mpsc::channel();
        let stream = pack::written(move |to| {
            let mut packer = Packer::new(to, owner);
            write(&mut packer)?;
            let copied = packer.finish()?;
            let _ = tell.send(copied);
            Ok(())
        });
        let options = UploadToContainerOptionsBuilder::default().path(&into.display().to_string()).build();
        let body = bollard::body_try_stream(stream);
        let sent = self.driver.docker().upload_to_container(&self.container, Some(options), body);
        self.driver.wait(sent).map_err(|error| refused(into, &words(&error)))?;
        told.recv().map_err(|_| refused(into, "the archive broke off"))
    }

    /// The archive of what is at `path`, the link itself where it is one.
    pub(crate) fn fetch<T>(
        &self,
        path: &Path,
        take: impl FnOnce(&mut dyn Read) -> io::Result<T>,
    ) -> Result<T, DriverError> {
        let options =
            DownloadFromContainerOptionsBuilder::default().path(&path.display().to_string()).build();
        let stream = self.driver.docker().download_from_container(&self.container, Some(options));
        let mut reader = Reader::new(self.driver.0.runtime.handle(), stream);
        take(&mut reader).map_err(|error| absent_or(path, &error))
    }

    /// The file at `path`, or where the link there leads, inside.
    fn fetch_file(&self, path: &Path, offset: u64, length: u64) -> Result<File, DriverError> {
        let mut path = plain(path);
        for _ in 0..LINKS {
            let part = |reader: &mut dyn Read| part_of_file(reader, offset, length);
            match self.fetch(&path, part)? {
                Fetched::File(file) => return Ok(file),
                Fetched::Link(to) => path = plain(&path.parent().unwrap_or(Path::new("/")).join(to)),
                Fetched::Else => return Err(refused(&path, "it is no file")),
            }
        }
        Err(refused(&path, "too many links"))
    }
}

enum Fetched {
    File(File),
    Link(PathBuf),
    Else,
}

/// What is asked for goes through a file without a name: the archive cannot be read from its middle.
fn part_of_file(archive: &mut dyn Read, offset: u64, length: u64) -> io::Result<Fetched> {
    let mut archive = Archive::new(archive);
    let Some(entry) = archive.entries()?.next() else { return Ok(Fetched::Else) };
    let mut entry = entry?;
    match entry.header().entry_type() {
        EntryType::Symlink => Ok(Fetched::Link(entry.link_name()?.unwrap_or_default().into_owned())),
        EntryType::Regular => {
            io::copy(&mut (&mut entry).take(offset), &mut io::sink())?;
            let mut file = tempfile::tempfile()?;
            io::copy(&mut entry.take(length), &mut file)?;
            file.rewind()?;
            Ok(Fetched::File(file))
        }
        _ => Ok(Fetched::Else),
    }
}

impl Files for ContainerFiles {
    fn copy_in(&self, from: &Path, to: &Path) -> Result<Copied, DriverError> {
        let from = from.to_owned();
        std::fs::symlink_metadata(&from).map_err(|error| refused(&from, &error.to_string()))?;
        let to = plain(to);
        let target = match (self.there(&to)?, from.file_name()) {
            (There::Folder, Some(name)) => to.join(name),
            _ => to,
        };
        let (ground, missing) = self.ground(&target)?;
        let name = target.file_name().ok_or_else(|| refused(&target, "it has no name"))?.to_owned();
        self.send(&ground, move |packer| {
            folders(packer, &missing)?;
            packer.tree(&from, &missing.join(name))
        })
    }

    fn copy_out(&self, from: &Path, to: &Path) -> Result<Copied, DriverError> {
        let from = plain(from);
        let into = to.is_dir();
        let (folder, name) = match (into, to.parent(), to.file_name()) {
            (true, _, _) => (to, from.file_name()),
            (false, Some(parent), name) if parent.as_os_str().is_empty() => (Path::new("."), name),
            (false, Some(parent), name) => (parent, name),
            (false, None, name) => (Path::new("/"), name),
        };
        let name = name.ok_or_else(|| refused(to, "it has no name"))?;
        let unpacker =
            Unpacker::new(folder, Path::new(name)).map_err(|error| refused(folder, &error.to_string()))?;
        if self.there(&from)? == There::Nothing {
            // A link that leads nowhere is a thing to copy still.
            self.fetch(&from, |reader| reader.read(&mut [0]).map(drop))?;
        }
        self.fetch(&from, |reader| unpacker.unpack(reader))
    }

    fn read(&self, path: &Path, offset: u64, length: u64) -> Result<Box<dyn Read>, DriverError> {
        Ok(Box::new(self.fetch_file(path, offset, length)?))
    }

    fn write(&self, path: &Path, mode: u32, content: &mut dyn Read) -> Result<(), DriverError> {
        let path = plain(path);
        // An archive says how long a file is before the file.
        let mut kept = || -> io::Result<(File, u64)> {
            let mut kept = tempfile::tempfile()?;
            let size = io::copy(content, &mut kept)?;
            kept.rewind()?;
            Ok((kept, size))
        };
        let (kept, size) = kept().map_err(|error| refused(&path, &error.to_string()))?;
        let (ground, missing) = self.ground(&path)?;
        let name = path.file_name().ok_or_else(|| refused(&path, "it has no name"))?.to_owned();
        let sent = self.send(&ground, move |packer| {
            folders(packer, &missing)?;
            packer.file(&missing.join(name), mode, size, kept)
        });
        sent.map(drop)
    }

    fn list(&self, path: &Path) -> Result<Vec<Entry>, DriverError> {
        let mut path = plain(path);
        for _ in 0..LINKS {
            match self.fetch(&path, direct_entries)? {
                Listed::Folder(entries) => return Ok(entries),
                Listed::Link(to) => path = plain(&path.parent().unwrap_or(Path::new("/")).join(to)),
                Listed::Else => return Err(refused(&path, "it is no folder")),
            }
        }
        Err(refused(&path, "too many links"))
    }
}

enum Listed {
    Folder(Vec<Entry>),
    Link(PathBuf),
    Else,
}

/// What lies directly in the folder that comes first.
fn direct_entries(archive: &mut dyn Read) -> io::Result<Listed> {
    let (mut listed, mut depth) = (Vec::new(), None);
    for entry in Archive::new(archive).entries()? {
        let entry = entry?;
        let path = entry.path()?.into_owned();
        let names: Vec<_> = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let Some(depth) = depth else {
            // Its own name, which the root has none of.
            depth = Some(names.len() + 1);
            match entry.header().entry_type() {
                EntryType::Directory => continue,
                EntryType::Symlink => {
                    return Ok(Listed::Link(entry.link_name()?.unwrap_or_default().into_owned()));
                }
                _ => return Ok(Listed::Else),
            }
        };
        let Some(Component::Normal(name)) = names.last().filter(|_| names.len() == depth) else { continue };
        let header = entry.header();
        listed.push(Entry {
            name: name.to_string_lossy().escape_debug().to_string(),
            kind: match header.entry_type() {
                EntryType::Regular | EntryType::Link => EntryKind::File,
                EntryType::Directory => EntryKind::Folder,
                EntryType::Symlink => EntryKind::Link,
                _ => EntryKind::Other,
            },
            size: header.size()?,
            mode: header.mode()? & 0o7777,
            modified: i64::try_from(header.mtime()?).unwrap_or(i64::MAX),
        });
    }
    Ok(Listed::Folder(listed))
}

/// Folders that are to be made on the way.
fn folders(packer: &mut Packer<&mut pack::Writer>, missing: &Path) -> io::Result<()> {
    let mut above: Vec<&Path> = missing.ancestors().filter(|path| !path.as_os_str().is_empty()).collect();
    above.reverse();
    above.into_iter().try_for_each(|folder| packer.folder(folder, 0o755))
}

/// Absolute, without `.` and `..`: no engine is asked to make sense of them.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => drop(plain.pop()),
            _ => {}
        }
    }
    plain
}

fn absent_or(path: &Path, error: &io::Error) -> DriverError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<bollard::errors::Error>());
    match inner {
        Some(inner) if status(inner) == Some(404) => refused(path, "there is no such file"),
        Some(inner) => refused(path, &words(inner)),
        None => refused(path, &error.to_string()),
    }
}

fn refused(path: &Path, why: &str) -> DriverError {
    let hint = "redoma sandbox exec ID -- ls -l".into();
    DriverError::Files { why: format!("{}: {why}", path.display()), hint }
}
