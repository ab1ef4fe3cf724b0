//! Git's configuration files (git-config(1), "Syntax"), read without running git.
//!
//! The reader is at least as lenient as git's: what git takes for an entry is one here, and where git gives up, reading
//! goes on with the next line. So an entry that git obeys cannot be hidden behind one that it does not understand.

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// In lower case.
    pub(super) section: String,
    /// As written.
    pub(super) subsection: Option<Vec<u8>>,
    /// In lower case.
    pub(super) name: String,
    /// `None` for a name without `=`, which means true.
    pub(super) value: Option<Vec<u8>>,
    /// From 1.
    pub(super) line: u32,
}

/// What a file says.
#[derive(Debug, Default)]
pub(super) struct Config {
    pub(super) entries: Vec<Entry>,
    /// Something in it follows no rule of git's.
    pub(super) malformed: bool,
}

/// A section's name and subsection.
type Header = (String, Option<Vec<u8>>);

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    line: u32,
}

// === impl Config ===

impl Config {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let mut reader = Reader { bytes, at: 0, line: 1 };
        let mut config = Self { malformed: bytes.contains(&0), ..Self::default() };
        let mut header: Option<Header> = None;
        while let Some(byte) = reader.next() {
            match byte {
                b'#' | b';' => reader.skip_line(),
                b'[' => match reader.header() {
                    Some(found) => header = Some(found),
                    None => config.give_up(&mut reader),
                },
                byte if byte.is_ascii_whitespace() => {}
                byte => match (reader.entry(byte), &header) {
                    (Some((name, value, line)), Some((section, subsection))) => config.entries.push(Entry {
                        section: section.clone(),
                        subsection: subsection.clone(),
                        name,
                        value,
                        line,
                    }),
                    _ => config.give_up(&mut reader),
                },
            }
        }
        config
    }

    fn give_up(&mut self, reader: &mut Reader<'_>) {
        self.malformed = true;
        if reader.at == 0 || reader.bytes.get(reader.at - 1) != Some(&b'\n') {
            reader.skip_line();
        }
    }

    /// The same settings as a file.
    pub(super) fn render(entries: &[Entry]) -> Vec<u8> {
        let mut out = Vec::new();
        for entry in entries {
            out.extend_from_slice(format!("[{}", entry.section).as_bytes());
            if let Some(subsection) = &entry.subsection {
                out.extend_from_slice(b" \"");
                subsection.iter().for_each(|byte| push_escaped(&mut out, *byte));
                out.push(b'"');
            }
            out.extend_from_slice(format!("]\n\t{}", entry.name).as_bytes());
            if let Some(value) = &entry.value {
                out.extend_from_slice(b" = \"");
                value.iter().for_each(|byte| push_escaped(&mut out, *byte));
                out.push(b'"');
            }
            out.push(b'\n');
        }
        out
    }
}

fn push_escaped(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\\' | b'"' => out.extend_from_slice(&[b'\\', byte]),
        byte => out.push(byte),
    }
}

// === impl Reader ===

