//! Archives from inside are hostile: what is in them may try to get out of the folder that they are unpacked in.
//!
//! Every folder on the way is opened by `openat2(2)` with `RESOLVE_BENEATH` and without following links, every file is made
//! anew, and links are made but never gone through.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use redoma_sandbox::driver::Copied;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use tar::{Archive, Entry, EntryType};

/// A folder of the host that an archive may write in, and nowhere else.
pub(crate) struct Unpacker {
    folder: OwnedFd,
    /// What the archive's top is called here.
    name: PathBuf,
    copied: Copied,
    /// Folders get their modes when all is in them.
    modes: Vec<(PathBuf, Mode)>,
}

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);
const CONFINED: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

impl Unpacker {
    /// Unpacks into `folder`, where the archive's top is to be called `name`.
    pub(crate) fn new(folder: &Path, name: &Path) -> io::Result<Self> {
        let folder = rustix::fs::openat(CWD, folder, FOLDER, Mode::empty())?;
        Ok(Self { folder, name: name.to_owned(), copied: Copied::default(), modes: Vec::new() })
    }

    pub(crate) fn unpack(mut self, archive: impl Read) -> io::Result<Copied> {
        for entry in Archive::new(archive).entries()? {
            self.entry(&mut entry?)?;
        }
        // The deepest first: a folder that cannot be entered any more is in nobody's way then.
        for (path, mode) in self.modes.iter().rev() {
            let folder = self.open(path, FOLDER)?;
            rustix::fs::fchmod(&folder, *mode)?;
        }
        Ok(self.copied)
    }

