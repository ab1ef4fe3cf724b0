//! Defaults that only a program itself knows: URLs among its bytes.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use memchr::memmem;

use super::{PresetError, Url};

/// The longest URL that is looked for.
const LONGEST: usize = 256;
/// How much is read at once.
const PIECE: usize = 1 << 20;

/// URLs in a program that begin and go on as asked (`https://`, a name, `/simple`), each once, in order. A name without
/// a dot is none: texts run into each other in a program, and what follows a front need not be a host.
pub(super) fn urls(program: &Path, front: &str, path: &str) -> Result<Vec<Url>, PresetError> {
    let failed =
        |error: std::io::Error| PresetError::Unreadable { path: program.to_owned(), why: error.to_string() };
    let mut reader = BufReader::with_capacity(PIECE, File::open(program).map_err(failed)?);
    let mut found = Vec::new();
    // What may still be the beginning of a URL is carried over to the next piece.
    let mut window: Vec<u8> = Vec::with_capacity(PIECE + LONGEST);
    loop {
        let piece = reader.fill_buf().map_err(failed)?;
        let (read, last) = (piece.len(), piece.is_empty());
        window.extend_from_slice(piece);
        reader.consume(read);
        let done = if last { window.len() } else { window.len().saturating_sub(LONGEST) };
        for at in memmem::find_iter(&window, front).take_while(|at| *at < done) {
            let text = &window[at..window.len().min(at + LONGEST)];
            found.extend(url(text, front, path).filter(|url| !found.contains(url)));
        }
        if last {
            return Ok(found);
        }
        window.drain(..done);
    }
}

fn url(bytes: &[u8], front: &str, path: &str) -> Option<Url> {
    let length = bytes.iter().position(|byte| !byte.is_ascii_graphic()).unwrap_or(bytes.len());
    let text = std::str::from_utf8(&bytes[..length]).ok()?;
    let rest = text.strip_prefix(front)?;
    let (name, after) = rest.split_at(rest.find('/')?);
    let fits = name.contains('.') && after.starts_with(path);
    fits.then(|| Url::read(&format!("{front}{name}{path}"))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_found_among_other_bytes_and_across_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program");
        for offset in [0, 1, PIECE - 5, PIECE + 7, 2 * PIECE - 100] {
            let mut bytes = vec![0_u8; offset];
            bytes.extend(b"xsparse+https://nothing_here\0sparse+https://index.example/run on\xff");
            bytes.extend(b"sparse+https://index.example/sparse+https://nodot/");
            std::fs::write(&file, &bytes).unwrap();
            let found = urls(&file, "sparse+https://", "/").unwrap();
            let texts: Vec<_> = found.iter().map(|url| url.text.as_str()).collect();
            assert_eq!(texts, ["sparse+https://index.example/"], "{offset}");
        }
    }
}
