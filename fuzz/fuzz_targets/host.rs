//! A host as a client names it: whatever is taken has one spelling, which is read as the same host again.

#![no_main]

use redoma_policy::{Authority, Host};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(host) = Host::from_bytes(bytes) {
        let one = host.to_string();
        assert!(one.len() <= 253 && one.bytes().all(|b| b.is_ascii_graphic() && !b.is_ascii_uppercase()));
        assert_eq!(one.parse(), Ok(host));
    }
    if let Ok(authority) = Authority::from_bytes(bytes) {
        assert_ne!(authority.port, Some(0));
        assert_eq!(authority.to_string().parse(), Ok(authority));
    }
});