    fn entry(&mut self, entry: &mut Entry<'_, impl Read>) -> io::Result<()> {
        let named = entry.path()?.into_owned();
        let Some(path) = self.place(&named) else {
            return self.leave_out(&named, "its name leads elsewhere");
        };
        let mode = Mode::from_raw_mode(entry.header().mode()? & 0o777);
        self.copied.entries += 1;
        match entry.header().entry_type() {
            EntryType::Directory => self.make_folder(&path, mode),
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                self.make_file(&path, mode, entry)
            }
            EntryType::Symlink => {
                let target = entry.link_name()?.unwrap_or_default().into_owned();
                let (folder, name) = self.parent(&path)?;
                self.clear(&folder, &name)?;
                Ok(rustix::fs::symlinkat(&target, &folder, &name)?)
            }
            EntryType::Link => self.make_link(&path, entry),
            EntryType::XGlobalHeader => Ok(()),
            _ => self.leave_out(&named, "it is no file, folder or link"),
        }
    }

    fn leave_out(&mut self, path: &Path, why: &str) -> io::Result<()> {
        self.copied.entries = self.copied.entries.saturating_sub(1);
        self.copied.notes.push(format!("{}: {why}: left out", path.display()));
        Ok(())
    }

    /// Where an entry is to be, below the folder; the archive's own top is replaced by ours.
    fn place(&self, named: &Path) -> Option<PathBuf> {
        let mut parts = named.components().filter(|part| *part != Component::CurDir);
        parts.next()?;
        let mut place = self.name.clone();
        for part in parts {
            match part {
                Component::Normal(name) => place.push(name),
                _ => return None,
            }
        }
        matches!(named.components().next(), Some(Component::Normal(_) | Component::CurDir)).then_some(place)
    }

    fn open(&self, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        Ok(rustix::fs::openat2(&self.folder, path, flags, Mode::empty(), CONFINED)?)
    }

    fn parent(&self, path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = self.open(parent.unwrap_or(Path::new(".")), FOLDER)?;
        Ok((folder, name.into()))
    }

    /// What was there goes; never what it leads to.
    fn clear(&self, folder: &OwnedFd, name: &Path) -> io::Result<()> {
        match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn make_folder(&mut self, path: &Path, mode: Mode) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        match rustix::fs::mkdirat(&parent, &name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        self.modes.push((path.to_owned(), mode));
        Ok(())
    }

    fn make_file(&mut self, path: &Path, mode: Mode, content: &mut impl Read) -> io::Result<()> {
        let (parent, name) = self.parent(path)?;
        self.clear(&parent, &name)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&parent, &name, flags, Mode::RUSR | Mode::WUSR)?;
        let mut file = File::from(file);
        self.copied.bytes += io::copy(content, &mut file)?;
        Ok(rustix::fs::fchmod(file.as_fd(), mode)?)
    }

    /// A second name of a file that was unpacked before.
    fn make_link(&mut self, path: &Path, entry: &Entry<'_, impl Read>) -> io::Result<()> {
        let named = entry.link_name()?.unwrap_or_default().into_owned();
        let Some(first) = self.place(&named) else {
            return self.leave_out(&named, "its name leads elsewhere");
        };
        let (from, from_name) = self.parent(&first)?;
        let (to, to_name) = self.parent(path)?;
        self.clear(&to, &to_name)?;
        Ok(rustix::fs::linkat(&from, &from_name, &to, &to_name, AtFlags::empty())?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn archive(entries: &[(EntryType, &str, &str)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, path, what) in entries {
            let mut header = tar::Header::new_gnu();
            // The crate's own setters refuse what an attacker would write.
            let name = &mut header.as_old_mut().name;
            name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(*kind);
            header.set_mode(0o6755);
            let content = if *kind == EntryType::Regular { what.as_bytes() } else { &[] };
            header.set_size(content.len() as u64);
            if content.is_empty() {
                let link = &mut header.as_old_mut().linkname;
                link[..what.len()].copy_from_slice(what.as_bytes());
            }
            header.set_cksum();
            bytes.extend(header.as_bytes());
            bytes.extend(content);
            bytes.resize(bytes.len().next_multiple_of(512), 0);
        }
        bytes.resize(bytes.len() + 1024, 0);
        bytes
    }

    fn unpack(into: &Path, entries: &[(EntryType, &str, &str)]) -> io::Result<Copied> {
        Unpacker::new(into, Path::new("top"))?.unpack(archive(entries).as_slice())
    }

    #[test]
    fn an_archive_lands_under_the_name_it_was_given() {
        let into = tempfile::tempdir().unwrap();
        let entries = [
            (EntryType::Directory, "x/", ""),
            (EntryType::Regular, "x/file", "content"),
            (EntryType::Link, "x/again", "x/file"),
            (EntryType::Symlink, "x/link", "/etc/passwd"),
        ];
        let copied = unpack(into.path(), &entries).unwrap();
        assert_eq!((copied.entries, copied.bytes), (4, 7));
        assert_eq!(fs::read_to_string(into.path().join("top/again")).unwrap(), "content");
        assert_eq!(fs::read_link(into.path().join("top/link")).unwrap(), Path::new("/etc/passwd"));
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &fs::metadata(into.path().join("top/file")).unwrap().permissions(),
        );
        assert_eq!(mode & 0o7777, 0o755, "set-user-id bits stay inside");
    }

    #[test]
    fn nothing_gets_out() {
        let outside = tempfile::tempdir().unwrap();
        let into = outside.path().join("into");
        fs::create_dir(&into).unwrap();
        fs::write(outside.path().join("victim"), "untouched").unwrap();
        let attempts: [&[(EntryType, &str, &str)]; 5] = [
            &[(EntryType::Regular, "x/../../victim", "overwritten")],
            &[(EntryType::Regular, "../victim", "overwritten")],
            &[
                (EntryType::Directory, "x", ""),
                (EntryType::Symlink, "x/up", "../.."),
                (EntryType::Regular, "x/up/victim", "overwritten"),
            ],
            &[(EntryType::Symlink, "x", ".."), (EntryType::Regular, "x/victim", "overwritten")],
            &[
                (EntryType::Directory, "x", ""),
                (EntryType::Symlink, "x/file", "../../victim"),
                (EntryType::Regular, "x/file", "overwritten"),
            ],
        ];
        for attempt in attempts {
            let _ = unpack(&into, attempt);
            assert_eq!(
                fs::read_to_string(outside.path().join("victim")).unwrap(),
                "untouched",
                "{attempt:?}"
            );
            fs::remove_dir_all(&into).unwrap();
            fs::create_dir(&into).unwrap();
        }
        let hard = [(EntryType::Directory, "x", ""), (EntryType::Link, "x/in", "x/../../victim")];
        let _ = unpack(&into, &hard);
        assert!(!into.join("top/in").exists(), "a hard link to a file outside");
    }

    #[test]
    fn devices_are_left_out() {
        let into = tempfile::tempdir().unwrap();
        let copied =
            unpack(into.path(), &[(EntryType::Directory, "x", ""), (EntryType::Char, "x/null", "")]).unwrap();
        assert_eq!((copied.entries, copied.notes.len()), (1, 1));
    }
}
