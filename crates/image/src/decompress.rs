//! Layers as they are transferred: plain, gzip or zstd, told by their first bytes and not by what the manifest says.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

use crate::Error;
use crate::archive::malformed;
use crate::limits::{Limits, within};

/// RFC 1952.
const GZIP: &[u8] = &[0x1f, 0x8b];
/// RFC 8878.
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// Formats that people have tarballs in, and container tools do not.
const OTHERS: [(&[u8], &str); 3] = [(b"\xfd7zXZ\0", "xz"), (b"BZh", "bzip2"), (b"PK\x03\x04", "zip")];
/// The largest window a zstd frame may ask for, as a power of two: what `zstd` itself takes without being asked.
const WINDOW: u32 = 27;
const BUFFER: usize = 128 << 10;

/// Decompresses `file`; as much comes out as `limits` allow for its size.
pub(crate) fn decompress(file: File, limits: &Limits) -> Result<Bounded<Box<dyn Read>>, Error> {
    let compressed = file.metadata().map_err(|source| Error::Stream { source })?.len();
    let mut reader = BufReader::with_capacity(BUFFER, file);
    let start = reader.fill_buf().map_err(|source| Error::Stream { source })?;
    if let Some((_, name)) = OTHERS.iter().find(|(magic, _)| start.starts_with(magic)) {
        return Err(malformed(format!("it is compressed with {name}; tar, tar.gz and tar.zst can be read")));
    }
    let inner: Box<dyn Read> = if start.starts_with(GZIP) {
        Box::new(MultiGzDecoder::new(reader))
    } else if start.starts_with(ZSTD) {
        let mut decoder = zstd::Decoder::with_buffer(reader).map_err(|source| Error::Stream { source })?;
        decoder.window_log_max(WINDOW).map_err(|source| Error::Stream { source })?;
        Box::new(decoder)
    } else {
        Box::new(reader)
    };
    Ok(Bounded { inner, compressed, read: 0, limits: *limits })
}

/// Ends with [`Error::Limit`] what would not end.
pub(crate) struct Bounded<R> {
    inner: R,
    compressed: u64,
    read: u64,
    limits: Limits,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        self.read += count as u64;
        within("the size of an uncompressed layer", self.read, self.limits.unpacked)?;
        if self.read > self.limits.ratio_from {
            let ratio = self.read / self.compressed.max(1);
            within("the ratio of a layer's size to its compressed size", ratio, self.limits.ratio)?;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.rewind().unwrap();
        file
    }

    fn read(bytes: &[u8], limits: &Limits) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        decompress(file(bytes), limits)?.read_to_end(&mut out).map_err(Error::from_stream)?;
        Ok(out)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn all_three_forms_say_the_same() {
        let limits = Limits::default();
        let zstd = zstd::encode_all(&b"layer"[..], 3).unwrap();
        for form in [b"layer".to_vec(), gzip(b"layer"), zstd] {
            assert_eq!(read(&form, &limits).unwrap(), b"layer");
        }
        let twice = [gzip(b"lay"), gzip(b"er")].concat();
        assert_eq!(read(&twice, &limits).unwrap(), b"layer");
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let error = read(b"\xfd7zXZ\0\0", &Limits::default()).unwrap_err().to_string();
        assert!(error.contains("xz"), "{error}");
    }

    #[test]
    fn a_bomb_ends_early_and_the_limit_is_named() {
        let bomb = gzip(&vec![0; 8 << 20]);
        let limits = Limits { ratio_from: 1 << 20, ..Limits::default() };
        assert!(matches!(read(&bomb, &limits), Err(Error::Limit { limit: 200, .. })));
        let limits = Limits { unpacked: 1 << 20, ..Limits::default() };
        assert!(matches!(read(&bomb, &limits), Err(Error::Limit { limit: 0x10_0000, .. })));
        assert_eq!(read(&bomb, &Limits::default()).unwrap().len(), 8 << 20);
    }

    #[test]
    fn a_cut_stream_is_an_error() {
        let whole = gzip(&[7; 100_000]);
        assert!(matches!(read(&whole[..whole.len() - 9], &Limits::default()), Err(Error::Stream { .. })));
    }
}
