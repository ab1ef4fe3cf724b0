//! Words for a shell: what a hint says must work when pasted, whatever a file is called.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// `text` as one word of a POSIX shell; of Bash, Zsh and the like where it holds control characters, which are then
/// written as escapes, so that nothing acts on the terminal that shows the word.
#[must_use]
pub fn word(text: impl AsRef<OsStr>) -> String {
    let bytes = text.as_ref().as_bytes();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+,:@%=".contains(byte);
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(is_hazard) => format!("'{}'", text.replace('\'', r"'\''")),
        _ => ansi_c_quoted(bytes),
    }
}

/// Letters of any language are fine; what no eye sees is not.
fn is_hazard(character: char) -> bool {
    !character.is_alphanumeric() && !(' '..='~').contains(&character)
}

/// `$'…'` of bash(1): every byte beyond printable ASCII as `\xHH`.
fn ansi_c_quoted(bytes: &[u8]) -> String {
    let mut word = String::from("$'");
    for &byte in bytes {
        match byte {
            b'\'' | b'\\' => word.extend(['\\', char::from(byte)]),
            b' '..=b'~' => word.push(char::from(byte)),
            _ => word.push_str(&format!("\\x{byte:02x}")),
        }
    }
    word.push('\'');
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_words_stay_and_others_are_quoted() {
        assert_eq!(word("/a/b-c_1.toml"), "/a/b-c_1.toml");
        assert_eq!(word("a b"), "'a b'");
        assert_eq!(word("it's $(x)"), r"'it'\''s $(x)'");
        assert_eq!(word("maçã"), "'maçã'");
        assert_eq!(word(""), "''");
    }

    #[test]
    fn control_characters_never_reach_the_terminal() {
        assert_eq!(word("a\n\u{1b}[2J'"), r"$'a\x0a\x1b[2J\''");
        assert_eq!(word(OsStr::from_bytes(b"\xff")), r"$'\xff'");
        assert!(word("gpj.\u{202e}exe").starts_with("$'"));
    }

    #[test]
    fn a_shell_reads_the_word_back_exactly() {
        for text in ["a b", "it's $(x) `y` \"z\"", "a\nb\\c", "maçã", "~x", "-", "*"] {
            let script = format!("printf %s {}", word(text));
            let out = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&out.stdout), text, "{script}");
        }
    }
}
