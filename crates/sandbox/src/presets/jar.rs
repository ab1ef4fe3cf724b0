//! One file out of a Java archive, which is a ZIP file (APPNOTE.TXT, sections 4.3.7, 4.3.12 and 4.3.16).

use std::io::Read;

/// Most bytes that a file may have.
const MOST: u64 = 1 << 20;

/// The content of a file; `None` if there is none of that name, or the archive is not one that can be read.
pub(super) fn file(archive: &[u8], name: &str) -> Option<Vec<u8>> {
    let end = memchr::memmem::rfind(archive, b"PK\x05\x06")?;
    let mut at = number(archive, end + 16, 4)?;
    while archive.get(at..at + 4)? == b"PK\x01\x02" {
        let (method, packed) = (number(archive, at + 10, 2)?, number(archive, at + 20, 4)?);
        let lengths = [28, 30, 32].map(|field| number(archive, at + field, 2));
        let [Some(of_name), Some(of_extra), Some(of_comment)] = lengths else { return None };
        let local = number(archive, at + 42, 4)?;
        if archive.get(at + 46..at + 46 + of_name)? == name.as_bytes() {
            return unpacked(archive, local, method, packed);
        }
        at += 46 + of_name + of_extra + of_comment;
    }
    None
}

/// What stands behind a local header, whose name and extra field may have other lengths than the directory's.
fn unpacked(archive: &[u8], local: usize, method: usize, packed: usize) -> Option<Vec<u8>> {
    let begin = local + 30 + number(archive, local + 26, 2)? + number(archive, local + 28, 2)?;
    let bytes = archive.get(begin..begin.checked_add(packed)?)?;
    let mut out = Vec::new();
    match method {
        0 => out.extend_from_slice(bytes),
        8 => drop(flate2::read::DeflateDecoder::new(bytes).take(MOST).read_to_end(&mut out).ok()?),
        _ => return None,
    }
    Some(out)
}

/// A little-endian number of some bytes.
fn number(archive: &[u8], at: usize, bytes: usize) -> Option<usize> {
    let field = archive.get(at..at.checked_add(bytes)?)?;
    Some(field.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// An archive of two files, the second one packed.
    fn archive() -> Vec<u8> {
        let mut packer = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(&b"text ".repeat(100)).unwrap();
        let files = [("a", 0_u16, b"plain".to_vec()), ("b/c.xml", 8, packer.finish().unwrap())];
        let (mut out, mut directory) = (Vec::new(), Vec::new());
        for (name, method, bytes) in files {
            let length = u16::try_from(name.len()).unwrap().to_le_bytes();
            let size = u32::try_from(bytes.len()).unwrap().to_le_bytes();
            let offset = u32::try_from(out.len()).unwrap().to_le_bytes();
            out.extend(
                [b"PK\x03\x04".as_slice(), &[0; 4], &method.to_le_bytes(), &[0; 8], &size, &[0; 4]].concat(),
            );
            out.extend([length.as_slice(), &[0, 0], name.as_bytes(), &bytes].concat());
            directory.extend([b"PK\x01\x02".as_slice(), &[0; 6], &method.to_le_bytes(), &[0; 8]].concat());
            directory
                .extend([size.as_slice(), &[0; 4], &length, &[0; 12], &offset, name.as_bytes()].concat());
        }
        let at = u32::try_from(out.len()).unwrap().to_le_bytes();
        out.extend([directory.as_slice(), b"PK\x05\x06", &[0; 12], &at, &[0, 0]].concat());
        out
    }

    #[test]
    fn files_are_found_and_unpacked() {
        let archive = archive();
        assert_eq!(file(&archive, "a").unwrap(), b"plain");
        assert_eq!(file(&archive, "b/c.xml").unwrap(), b"text ".repeat(100));
        assert_eq!(file(&archive, "c"), None);
    }

    #[test]
    fn a_broken_archive_is_none() {
        let archive = archive();
        for end in 0..archive.len() {
            let _ = file(&archive[..end], "b/c.xml");
        }
        assert_eq!(file(b"PK\x05\x06", "a"), None);
        assert_eq!(file(&[b"PK\x05\x06".as_slice(), &[0xff; 18]].concat(), "a"), None);
    }
}
