//! SHA-256 digests, as OCI writes them.
//!
//! <https://github.com/opencontainers/image-spec/blob/main/descriptor.md#digests>. SHA-512 is registered there too, but no
//! registry is known that makes images with it; it is refused by name.

use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

use aws_lc_rs::digest::{Context, SHA256};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};

use crate::Error;

/// The SHA-256 digest of a manifest, a configuration or a blob: `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// The digest of a layer's uncompressed tar stream: what the layer is called on disk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DiffId(Digest);

/// Adds bytes up to a [`Digest`].
pub(crate) struct Hasher {
    context: Context,
    bytes: u64,
}

/// Hashes and counts what is read through it.
pub(crate) struct HashingReader<R> {
    inner: R,
    hasher: Hasher,
}

// === impl Digest ===

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(bytes);
        hasher.finish()
    }

    /// The 64 digits alone.
    #[must_use]
    pub fn hex(&self) -> String {
        HEXLOWER.encode(&self.0)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = || Error::Digest { text: text.to_owned() };
        let hex = text.strip_prefix("sha256:").ok_or_else(invalid)?;
        let bytes = HEXLOWER.decode(hex.as_bytes()).map_err(|_| invalid())?;
        Ok(Self(bytes.try_into().map_err(|_| invalid())?))
    }
}

impl TryFrom<String> for Digest {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

// === impl DiffId ===

impl DiffId {
    /// The name of the layer's folder: 64 hexadecimal digits.
    #[must_use]
    pub fn hex(&self) -> String {
        self.0.hex()
    }

    /// The layer whose folder has this name; `None` where it is not one.
    #[must_use]
    pub fn from_hex(hex: &str) -> Option<Self> {
        format!("sha256:{hex}").parse().ok().map(Self)
    }
}

impl From<Digest> for DiffId {
    fn from(digest: Digest) -> Self {
        Self(digest)
    }
}

impl From<DiffId> for Digest {
    fn from(id: DiffId) -> Self {
        id.0
    }
}

impl fmt::Display for DiffId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for DiffId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

// === impl Hasher ===

impl Hasher {
    pub(crate) fn new() -> Self {
        Self { context: Context::new(&SHA256), bytes: 0 }
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.context.update(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// How much was hashed.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn finish(self) -> Digest {
        let mut digest = [0; 32];
        // SHA-256 is 32 bytes by definition.
        digest.copy_from_slice(self.context.finish().as_ref());
        Digest(digest)
    }
}

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

// === impl HashingReader ===

impl<R: Read> HashingReader<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, hasher: Hasher::new() }
    }

    /// The digest of what was read.
    pub(crate) fn finish(self) -> Digest {
        self.hasher.finish()
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(into)?;
        self.hasher.update(&into[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-4, the empty message.
    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_digest_is_written_as_it_is_read() {
        assert_eq!(Digest::of(b"").to_string(), EMPTY);
        assert_eq!(EMPTY.parse::<Digest>().unwrap(), Digest::of(b""));
    }

    #[test]
    fn what_could_name_another_file_is_no_digest() {
        for text in ["", "sha256:", "sha512:00", "sha256:../../etc", &EMPTY.to_uppercase(), &EMPTY[..70]] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_reader_hashes_what_went_through_it() {
        let mut reader = HashingReader::new(&b"abc"[..]);
        io::copy(&mut reader, &mut io::sink()).unwrap();
        assert_eq!(reader.finish(), Digest::of(b"abc"));
    }
}
