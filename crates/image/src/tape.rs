//! Writes tar streams byte by byte: also those that no honest program would write.

use tar::{EntryType, Header};

/// A tar stream in the making.
#[derive(Default)]
pub(crate) struct Tape(Vec<u8>);

// === impl Tape ===

impl Tape {
    pub(crate) fn file(self, name: &str, content: &[u8]) -> Self {
        self.entry(EntryType::Regular, name, "", 0o644, content)
    }

    pub(crate) fn folder(self, name: &str) -> Self {
        self.entry(EntryType::Directory, name, "", 0o755, b"")
    }

    pub(crate) fn symlink(self, name: &str, target: &str) -> Self {
        self.entry(EntryType::Symlink, name, target, 0o777, b"")
    }

    pub(crate) fn hardlink(self, name: &str, target: &str) -> Self {
        self.entry(EntryType::Link, name, target, 0o644, b"")
    }

    pub(crate) fn pax(self, key: &str, value: &[u8]) -> Self {
        self.pax_more(&[(key, value)])
    }

    pub(crate) fn pax_more(self, records: &[(&str, &[u8])]) -> Self {
        let records: Vec<u8> = records.iter().flat_map(|(key, value)| record(key, value)).collect();
        self.entry(EntryType::XHeader, "pax", "", 0o644, &records)
    }

    pub(crate) fn entry(self, kind: EntryType, name: &str, link: &str, mode: u32, content: &[u8]) -> Self {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(content.len() as u64);
        header.set_mtime(1_000_000_000);
        header.set_uid(0);
        header.set_gid(0);
        let gnu = header.as_gnu_mut().unwrap();
        gnu.name[..name.len()].copy_from_slice(name.as_bytes());
        gnu.linkname[..link.len()].copy_from_slice(link.as_bytes());
        self.raw(header, content)
    }

    pub(crate) fn raw(mut self, mut header: Header, content: &[u8]) -> Self {
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    /// The stream without its end mark.
    pub(crate) fn cut(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn end(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }
}

/// The length that stands in front counts itself.
fn record(key: &str, value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let length = (1..).map(|digits| rest + digits).find(|length| length.to_string().len() + rest == *length);
    [format!("{} {key}=", length.unwrap()).as_bytes(), value, b"\n"].concat()
}
