//! A layer's bytes as they come: reading them ends, in bounded memory, and without a panic.
#![no_main]

use redoma_image::{Limits, Ownership, unpack};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let home = tempfile::tempdir_in("/dev/shm").unwrap();
    let limits = Limits { file: 1 << 24, ..Limits::default() };
    let _refused = unpack(&with_sums(data)[..], home.path(), Ownership::Mine, &limits);
});

/// Every block that could be a header gets the checksum of one; no fuzzer would find them.
fn with_sums(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    for block in bytes.chunks_exact_mut(512).filter(|block| block[257..262] == *b"ustar") {
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    bytes
}
