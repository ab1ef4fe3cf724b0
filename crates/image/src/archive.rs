//! Reads tar streams: ustar, GNU and PAX, sparse files included.
//!
//! The `tar` crate reads the header's fields. Its iterator is not used: it keeps long names and PAX records of any size in
//! memory, and splits the latter at line feeds, which binary attributes (`security.capability`) contain.
//!
//! POSIX.1-2017 pax, "ustar Interchange Format" and "pax Header Block"; `info tar`, "Sparse Formats".

mod pax;
mod sparse;

use std::io::{self, Read};

use tar::{EntryType, Header};

use crate::Error;
use crate::limits::{Limits, within};
use pax::Records;
pub(crate) use sparse::Chunk;

/// Everything in a tar stream begins at a multiple of this.
const BLOCK: u64 = 512;

/// Reads the entries of a tar stream one after the other, in bounded memory.
pub(crate) struct Archive<R> {
    inner: R,
    limits: Limits,
    entries: u64,
    /// What is left of the current entry's data.
    data: u64,
    /// The zeros after it.
    padding: u64,
    ended: bool,
}

/// One entry. Its data is read from the archive.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) path: Vec<u8>,
    pub(crate) link: Vec<u8>,
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mtime: Time,
    /// Apparent size, holes included.
    pub(crate) size: u64,
    /// Where the data belongs; without holes, one piece.
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
    Symlink,
    Hardlink,
    Fifo,
    Device,
    Other(u8),
}

/// Seconds since 1970, and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
}

/// What the entries before an entry say about it.
#[derive(Default)]
struct Extensions {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    pax: Records,
}

/// A malformed archive.
pub(crate) fn malformed(what: impl Into<String>) -> Error {
    Error::Archive { what: what.into() }
}

// === impl Archive ===

impl<R: Read> Archive<R> {
    pub(crate) fn new(inner: R, limits: &Limits) -> Self {
        Self { inner, limits: *limits, entries: 0, data: 0, padding: 0, ended: false }
    }

    /// The next entry; `None` at the end. What was not read of the one before is skipped.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, Error> {
        let mut extensions = Extensions::default();
        while let Some(header) = self.header()? {
            match header.entry_type() {
                EntryType::GNULongName => extensions.path = Some(until_nul(self.extension(&header)?)),
                EntryType::GNULongLink => extensions.link = Some(until_nul(self.extension(&header)?)),
                EntryType::XHeader => extensions.pax = Records::parse(&self.extension(&header)?)?,
                // Nothing that images need is said for all entries at once; container tools ignore it as well.
                EntryType::XGlobalHeader => drop(self.extension(&header)?),
                _ => return self.entry(&header, extensions).map(Some),
            }
        }
        Ok(None)
    }

    /// Reads to the end of the stream; whether the archive had its end mark.
    pub(crate) fn finish(mut self) -> Result<bool, Error> {
        io::copy(&mut self.inner, &mut io::sink()).map_err(Error::from_stream)?;
        Ok(self.ended)
    }

    /// Header, checksum checked; `None` at the end mark or the end of the stream.
    fn header(&mut self) -> Result<Option<Header>, Error> {
        if self.ended {
            return Ok(None);
        }
        self.skip()?;
        let mut header = Header::new_old();
        if !self.block(header.as_mut_bytes())? {
            return Ok(None);
        }
        if header.as_bytes().iter().all(|byte| *byte == 0) {
            self.ended = true;
            return Ok(None);
        }
        check_sum(&header)?;
        self.entries += 1;
        within("the number of entries", self.entries, self.limits.entries)?;
        self.expect(header.entry_size().map_err(field)?)?;
        Ok(Some(header))
    }

    /// The current entry has `size` bytes of data.
    fn expect(&mut self, size: u64) -> Result<(), Error> {
        within("the size of a file", size, self.limits.unpacked)?;
        self.data = size;
        self.padding = size.next_multiple_of(BLOCK) - size;
        Ok(())
    }

    fn entry(&mut self, header: &Header, extensions: Extensions) -> Result<Entry, Error> {
        let Extensions { path, link, mut pax } = extensions;
        if let Some(size) = pax.number("size")? {
            self.expect(size)?;
        }
        let path = path.or_else(|| pax.take("path")).unwrap_or_else(|| header.path_bytes().into_owned());
        let name = pax.take("GNU.sparse.name");
        let kind = kind(header, &path);
        let link = link.or_else(|| pax.take("linkpath"));
        let link = link.unwrap_or_else(|| header.link_name_bytes().unwrap_or_default().into_owned());
        // A link has no data, whatever its header says: GNU tar writes the target's size there.
        if kind != Kind::File && !matches!(kind, Kind::Other(_)) {
            self.expect(0)?;
        }
        let (size, chunks) = self.layout(header, &pax)?;
        Ok(Entry {
            path: name.unwrap_or(path),
            link,
            kind,
            mode: number(&header.as_old().mode, || header.mode().map(u64::from))? as u32 & 0o7777,
            uid: id(pax.number("uid")?, || number(&header.as_old().uid, || header.uid()))?,
            gid: id(pax.number("gid")?, || number(&header.as_old().gid, || header.gid()))?,
            mtime: match pax.time("mtime")? {
                Some(time) => time,
                // Before 1970 GNU tar writes a negative number, in two's complement.
                None => Time {
                    seconds: number(&header.as_old().mtime, || header.mtime())?.cast_signed(),
                    nanoseconds: 0,
                },
            },
            size,
            chunks,
            xattrs: pax.xattrs(),
        })
    }

    /// Apparent size, and where the data belongs.
    fn layout(&mut self, header: &Header, pax: &Records) -> Result<(u64, Vec<Chunk>), Error> {
        let (size, chunks) = match (header.entry_type(), header.as_gnu()) {
            (EntryType::GNUSparse, Some(gnu)) => sparse::of_gnu(self, gnu)?,
            _ => match sparse::of_pax(self, pax)? {
                Some(found) => found,
                None => (self.data, vec![Chunk { offset: 0, length: self.data }]),
            },
        };
        within("the size of a file with its holes", size, self.limits.file)?;
        sparse::check(&chunks, size, self.data)?;
        Ok((size, chunks))
    }

    /// The data of an entry that describes another.
    fn extension(&mut self, header: &Header) -> Result<Vec<u8>, Error> {
        within("the length of what precedes an entry", self.data, self.limits.extension)?;
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes).map_err(Error::from_stream)?;
        if bytes.len() as u64 != header.entry_size().map_err(field)? {
            return Err(malformed("it ends within an entry"));
        }
        Ok(bytes)
    }

    /// What is left of the current entry, and the zeros after it.
    fn skip(&mut self) -> Result<(), Error> {
        let left = self.data;
        if self.pass(left)? != left {
            return Err(malformed("it ends within an entry"));
        }
        // umoci leaves out the zeros after the last entry, and the end mark.
        self.pass(self.padding)?;
        (self.data, self.padding) = (0, 0);
        Ok(())
    }

    fn pass(&mut self, bytes: u64) -> Result<u64, Error> {
        io::copy(&mut (&mut self.inner).take(bytes), &mut io::sink()).map_err(Error::from_stream)
    }

    /// Fills one block; whether there was one.
    fn block(&mut self, block: &mut [u8; BLOCK as usize]) -> Result<bool, Error> {
        let mut filled = 0;
        while filled < block.len() {
            match self.inner.read(&mut block[filled..]) {
                Ok(0) if filled == 0 => return Ok(false),
                Ok(0) => return Err(malformed("it ends within a header")),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::from_stream(error)),
            }
        }
        Ok(true)
    }
}

