//! Untrusted text made safe to show.
//!
//! File names, arguments, host names and output come from inside a sandbox. Shown as they are, they can move the
//! cursor, rewrite lines already printed, set the clipboard (OSC 52), forge a second line of a list, or read differently
//! from what they are (bidirectional overrides, CVE-2021-42574; invisible characters).

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// `text` on one line, with everything that a terminal acts on or an eye cannot see written as an escape.
///
/// Control characters become `\n`, `\t`, `\r` or `\u{1b}`, bytes that are not UTF-8 become `\xff`, and a backslash is
/// doubled, so that two different names never look the same through escaping. Look-alike letters of other alphabets are
/// left alone: they are real names in real languages.
#[must_use]
pub fn printable<S: AsRef<OsStr> + ?Sized>(text: &S) -> Cow<'_, str> {
    escape(text.as_ref().as_bytes(), |_| false)
}

/// As [`printable`], but line feeds and tabs stay, and backslashes are not doubled: for text of several lines, such as a diff.
#[must_use]
pub fn printable_block<S: AsRef<OsStr> + ?Sized>(text: &S) -> Cow<'_, str> {
    escape(text.as_ref().as_bytes(), |character| matches!(character, '\n' | '\t' | '\\'))
}

fn escape(bytes: &[u8], keep: fn(char) -> bool) -> Cow<'_, str> {
    let plain = |character| !is_hazard(character) || keep(character);
    if let Ok(text) = str::from_utf8(bytes)
        && text.chars().all(plain)
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if plain(character) { out.push(character) } else { push_escaped(&mut out, character) }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    Cow::Owned(out)
}

fn push_escaped(out: &mut String, character: char) {
    match character {
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ => {
            let _ = write!(out, "\\u{{{:x}}}", u32::from(character));
        }
    }
}

/// Whether a terminal acts on `character`, or an eye cannot see it; and the backslash, which announces an escape.
pub(crate) fn is_hazard(character: char) -> bool {
    match character {
        ' '..='[' | ']'..='~' => false,
        '\\' => true,
        _ => {
            character.is_control()
                || character.is_whitespace()
                || INVISIBLE.iter().any(|&(first, last)| (first..=last).contains(&character))
        }
    }
}

/// What has no shape of its own: Unicode's format characters (Cf), Default_Ignorable_Code_Point, blank letters and noncharacters.
const INVISIBLE: &[(char, char)] = &[
    ('\u{ad}', '\u{ad}'),        // soft hyphen
    ('\u{34f}', '\u{34f}'),      // combining grapheme joiner
    ('\u{600}', '\u{605}'),      // Arabic number signs, which swallow what follows
    ('\u{61c}', '\u{61c}'),      // Arabic letter mark (bidi)
    ('\u{6dd}', '\u{6dd}'),      // Arabic end of ayah
    ('\u{70f}', '\u{70f}'),      // Syriac abbreviation mark
    ('\u{115f}', '\u{1160}'),    // blank Hangul fillers
    ('\u{17b4}', '\u{17b5}'),    // invisible Khmer vowels
    ('\u{180b}', '\u{180f}'),    // Mongolian selectors and separator
    ('\u{200b}', '\u{200f}'),    // zero width, left-to-right and right-to-left marks
    ('\u{202a}', '\u{202e}'),    // bidi embeddings and overrides
    ('\u{2060}', '\u{206f}'),    // word joiner, invisible operators, bidi isolates
    ('\u{2800}', '\u{2800}'),    // the blank Braille pattern
    ('\u{3164}', '\u{3164}'),    // blank Hangul filler
    ('\u{e000}', '\u{f8ff}'),    // private use: whatever the reader's font says
    ('\u{fdd0}', '\u{fdef}'),    // noncharacters
    ('\u{fe00}', '\u{fe0f}'),    // variation selectors: a known way to hide data
    ('\u{feff}', '\u{feff}'),    // byte order mark
    ('\u{ffa0}', '\u{ffa0}'),    // blank half-width Hangul filler
    ('\u{fff0}', '\u{fffb}'),    // interlinear annotation
    ('\u{fffe}', '\u{ffff}'),    // noncharacters
    ('\u{110bd}', '\u{110bd}'),  // Kaithi number sign
    ('\u{110cd}', '\u{110cd}'),  // Kaithi number sign above
    ('\u{13430}', '\u{1345f}'),  // Egyptian hieroglyph joiners
    ('\u{1bca0}', '\u{1bca3}'),  // shorthand format controls
    ('\u{1d173}', '\u{1d17a}'),  // musical format controls
    ('\u{e0000}', '\u{10ffff}'), // tags and selectors (hidden data), then private use planes
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_text_is_borrowed_as_it_is() {
        for text in ["src/main.rs", "olá, São João", "日本語", "a b", "🙂", "-rf"] {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn what_a_terminal_acts_on_is_escaped() {
        assert_eq!(printable("a\nb\tc\rd"), r"a\nb\tc\rd");
        assert_eq!(printable("\u{1b}]52;c;aGk=\u{7}"), r"\u{1b}]52;c;aGk=\u{7}");
        assert_eq!(printable("\u{9b}2J"), r"\u{9b}2J");
        assert_eq!(printable(OsStr::from_bytes(b"x\x9b2J\xff")), r"x\x9b2J\xff");
    }

    #[test]
    fn what_an_eye_cannot_see_is_escaped() {
        assert_eq!(printable("gpj.\u{202e}exe"), r"gpj.\u{202e}exe");
        assert_eq!(printable("a\u{200b}\u{a0}\u{e0041}\u{2028}"), r"a\u{200b}\u{a0}\u{e0041}\u{2028}");
    }

    #[test]
    fn a_written_escape_differs_from_a_real_one() {
        assert_ne!(printable("\\n"), printable("\n"));
        assert_ne!(printable("\\xff"), printable(OsStr::from_bytes(b"\xff")));
    }

    #[test]
    fn a_block_keeps_its_lines_and_nothing_else() {
        assert_eq!(printable_block("-a\\b\n+\tc\u{1b}[m\r\n"), "-a\\b\n+\tc\\u{1b}[m\\r\n");
    }

    proptest! {
        #[test]
        fn nothing_unprintable_comes_out(bytes: Vec<u8>) {
            let out = printable(OsStr::from_bytes(&bytes)).into_owned();
            prop_assert!(!out.chars().any(|c| c.is_control() || (is_hazard(c) && c != '\\')), "{:?}", out);
        }

        #[test]
        fn different_names_look_different(one: Vec<u8>, two: Vec<u8>) {
            prop_assume!(one != two);
            prop_assert_ne!(printable(OsStr::from_bytes(&one)), printable(OsStr::from_bytes(&two)));
        }
    }
}
