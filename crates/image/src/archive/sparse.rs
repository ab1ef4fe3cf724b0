//! Files with holes: GNU's old format and its three PAX formats.

use std::io::Read;

use tar::{GnuExtSparseHeader, GnuHeader, GnuSparseHeader};

use super::pax::{Records, decimal};
use super::{Archive, BLOCK, field, malformed};
use crate::Error;
use crate::limits::within;

/// A piece of data and where it belongs in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// Bytes that one piece takes in the old format; how many there may be follows from it.
const DESCRIPTION: u64 = 24;

/// The old format: pieces in the header, and in as many blocks after it as it takes.
pub(super) fn of_gnu<R: Read>(archive: &mut Archive<R>, gnu: &GnuHeader) -> Result<(u64, Vec<Chunk>), Error> {
    let mut chunks = Vec::new();
    add(&mut chunks, &gnu.sparse)?;
    let mut more = gnu.is_extended();
    while more {
        within("the pieces of a sparse file", chunks.len() as u64, archive.limits.extension / DESCRIPTION)?;
        let mut block = GnuExtSparseHeader::new();
        if !archive.block(block.as_mut_bytes())? {
            return Err(malformed("it ends within a sparse file"));
        }
        add(&mut chunks, &block.sparse)?;
        more = block.is_extended();
    }
    Ok((gnu.real_size().map_err(field)?, chunks))
}

fn add(chunks: &mut Vec<Chunk>, pieces: &[GnuSparseHeader]) -> Result<(), Error> {
    for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
        chunks.push(Chunk { offset: piece.offset().map_err(field)?, length: piece.length().map_err(field)? });
    }
    Ok(())
}

/// The PAX formats; `None` where the file has no holes.
pub(super) fn of_pax<R: Read>(
    archive: &mut Archive<R>,
    pax: &Records,
) -> Result<Option<(u64, Vec<Chunk>)>, Error> {
    let size = || pax.number("GNU.sparse.size")?.ok_or_else(|| malformed("a sparse file has no size"));
    if pax.get("GNU.sparse.major") == Some(b"1") {
        let size =
            pax.number("GNU.sparse.realsize")?.ok_or_else(|| malformed("a sparse file has no size"))?;
        return Ok(Some((size, of_data(archive)?)));
    }
    if let Some(map) = pax.get("GNU.sparse.map") {
        let numbers = map.split(|byte| *byte == b',').map(decimal).collect::<Result<Vec<_>, _>>()?;
        return Ok(Some((size()?, pairs(&numbers)?)));
    }
    if !pax.sparse.is_empty() {
        return Ok(Some((size()?, of_records(pax)?)));
    }
    Ok(None)
}

/// Format 0.0: one record for each number.
fn of_records(pax: &Records) -> Result<Vec<Chunk>, Error> {
    let keys: Vec<&[u8]> = pax.sparse.iter().map(|(key, _)| key.as_slice()).collect();
    if keys.chunks(2).any(|pair| pair != [&b"GNU.sparse.offset"[..], b"GNU.sparse.numbytes"]) {
        return Err(malformed("a sparse file's map is broken"));
    }
    let numbers = pax.sparse.iter().map(|(_, value)| decimal(value)).collect::<Result<Vec<_>, _>>()?;
    pairs(&numbers)
}

fn pairs(numbers: &[u64]) -> Result<Vec<Chunk>, Error> {
    let (pairs, []) = numbers.as_chunks::<2>() else {
        return Err(malformed("a sparse file's map is broken"));
    };
    Ok(pairs.iter().map(|&[offset, length]| Chunk { offset, length }).collect())
}

/// Format 1.0: the map stands before the data, a number a line, filled up to a block.
fn of_data<R: Read>(archive: &mut Archive<R>) -> Result<Vec<Chunk>, Error> {
    let mut lines = Lines { archive, block: [0; BLOCK as usize], used: BLOCK as usize, read: 0 };
    let count = lines.number()?;
    within("the pieces of a sparse file", count, lines.archive.limits.extension / DESCRIPTION)?;
    let numbers = (0..count * 2).map(|_| lines.number()).collect::<Result<Vec<_>, _>>()?;
    pairs(&numbers)
}

/// Numbers in whole blocks of an entry's data.
struct Lines<'a, R> {
    archive: &'a mut Archive<R>,
    block: [u8; BLOCK as usize],
    used: usize,
    read: u64,
}

impl<R: Read> Lines<'_, R> {
    fn number(&mut self) -> Result<u64, Error> {
        let mut digits = Vec::new();
        loop {
            match self.byte()? {
                b'\n' => return decimal(&digits),
                byte if digits.len() < 20 => digits.push(byte),
                _ => return Err(malformed("a sparse file's map is broken")),
            }
        }
    }

    fn byte(&mut self) -> Result<u8, Error> {
        if self.used == self.block.len() {
            self.read += BLOCK;
            within("the map of a sparse file", self.read, self.archive.limits.extension)?;
            self.archive
                .read_exact(&mut self.block)
                .map_err(|_| malformed("it ends within a sparse file"))?;
            self.used = 0;
        }
        self.used += 1;
        Ok(self.block[self.used - 1])
    }
}

/// Pieces lie in order, within the file, and use up the data.
pub(super) fn check(chunks: &[Chunk], size: u64, data: u64) -> Result<(), Error> {
    let (mut end, mut sum) = (0_u64, 0_u64);
    for chunk in chunks {
        if chunk.offset < end {
            return Err(malformed("the pieces of a sparse file overlap"));
        }
        let next = chunk.offset.checked_add(chunk.length).filter(|next| *next <= size);
        end = next.ok_or_else(|| malformed("a piece of a sparse file lies outside of it"))?;
        sum += chunk.length;
    }
    if sum == data { Ok(()) } else { Err(malformed("a sparse file's map and its data differ")) }
}
