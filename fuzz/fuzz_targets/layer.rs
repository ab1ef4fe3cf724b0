//! A layer's entries: whatever their names and kinds, nothing beside the layer's folder changes.
//!
//! Fields end at line feeds: a letter for the kind and a name, then what it links to, and so on.
#![no_main]

use std::fs;

use redoma_image::{Limits, Ownership, unpack};
use tar::{EntryType, Header};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let home = tempfile::tempdir_in("/dev/shm").unwrap();
    let (layer, victim) = (home.path().join("layer"), home.path().join("victim"));
    fs::create_dir(&layer).unwrap();
    fs::write(&victim, "untouched").unwrap();
    let _refused = unpack(&archive(data)[..], &layer, Ownership::Mine, &Limits::default());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
});

fn archive(data: &[u8]) -> Vec<u8> {
    let mut fields = data.split(|byte| *byte == b'\n');
    let mut stream = Vec::new();
    while let (Some([kind, name @ ..]), Some(link)) = (fields.next(), fields.next()) {
        let kind = match kind {
            b'd' => EntryType::Directory,
            b's' => EntryType::Symlink,
            b'h' => EntryType::Link,
            b'p' => EntryType::Fifo,
            b'c' => EntryType::Char,
            _ => EntryType::Regular,
        };
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(0o700);
        header.set_size(0);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        let gnu = header.as_gnu_mut().unwrap();
        for (to, from) in [(&mut gnu.name, name), (&mut gnu.linkname, link)] {
            let length = from.len().min(to.len());
            to[..length].copy_from_slice(&from[..length]);
        }
        header.set_cksum();
        stream.extend_from_slice(header.as_bytes());
    }
    stream
}