/// The current entry's data.
impl<R: Read> Read for Archive<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.data).unwrap_or(usize::MAX).min(into.len());
        if most == 0 {
            return Ok(0);
        }
        let count = self.inner.read(&mut into[..most])?;
        if count == 0 {
            return Err(malformed("it ends within a file").into());
        }
        self.data -= count as u64;
        Ok(count)
    }
}

fn kind(header: &Header, path: &[u8]) -> Kind {
    match header.entry_type() {
        // Before ustar a folder was a file with a slash at its end.
        EntryType::Regular | EntryType::Continuous if path.ends_with(b"/") => Kind::Folder,
        EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => Kind::File,
        EntryType::Directory => Kind::Folder,
        EntryType::Symlink => Kind::Symlink,
        EntryType::Link => Kind::Hardlink,
        EntryType::Fifo => Kind::Fifo,
        EntryType::Char | EntryType::Block => Kind::Device,
        other => Kind::Other(other.as_byte()),
    }
}

fn check_sum(header: &Header) -> Result<(), Error> {
    let bytes = header.as_bytes();
    let plain = bytes[..148].iter().chain(&bytes[156..]).map(|byte| u32::from(*byte)).sum::<u32>();
    // The sum is made with its own field as eight spaces.
    let sum = plain + 8 * u32::from(b' ');
    if header.cksum().map_err(field)? == sum {
        Ok(())
    } else {
        Err(malformed("a header's checksum is wrong"))
    }
}

/// Some programs leave a number's field blank where they mean 0.
fn number(bytes: &[u8], read: impl FnOnce() -> io::Result<u64>) -> Result<u64, Error> {
    if bytes.iter().all(|byte| matches!(byte, 0 | b' ')) { Ok(0) } else { read().map_err(field) }
}

fn field(error: io::Error) -> Error {
    error.into_inner().map_or_else(|| malformed("a number is broken"), |inner| malformed(inner.to_string()))
}

/// A user's or group's number. The highest one means "leave it" to `chown(2)`.
fn id(pax: Option<u64>, header: impl FnOnce() -> Result<u64, Error>) -> Result<u32, Error> {
    let id = pax.map_or_else(header, Ok)?;
    u32::try_from(id)
        .ok()
        .filter(|id| *id != u32::MAX)
        .ok_or_else(|| malformed(format!("there is no user {id}")))
}

fn until_nul(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(end) = bytes.iter().position(|byte| *byte == 0) {
        bytes.truncate(end);
    }
    bytes
}

#[cfg(test)]
mod tests;
