//! A BLAKE3 hash as it stands in the log.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Error;

/// A BLAKE3 hash, written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl From<blake3::Hash> for Digest {
    fn from(hash: blake3::Hash) -> Self {
        Self(*hash.as_bytes())
    }
}

impl Digest {
    /// The number of hexadecimal digits in the written form.
    pub const HEX_LEN: usize = 64;

    /// The hash of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// The hash itself.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Reads the written form; upper case is refused, since a record has one spelling only.
    pub(crate) fn from_hex(hex: &[u8]) -> Option<Self> {
        decode_hex(hex).map(Self)
    }

    /// The written form.
    pub(crate) fn to_hex(self) -> [u8; Self::HEX_LEN] {
        let mut hex = [0; Self::HEX_LEN];
        for (pair, byte) in hex.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&digits(byte));
        }
        hex
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// A byte as two digits.
fn digits(byte: u8) -> [u8; 2] {
    [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]
}

/// `bytes` in lower-case hexadecimal.
pub(crate) fn encode_hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|&byte| digits(byte)).map(char::from).collect()
}

/// Exactly `N` bytes from `2 * N` lower-case hexadecimal digits.
pub(crate) fn decode_hex<const N: usize>(hex: &[u8]) -> Option<[u8; N]> {
    if hex.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
        *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
    }
    Some(bytes)
}

fn nibble(digit: u8) -> Option<u8> {
    let value = NIBBLES[usize::from(digit)];
    (value < 16).then_some(value)
}

/// The value of each digit, 255 for what is none. A table, since verification reads 64 digits of every line.
const NIBBLES: [u8; 256] = {
    let mut table = [255; 256];
    let mut value = 0;
    while value < HEX.len() {
        table[HEX[value] as usize] = value as u8;
        value += 1;
    }
    table
};

// === impl Digest ===

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::from_hex(text.as_bytes()).ok_or(Error::Digest)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&encode_hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_goes_both_ways_in_one_spelling() {
        let digest = Digest::of(b"redoma");
        assert_eq!(digest.to_string().as_bytes(), digest.to_hex());
        assert_eq!(digest.to_string().parse::<Digest>().unwrap(), digest);
        assert!(digest.to_string().to_uppercase().parse::<Digest>().is_err());
        assert!("00".parse::<Digest>().is_err());
    }
}
