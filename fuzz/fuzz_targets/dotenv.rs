//! A dotenv file that is covered: any bytes give a file of ASCII that is no longer than they are.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| redoma_sandbox::decoy::dotenv::fuzz(data));
