//! Any bytes, shown on a terminal.

#![no_main]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use redoma_audit::Text;
use redoma_audit::escape::{printable, printable_block};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = OsStr::from_bytes(bytes);
    let line = printable(text);
    assert!(!line.chars().any(is_harmful), "{line:?}");
    assert!(!printable_block(text).chars().any(|c| is_harmful(c) && !matches!(c, '\n' | '\t')));
    assert!(!Text::new(text).to_string().chars().any(is_harmful));
});

/// Written apart from the table that is tested: what moves the cursor, turns the direction or cannot be seen.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || (c.is_whitespace() && c != ' ')
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}')
}
