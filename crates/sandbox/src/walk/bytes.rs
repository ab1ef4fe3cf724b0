//! The binary form of what is kept between sessions: little-endian numbers, and bytes after their length. The end is the
//! BLAKE3 hash of all before it, against a torn write.

/// Appends a number.
pub(crate) fn put(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// Appends bytes and, before them, how many.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends the hash.
pub(crate) fn seal(mut out: Vec<u8>) -> Vec<u8> {
    let hash = blake3::hash(&out);
    out.extend_from_slice(hash.as_bytes());
    out
}

/// What lies between `magic` and the hash, if both are right.
pub(crate) fn unseal<'a>(sealed: &'a [u8], magic: &[u8]) -> Option<Input<'a>> {
    let (content, hash) = sealed.split_last_chunk::<32>()?;
    let whole = blake3::hash(content) == blake3::Hash::from_bytes(*hash);
    content.strip_prefix(magic).filter(|_| whole).map(Input)
}

/// The rest of what is to be parsed.
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        self.take(length)
    }

    /// A number of things of at least eight bytes each: more than there are bytes left cannot be.
    pub(crate) fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.0.len() / 8).then_some(count)
    }
}
