//! How much an image may take. What a registry or an archive says of itself is hostile input.

use crate::Error;

/// Bounds for one image. Each is generous for real images and small against what would hurt a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a manifest, an index or a configuration.
    pub document: u64,
    /// Layers of an image. overlayfs takes 500 of them; registries stop at 127.
    pub layers: u64,
    /// Bytes of one blob as it is transferred.
    pub blob: u64,
    /// Bytes of one layer, uncompressed.
    pub unpacked: u64,
    /// Apparent size of one file, holes included.
    pub file: u64,
    /// Entries of one layer.
    pub entries: u64,
    /// Bytes of a path, or of what a link points to.
    pub path: u64,
    /// Folders in each other: removing them keeps each open.
    pub depth: u64,
    /// Bytes of what is said about one entry before it: long names and PAX records.
    pub extension: u64,
    /// How many times its compressed size a layer may have, once it is larger than [`Limits::ratio_from`].
    pub ratio: u64,
    /// Below this many bytes any ratio is fine.
    pub ratio_from: u64,
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

impl Default for Limits {
    fn default() -> Self {
        Self {
            document: 4 * MIB,
            layers: 127,
            blob: 32 * GIB,
            unpacked: 64 * GIB,
            file: 1024 * GIB,
            entries: 4_000_000,
            path: 4095,
            depth: 200,
            extension: MIB,
            ratio: 200,
            ratio_from: 256 * MIB,
        }
    }
}

/// Refuses `value` above `limit`.
pub(crate) fn within(what: &'static str, value: u64, limit: u64) -> Result<(), Error> {
    if value > limit { Err(Error::Limit { what, limit }) } else { Ok(()) }
}
