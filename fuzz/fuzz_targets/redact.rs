//! A secret in the middle of anything.

#![no_main]

use redoma_audit::{Argv, Text, redact};

const SECRET: &str = "AKIAIOSFODNN7EXAMPLE";

libfuzzer_sys::fuzz_target!(|halves: (&str, &str)| {
    let (before, after) = halves;
    // Not glued to what is around it: a longer word is another word.
    let text = format!("{before} {SECRET} {after}");
    assert!(!redact(&text).contains(SECRET), "{}", redact(&text));
    assert!(!Text::from(text.as_str()).as_str().contains(SECRET));
    let length = Text::from(text.as_str()).as_str().len();
    // Each secret may become longer by its marker's name.
    assert!(length <= 16 * Text::MAX_LEN, "{length}");
    let argv = Argv::new(text.split(' '));
    assert!(!argv.to_string().contains(SECRET));
});
