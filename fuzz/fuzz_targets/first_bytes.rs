//! A connection's first bytes: TLS, HTTP, or something else.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| redoma_gateway::fuzz::first_bytes(bytes));
