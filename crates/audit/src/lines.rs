//! Lines of a file that may be hostile, torn or still growing.

use std::io::{self, Read};

use crate::line::MAX_LINE;

const CHUNK: usize = 1024 * 1024;

/// Lends the lines of `source` one after another.
pub(crate) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// What is unread: `buffer[start..end]`, in which no line feed comes before `searched`.
    start: usize,
    searched: usize,
    end: usize,
}

// === impl Lines ===

impl<R: Read> Lines<R> {
    pub(crate) fn new(source: R) -> Self {
        Self { source, buffer: Vec::new(), start: 0, searched: 0, end: 0 }
    }

    /// The next line without its line feed, or `None` at the end of what there is now; later there may be more.
    ///
    /// A line that is longer than a record can be comes in pieces, none of which is a record.
    pub(crate) fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..self.end]) {
                let line = self.start..self.searched + at;
                self.start = line.end + 1;
                self.searched = self.start;
                return Ok(Some(&self.buffer[line]));
            }
            self.searched = self.end;
            if self.end - self.start >= MAX_LINE {
                let piece = self.start..self.end;
                self.start = self.end;
                return Ok(Some(&self.buffer[piece]));
            }
            if self.fill()? == 0 {
                return Ok(None);
            }
        }
    }

    /// What stands behind the last line feed.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn fill(&mut self) -> io::Result<usize> {
        self.buffer.resize(CHUNK, 0);
        self.buffer.copy_within(self.start..self.end, 0);
        (self.searched, self.end, self.start) = (self.searched - self.start, self.end - self.start, 0);
        let count = loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.end += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives a few bytes at a time.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(self.1);
            let (now, later) = self.0.split_at(count);
            out[..count].copy_from_slice(now);
            self.0 = later;
            Ok(count)
        }
    }

    #[test]
    fn an_endless_line_comes_in_pieces() {
        let text = vec![b'x'; 3 * CHUNK];
        let mut lines = Lines::new(text.as_slice());
        let mut length = 0;
        while let Some(piece) = lines.next_line().unwrap() {
            assert!(piece.len() <= CHUNK);
            length += piece.len();
        }
        assert_eq!(length + lines.rest().len(), text.len());
    }

    proptest! {
        #[test]
        fn lines_are_what_split_gives(text in "[ab\n]{0,60}", drip in 1usize..7) {
            let mut lines = Lines::new(Drip(text.as_bytes(), drip));
            let mut found = Vec::new();
            while let Some(line) = lines.next_line().unwrap() {
                found.push(line.to_vec());
            }
            found.push(lines.rest().to_vec());
            let expected: Vec<Vec<u8>> = text.as_bytes().split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
