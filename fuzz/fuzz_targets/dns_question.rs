//! A question for a name, as it comes over the wire.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| redoma_gateway::fuzz::question(bytes));
