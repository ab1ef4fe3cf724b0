//! Random values that a seed, a path and their order decide: BLAKE3 as a keyed, extendable generator.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use blake3::OutputReader;

pub(super) const UPPER: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
pub(super) const LOWER: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
pub(super) const DIGIT: &[u8] = b"0123456789";
pub(super) const HEX: &[u8] = b"0123456789abcdef";
pub(super) const ALNUM: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
pub(super) const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
pub(super) const URLSAFE: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The stream of one decoy.
pub struct Draw(OutputReader);

impl Draw {
    pub(super) fn new(seed: &[u8; 32], path: &Path) -> Self {
        Self(blake3::Hasher::new_keyed(seed).update(path.as_os_str().as_bytes()).finalize_xof())
    }

    pub(super) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.0.fill(&mut bytes);
        bytes
    }

    /// One of `alphabet`. Sixteen bits make its slight preference for the first letters too small to matter here.
    pub(super) fn letter(&mut self, alphabet: &[u8]) -> u8 {
        let number = usize::from(u16::from_le_bytes(self.bytes()));
        alphabet.get(number % alphabet.len().max(1)).copied().unwrap_or(b'x')
    }

    pub(super) fn text(&mut self, alphabet: &[u8], length: usize) -> String {
        (0..length).map(|_| char::from(self.letter(alphabet))).collect()
    }
}
