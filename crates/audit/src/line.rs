//! The form of a line, the same in a session's log and in the ledger.
//!
//! `{"seq":N,"prev":"64 hex digits","at":"2026-12-01T08:30:00.000000Z","kind":"…",…}` and a line feed. There is one
//! spelling for every record, and the head has a fixed layout, so that the chain is checked without parsing JSON:
//! whatever byte changes, the hash in the next line does not fit.

use std::io::{self, Write};

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use crate::escape::is_hazard;
use crate::{Digest, Error};

/// The most bytes of a line, its line feed included. Texts and arguments are capped so far below that no real event gets here;
/// a reader needs a bound, since the file may have been tampered with.
pub(crate) const MAX_LINE: usize = 512 * 1024;

const SEQ: &[u8] = br#"{"seq":"#;
const PREV: &[u8] = br#","prev":""#;
const AT: &[u8] = br#"","at":""#;
const KIND: &[u8] = br#"","kind":""#;
/// `2026-12-01T08:30:00.000000Z`: a fixed width, so that the order of the bytes is the order of time.
pub(crate) const AT_LEN: usize = 27;
const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(6));

/// Where the next record of a file goes: its number, and the hash of the line before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) seq: u64,
    pub(crate) prev: Digest,
}

/// The head of a line and what follows.
#[derive(Debug)]
pub(crate) struct Head<'a> {
    pub(crate) chain: Chain,
    /// The time as it is written.
    pub(crate) at: &'a [u8; AT_LEN],
    pub(crate) kind: &'a [u8],
    /// The event: from the quote before `kind` to the closing brace.
    body: &'a [u8],
}

// === impl Chain ===

impl Chain {
    pub(crate) fn start(prev: Digest) -> Self {
        Self { seq: 0, prev }
    }

    /// Writes the line of `record` behind what `out` holds, without its line feed.
    pub(crate) fn write(
        &self,
        out: &mut Vec<u8>,
        at: Timestamp,
        record: &impl Serialize,
    ) -> Result<(), Error> {
        let start = out.len();
        out.extend_from_slice(SEQ);
        let _ = write!(out, "{}", self.seq);
        out.extend_from_slice(PREV);
        out.extend_from_slice(&self.prev.to_hex());
        out.extend_from_slice(AT);
        // Before 1970 the year might be longer than four digits.
        let _ = PRINTER.print_timestamp(&at.max(Timestamp::UNIX_EPOCH), jiff::fmt::StdIoWrite(&mut *out));
        out.push(b'"');
        let body = out.len();
        let written = record.serialize(&mut Serializer::with_formatter(&mut *out, Visible));
        let bytes = out.len() - start;
        if written.is_err() || bytes >= MAX_LINE {
            out.truncate(start);
            return Err(Error::TooLong { bytes });
        }
        // The brace that opens the event becomes the comma that continues the head.
        out[body] = b',';
        Ok(())
    }

    /// Goes behind `line`, which has no line feed.
    pub(crate) fn advance(&mut self, line: &[u8]) {
        *self = Self { seq: self.seq + 1, prev: Digest::of(line) };
    }
}

// === impl Head ===