impl Reader<'_> {
    /// A carriage return before a line feed is no byte of the file, as for git.
    fn next(&mut self) -> Option<u8> {
        if self.bytes[self.at..].starts_with(b"\r\n") {
            self.at += 1;
        }
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        self.line = self.line.saturating_add(u32::from(byte == b'\n'));
        Some(byte)
    }

    fn back(&mut self, byte: u8) {
        self.at -= 1;
        self.line -= u32::from(byte == b'\n');
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|byte| byte != b'\n') {}
    }

    /// After `[`: `section]`, `section.sub]` or `section "sub"]`.
    fn header(&mut self) -> Option<Header> {
        let mut section = String::new();
        loop {
            match self.next()? {
                b']' => {
                    let (section, sub) = match section.split_once('.') {
                        Some((section, sub)) => (section.to_owned(), Some(sub.as_bytes().to_vec())),
                        None => (section, None),
                    };
                    return Some((section, sub));
                }
                byte if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.') => {
                    section.push(char::from(byte.to_ascii_lowercase()));
                }
                b' ' | b'\t' => return Some((section, Some(self.subsection()?))),
                _ => return None,
            }
        }
    }

    fn subsection(&mut self) -> Option<Vec<u8>> {
        let mut byte = self.next()?;
        while matches!(byte, b' ' | b'\t') {
            byte = self.next()?;
        }
        if byte != b'"' {
            return None;
        }
        let mut name = Vec::new();
        loop {
            match self.next()? {
                b'"' => break,
                b'\n' => return None,
                b'\\' => name.push(self.next().filter(|byte| *byte != b'\n')?),
                byte => name.push(byte),
            }
        }
        (self.next()? == b']').then_some(name)
    }

    /// A name, of which `first` is the first byte, and its value.
    fn entry(&mut self, first: u8) -> Option<(String, Option<Vec<u8>>, u32)> {
        let line = self.line;
        if !first.is_ascii_alphabetic() {
            return None;
        }
        let mut name = String::from(char::from(first.to_ascii_lowercase()));
        let mut byte = self.next();
        while let Some(part) = byte.filter(|byte| byte.is_ascii_alphanumeric() || *byte == b'-') {
            name.push(char::from(part.to_ascii_lowercase()));
            byte = self.next();
        }
        while matches!(byte, Some(b' ' | b'\t')) {
            byte = self.next();
        }
        match byte {
            None | Some(b'\n') => Some((name, None, line)),
            Some(b'=') => Some((name, Some(self.value()?), line)),
            // Git takes no comment here, so neither is the entry one that it obeys.
            Some(other) => {
                self.back(other);
                None
            }
        }
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let (mut value, mut quoted, mut kept) = (Vec::new(), false, 0);
        loop {
            match self.next() {
                None | Some(b'\n') if quoted => return None,
                None | Some(b'\n') => break,
                Some(b'#' | b';') if !quoted => {
                    self.skip_line();
                    break;
                }
                Some(b'"') => quoted = !quoted,
                Some(b'\\') => match self.next()? {
                    b'\n' => continue,
                    b'n' => value.push(b'\n'),
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return None,
                },
                Some(byte) if !quoted && byte.is_ascii_whitespace() => {
                    if !value.is_empty() {
                        value.push(byte);
                    }
                    continue;
                }
                Some(byte) => value.push(byte),
            }
            kept = value.len();
        }
        value.truncate(kept);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `section.sub.name=value` of each entry.
    fn shown(text: &[u8]) -> Vec<String> {
        let show = |entry: &Entry| {
            let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
            let sub = entry.subsection.as_ref().map_or(String::new(), |sub| format!(".{}", text(sub)));
            let value = entry.value.as_ref().map_or(String::new(), |value| format!("={}", text(value)));
            format!("{}{sub}.{}{value}", entry.section, entry.name)
        };
        Config::parse(text).entries.iter().map(show).collect()
    }

    #[test]
    fn what_git_reads_is_read() {
        let text = b"\xEF\xBB\xBF# c\n[Core]\n\tBare\n hooksPath = \"a b\" c ; d\r\n[filter \"l\\\"f.S\"] clean=x\\\n y\n[a.B]k=v  \n";
        assert_eq!(shown(text), ["core.bare", "core.hookspath=a b c", "filter.l\"f.S.clean=x y", "a.b.k=v"]);
        assert!(!Config::parse(text).malformed);
    }

    #[test]
    fn nothing_hides_behind_what_is_malformed() {
        for bad in [
            "[core]\nx = \"open\n",
            "[core\n",
            "= = =\n",
            "[core \"x]\n",
            "[core]\na b\n",
            "x = \\q\n",
            "\0\n",
        ] {
            let text = format!("{bad}[core]\nfsmonitor = evil\n");
            assert_eq!(
                shown(text.as_bytes()).last().map(String::as_str),
                Some("core.fsmonitor=evil"),
                "{bad:?}"
            );
            assert!(Config::parse(text.as_bytes()).malformed, "{bad:?}");
        }
    }

    #[test]
    fn long_lines_and_open_ends_end() {
        let long =
            [b"[core]\nx = ".to_vec(), vec![b'"'; 1 << 20], vec![b' '; 1 << 20], b"y".to_vec()].concat();
        assert_eq!(shown(&long), ["core.x=y"]);
        for open in
            [&b"["[..], b"[a \"", b"[a \"\\", b"[a]x", b"[a]x=", b"[a]x=\\", b"[a]x=\"", b"\r\n", b"\r"]
        {
            let config = Config::parse(open);
            assert!(config.entries.len() <= 1, "{open:?}");
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let text = b"[remote \"o\\\\r\\\"\"]\nurl = \" a;#\\n\\\"b \"\nk\n";
        let entries = Config::parse(text).entries;
        let again = Config::parse(&Config::render(&entries)).entries;
        let pair = |entries: &[Entry]| -> Vec<_> {
            entries.iter().map(|e| (e.subsection.clone(), e.name.clone(), e.value.clone())).collect()
        };
        assert_eq!(pair(&again), pair(&entries));
        assert_eq!(entries.len(), 2);
    }
}
