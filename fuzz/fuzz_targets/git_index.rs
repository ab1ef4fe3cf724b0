//! The names in git's index, which a session may have written.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| redoma_sandbox::undo::fuzz_index(data));
