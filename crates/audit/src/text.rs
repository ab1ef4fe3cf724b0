//! Text as it may be written: valid, redacted and of bounded length.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::escape::printable;
use crate::redact::{announces_secret, marker, redact};

/// A text from outside, fit for the log: secrets are out, it is at most about 4 KiB long, and bytes that
/// are not UTF-8 stand as `\xff`.
///
/// Its `Display` is safe for a terminal (see [`printable`]); [`Text::as_str`] is what is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Text(String);

impl Text {
    /// The most bytes of a text that are kept; what was cut off is counted at its end.
    pub const MAX_LEN: usize = 4096;

    /// What may be written of `text`.
    #[must_use]
    pub fn new<S: AsRef<OsStr> + ?Sized>(text: &S) -> Self {
        Self::bounded(text.as_ref().as_bytes(), Self::MAX_LEN)
    }

    /// The text as it is written. Use `Display` to show it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn bounded(bytes: &[u8], max: usize) -> Self {
        if bytes.len() <= max {
            return Self(redact(&decode(bytes)).into_owned());
        }
        // A word that the cut goes through is left out whole, since half a secret fits no rule.
        let kept = decode(&bytes[..max]);
        let whole =
            kept.trim_end_matches(|c: char| !c.is_whitespace() && !matches!(c, '/' | ',' | ';' | '&'));
        let cut = bytes.len() - whole.len();
        Self(format!("{}… (+{cut} bytes)", redact(whole)))
    }
}

/// UTF-8 as it is, anything else byte by byte.
fn decode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// A command and its arguments: redacted one by one and together (`--token VALUE`), and of bounded length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Argv(Vec<Text>);

impl Argv {
    /// The arguments after the one that crosses this many bytes are left out.
    pub const MAX_LEN: usize = 16 * 1024;

    /// What may be written of `arguments`; how many were left out is the last one.
    #[must_use]
    pub fn new<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Self {
        let mut kept: Vec<Text> = Vec::new();
        let (mut size, mut left_out, mut secret_next) = (0, 0, false);
        for argument in arguments {
            if size > Self::MAX_LEN {
                left_out += 1;
                continue;
            }
            let text = if secret_next { Text(marker("argument")) } else { Text::new(argument.as_ref()) };
            secret_next = announces_secret(text.as_str());
            size += text.as_str().len() + 1;
            kept.push(text);
        }
        if left_out > 0 {
            kept.push(Text(format!("… (+{left_out} arguments)")));
        }
        Self(kept)
    }

    /// The arguments.
    #[must_use]
    pub fn as_slice(&self) -> &[Text] {
        &self.0
    }
}

// === impl Text ===

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&printable(&self.0))
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl From<&OsStr> for Text {
    fn from(text: &OsStr) -> Self {
        Self::new(text)
    }
}

impl From<OsString> for Text {
    fn from(text: OsString) -> Self {
        Self::new(&text)
    }
}

impl From<&Path> for Text {
    fn from(path: &Path) -> Self {
        Self::new(path)
    }
}

impl From<PathBuf> for Text {
    fn from(path: PathBuf) -> Self {
        Self::new(&path)
    }
}

// === impl Argv ===

impl fmt::Display for Argv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, argument) in self.0.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{argument}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_are_kept_readable() {
        assert_eq!(Text::new(OsStr::from_bytes(b"a\xffb")).as_str(), r"a\xffb");
    }

    #[test]
    fn a_secret_does_not_get_in() {
        let text = Text::from("curl -H 'Authorization: Bearer abcdefghijk'");
        assert_eq!(text.as_str(), "curl -H 'Authorization: [redacted authorization]'");
    }

    #[test]
    fn a_long_text_is_cut_before_the_word_that_does_not_fit() {
        let secret = format!("{} AKIA{}", "x".repeat(Text::MAX_LEN - 10), "A1B2C3D4E5F6G7H8");
        let text = Text::from(secret.as_str());
        assert!(text.as_str().ends_with("x … (+20 bytes)"), "{text}");
        assert!(Text::from("y".repeat(10 << 20)).as_str().len() < 100);
    }

    #[test]
    fn the_argument_after_a_telling_flag_is_taken_out() {
        let argv = Argv::new(["login", "--password", "hunter2", "--verbose", "x"]);
        assert_eq!(argv.to_string(), "login --password [redacted argument] --verbose x");
    }

    #[test]
    fn many_arguments_are_counted_not_kept() {
        let argv = Argv::new(std::iter::repeat_n("argument", 1 << 20));
        assert!(argv.to_string().len() < Argv::MAX_LEN + 2 * Text::MAX_LEN);
        assert!(argv.to_string().ends_with(" arguments)"), "{argv}");
    }

    #[test]
    fn display_is_safe_for_a_terminal() {
        assert_eq!(Text::from("a\u{1b}[2J\n").to_string(), r"a\u{1b}[2J\n");
    }
}
