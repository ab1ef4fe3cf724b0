//! Whether two entries are the same.

use std::fs::File;
use std::io::{self, ErrorKind, Read};

use crate::tree::attributes;
use crate::{Entry, Error, Kind};

/// Bytes that are compared at a time.
const CHUNK: usize = 128 * 1024;

/// Whether two entries of the same kind have the same content. Folders have none of their own.
pub(crate) fn same_content(a: &Entry, b: &Entry) -> Result<bool, Error> {
    if a.inode == b.inode {
        return Ok(true);
    }
    match a.kind {
        Kind::File => Ok(a.size == b.size && same_bytes(a, b)?),
        Kind::Link => Ok(a.layer.target(&a.path)? == b.layer.target(&b.path)?),
        Kind::BlockDevice | Kind::CharacterDevice => Ok(a.device == b.device),
        Kind::Folder | Kind::Fifo | Kind::Socket => Ok(true),
    }
}

/// Whether two entries have the same mode, owners and attributes. Times do not count: they are not what somebody changed.
pub(crate) fn same_attributes(a: &Entry, b: &Entry) -> Result<bool, Error> {
    if a.inode == b.inode {
        return Ok(true);
    }
    let owned = |entry: &Entry| (entry.mode, entry.uid, entry.gid);
    Ok(owned(a) == owned(b) && attributes(a)? == attributes(b)?)
}

/// Sizes and times can be set to anything: only the bytes tell.
fn same_bytes(a: &Entry, b: &Entry) -> Result<bool, Error> {
    let (mut left, mut right) = (a.layer.file(&a.path)?, b.layer.file(&b.path)?);
    let (mut one, mut other) = (vec![0; CHUNK], vec![0; CHUNK]);
    // Not more than there was: a file may grow for ever.
    for _ in 0..=a.size / CHUNK as u64 {
        let read = fill(a, &mut left, &mut one)?;
        if read != fill(b, &mut right, &mut other)? || one[..read] != other[..read] {
            return Ok(false);
        }
        if read < CHUNK {
            break;
        }
    }
    Ok(true)
}

/// Reads until the buffer is full or the file ends.
fn fill(entry: &Entry, file: &mut File, buffer: &mut [u8]) -> Result<usize, Error> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(source) => return Err(unreadable(entry, source)),
        }
    }
    Ok(filled)
}

fn unreadable(entry: &Entry, source: io::Error) -> Error {
    Error::Read { path: entry.layer.path().join(&entry.path), step: "read", source }
}
