//! A line of a log that somebody else has written.

#![no_main]

use redoma_audit::{Event, Record};

libfuzzer_sys::fuzz_target!(|line: &[u8]| {
    let Ok(record) = Record::parse(line) else { return };
    // A record has one spelling of its head; the number is the first thing that could be written differently.
    assert!(
        line.starts_with(
            format!("{{\"seq\":{},\"prev\":\"{}\",\"at\":\"", record.seq, record.prev).as_bytes()
        )
    );
    assert_eq!(record.json().as_bytes(), line);
    let _ = format!("{:?}", record.event);
    if let Event::Other(unknown) = &record.event {
        let _ = (unknown.kind(), unknown.fields());
    }
});
