//! What a client says to the HTTP and SOCKS proxy.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| redoma_gateway::fuzz::proxy(bytes));