impl<'a> Head<'a> {
    /// Reads the head of `line`, which has no line feed.
    ///
    /// # Errors
    /// What does not fit.
    pub(crate) fn parse(line: &'a [u8]) -> Result<Self, &'static str> {
        Self::read(line, Digest::from_hex)
    }

    /// As [`Head::parse`], faster where the hash is the one that is expected: it is then compared, not decoded.
    pub(crate) fn parse_expecting(line: &'a [u8], prev: Digest) -> Result<Self, &'static str> {
        Self::read(line, |hex| if hex == prev.to_hex() { Some(prev) } else { Digest::from_hex(hex) })
    }

    fn read(line: &'a [u8], digest: impl FnOnce(&[u8]) -> Option<Digest>) -> Result<Self, &'static str> {
        let rest = line.strip_prefix(SEQ).ok_or("it does not start with its number")?;
        let (seq, rest) = parse_seq(rest)?;
        let rest = rest.strip_prefix(PREV).ok_or("its number is not followed by a hash")?;
        let (prev, rest) = rest.split_at_checked(Digest::HEX_LEN).ok_or("its hash is cut off")?;
        let prev = digest(prev).ok_or("its hash is not 64 hexadecimal digits")?;
        let rest = rest.strip_prefix(AT).ok_or("its hash is not followed by a time")?;
        let (at, rest) = rest.split_first_chunk().ok_or("its time is cut off")?;
        check_at(at)?;
        let after = rest.strip_prefix(KIND).ok_or("its time is not followed by a kind")?;
        let kind = &after[..memchr::memchr(b'"', after).ok_or("its kind does not end")?];
        if !after.ends_with(b"}") {
            return Err("it does not end with a brace");
        }
        Ok(Self { chain: Chain { seq, prev }, at, kind, body: &rest[2..] })
    }

    /// The event, as JSON of its own.
    pub(crate) fn body(&self) -> Vec<u8> {
        [b"{", self.body].concat()
    }

    /// The time; `None` if there is no such time, as on the 31st of February.
    pub(crate) fn timestamp(&self) -> Option<Timestamp> {
        str::from_utf8(self.at).ok()?.parse().ok()
    }
}

/// A number without leading zeros, and what follows it.
fn parse_seq(text: &[u8]) -> Result<(u64, &[u8]), &'static str> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 || length > 19 || (text[0] == b'0' && length > 1) {
        return Err("its number is not a plain number");
    }
    let (digits, rest) = text.split_at(length);
    Ok((digits.iter().fold(0, |seq, digit| seq * 10 + u64::from(digit - b'0')), rest))
}

/// No early end, so that the compiler can look at all bytes at once.
fn check_at(at: &[u8; AT_LEN]) -> Result<(), &'static str> {
    const FORM: &[u8; AT_LEN] = b"0000-00-00T00:00:00.000000Z";
    let fits = |at: &u8, form: &u8| if *form == b'0' { at.is_ascii_digit() } else { at == form };
    let all_fit = at.iter().zip(FORM).fold(true, |all, (at, form)| all & fits(at, form));
    all_fit.then_some(()).ok_or("its time is not in the one form")
}

/// JSON in which everything invisible is escaped, so that a log can be shown with `cat`.
struct Visible;

impl Formatter for Visible {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        // JSON's own escapes leave of ASCII only DEL.
        if text.is_ascii() && !text.contains('\x7f') {
            return out.write_all(text.as_bytes());
        }
        for character in text.chars() {
            if character != '\\' && is_hazard(character) {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            } else {
                out.write_all(character.encode_utf8(&mut [0; 4]).as_bytes())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let chain = Chain { seq: 7, prev: Digest::of(b"before") };
        let at = "2026-12-01T08:30:00.1Z".parse().unwrap();
        chain.write(&mut out, at, &serde_json::json!({ "kind": "note", "text": text })).unwrap();
        out
    }

    #[test]
    fn a_line_has_the_form_that_is_promised() {
        let expected = format!(
            r#"{{"seq":7,"prev":"{}","at":"2026-12-01T08:30:00.100000Z","kind":"note","text":"a"}}"#,
            Digest::of(b"before")
        );
        assert_eq!(String::from_utf8(line("a")).unwrap(), expected);
    }

    #[test]
    fn a_head_reads_back() {
        let line = line("a");
        let head = Head::parse(&line).unwrap();
        assert_eq!(head.chain, Chain { seq: 7, prev: Digest::of(b"before") });
        assert_eq!(
            (head.kind, head.body().as_slice()),
            (&b"note"[..], &br#"{"kind":"note","text":"a"}"#[..])
        );
        assert_eq!(head.timestamp().unwrap().to_string(), "2026-12-01T08:30:00.1Z");
    }

    #[test]
    fn another_spelling_is_refused() {
        let good = String::from_utf8(line("a")).unwrap();
        for (from, to) in [
            ("\"seq\":7", "\"seq\":07"),
            ("\"seq\":7", "\"seq\": 7"),
            ("\"seq\":7", "\"seq\":99999999999999999999"),
            ("T08", " 08"),
            (".100000Z", ".1Z"),
            ("\"}", "\"} "),
            ("kind", "KIND"),
        ] {
            assert!(Head::parse(good.replacen(from, to, 1).as_bytes()).is_err(), "{to}");
        }
        assert!(Head::parse(good.replace(|c: char| c.is_ascii_hexdigit(), "A").as_bytes()).is_err());
        assert!((0..good.len()).all(|end| Head::parse(&good.as_bytes()[..end]).is_err()));
    }

    #[test]
    fn nothing_invisible_is_written_and_nothing_is_lost() {
        let text = "a\u{1b}[2J\u{9b}\u{202e}\u{e0041}\u{7f}é\n\\";
        let line = line(text);
        assert!(
            !str::from_utf8(&line)
                .unwrap()
                .chars()
                .any(|c| c.is_control() || c == '\u{202e}' || c == '\u{e0041}')
        );
        let body: serde_json::Value = serde_json::from_slice(&Head::parse(&line).unwrap().body()).unwrap();
        assert_eq!(body["text"], text);
    }
}
