//! What a walk found, kept for the next start: one file per root and set of patterns.
//!
//! The file lies where no sandbox can write. It ends with its own BLAKE3 hash, against a torn write; whatever cannot be
//! read as expected is ignored and written anew.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::bytes::{self, Input, put, put_bytes};
use super::scan::{self, Note, Record};
use super::tree::Identity;
use super::{FileKind, Match, Verdict};

const MAGIC: &[u8; 8] = b"RDWALK\x00\x01";

/// Caches kept; each root and each change of the patterns makes one.
const FILES: usize = 64;

/// A cache of the largest walk that [`super::Limits`] allows stays below this.
const SIZE_MAX: u64 = 1 << 30;

/// File systems of this kernel's own, which give a folder a new ctime with every change, seen by everybody at once.
/// Others (NFS, FUSE, 9p, virtiofs, CIFS) may be changed elsewhere and show it late, so they are read each time.
const KEEP_CTIME: [u64; 9] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683E, // btrfs
    0x0102_1994, // tmpfs
    0x8584_58F6, // ramfs
    0x794C_7630, // overlayfs
    0xF2F5_2010, // f2fs
    0x2FC1_2FC1, // zfs
    0xCA45_1A4E, // bcachefs
];

/// What a cache file holds.
#[derive(Debug, PartialEq)]
pub(super) struct Cached {
    pub(super) inodes: BTreeSet<u64>,
    pub(super) records: Vec<Record>,
}

/// Whether a folder on this file system can be known to be unchanged.
pub(crate) fn keeps_ctime(dir: &OwnedFd) -> bool {
    scan::magic(dir).is_some_and(|magic| KEEP_CTIME.contains(&magic))
}

fn file(dir: &Path, root: &Path, fingerprint: &[u8]) -> PathBuf {
    let mut hash = blake3::Hasher::new_derive_key("redoma walk cache name");
    hash.update(&(fingerprint.len() as u64).to_le_bytes())
        .update(fingerprint)
        .update(root.as_os_str().as_bytes());
    dir.join(format!("walk-{}", &hash.finalize().to_hex()[..32]))
}

/// Reads the cache, if there is one that makes sense.
pub(super) fn load(dir: &Path, root: &Path, fingerprint: &[u8]) -> Option<Cached> {
    let path = file(dir, root, fingerprint);
    if fs::symlink_metadata(&path).ok()?.len() > SIZE_MAX {
        return None;
    }
    parse(&fs::read(path).ok()?, root)
}

#[cfg(test)]
pub(super) fn load_for_test(file: &Path, root: &Path) -> Cached {
    parse(&fs::read(file).expect("the cache was written"), root).expect("the cache is whole")
}

/// Writes the cache aside and renames it into place; prunes the oldest.
pub(super) fn store(
    dir: &Path,
    root: &Path,
    fingerprint: &[u8],
    inodes: &BTreeSet<u64>,
    records: &[Record],
) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    let path = file(dir, root, fingerprint);
    let aside = path.with_extension(format!("{}.new", std::process::id()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600).custom_flags(nofollow());
    options.open(&aside)?.write_all(&render(root, inodes, records))?;
    fs::rename(&aside, &path)?;
    prune(dir)
}

fn nofollow() -> i32 {
    rustix::fs::OFlags::NOFOLLOW.bits().cast_signed()
}

fn prune(dir: &Path) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().as_bytes().starts_with(b"walk-") {
            files.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    files.sort();
    let surplus = files.len().saturating_sub(FILES);
    files[..surplus].iter().try_for_each(|(_, path)| fs::remove_file(path))
}

fn render(root: &Path, inodes: &BTreeSet<u64>, records: &[Record]) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + records.len() * 80);
    out.extend_from_slice(MAGIC);
    put_bytes(&mut out, root.as_os_str().as_bytes());
    put(&mut out, inodes.len() as u64);
    inodes.iter().for_each(|inode| put(&mut out, *inode));
    put(&mut out, records.len() as u64);
    for record in records {
        put_bytes(&mut out, record.rel.to_bytes());
        put(&mut out, record.identity.dev);
        put(&mut out, record.identity.ino);
        put(&mut out, record.identity.ctime.cast_unsigned());
        out.push(u8::from(record.again));
        put(&mut out, record.notes.len() as u64);
        record.notes.iter().for_each(|note| render_note(&mut out, note));
    }
    bytes::seal(out)
}

fn render_note(out: &mut Vec<u8>, note: &Note) {
    put_bytes(out, &note.name);
    out.push(note.kind as u8);
    out.push(u8::from(note.unreadable));
    out.push(match note.matched.map(|matched| matched.verdict) {
        None => 0,
        Some(Verdict::Deny) => 1,
        Some(Verdict::Protect) => 2,
        Some(Verdict::Note) => 3,
    });
    put(out, note.matched.map_or(0, |matched| matched.rule.into()));
    out.push(u8::from(note.inode.is_some()));
    put(out, note.inode.unwrap_or(0));
}

fn parse(content: &[u8], root: &Path) -> Option<Cached> {
    let mut input = bytes::unseal(content, MAGIC)?;
    if input.bytes()? != root.as_os_str().as_bytes() {
        return None;
    }
    let inodes = (0..input.count()?).map(|_| input.number()).collect::<Option<_>>()?;
    let count = input.count()?;
    let mut records = Vec::with_capacity(count);
    for _ in 0..count {
        records.push(input.record()?);
    }
    Some(Cached { inodes, records })
}

/// What is read back.
trait ReadRecord {
    fn record(&mut self) -> Option<Record>;
    fn note(&mut self) -> Option<Note>;
}

impl ReadRecord for Input<'_> {
    fn record(&mut self) -> Option<Record> {
        let rel = CString::new(self.bytes()?).ok()?;
        let (dev, ino, ctime) = (self.number()?, self.number()?, self.number()?.cast_signed());
        let again = self.byte()? != 0;
        let notes = (0..self.count()?).map(|_| self.note()).collect::<Option<_>>()?;
        Some(Record { rel, identity: Identity { dev, ino, ctime }, again, notes })
    }

    fn note(&mut self) -> Option<Note> {
        let name = self.bytes()?.to_vec();
        let kind = kind(self.byte()?)?;
        let unreadable = self.byte()? != 0;
        let verdict = self.byte()?;
        let rule = u32::try_from(self.number()?).ok()?;
        let matched = match verdict {
            0 => None,
            1 => Some(Match { verdict: Verdict::Deny, rule }),
            2 => Some(Match { verdict: Verdict::Protect, rule }),
            3 => Some(Match { verdict: Verdict::Note, rule }),
            _ => return None,
        };
        let inode = (self.byte()? != 0).then_some(());
        let number = self.number()?;
        Some(Note { name, kind, matched, inode: inode.map(|()| number), unreadable })
    }
}

fn kind(byte: u8) -> Option<FileKind> {
    use FileKind::{Device, Dir, Fifo, File, Socket, Symlink};
    [File, Dir, Symlink, Socket, Fifo, Device].into_iter().find(|kind| *kind as u8 == byte)
}
