//! Bodies that are compressed, or written as forms, are looked at as what they say.

use std::io::{self, Write};
use std::sync::Arc;

use data_encoding::HEXLOWER_PERMISSIVE;

use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Finding, Scanner, Stream};

/// How many bodies are decoded at once whose decoders keep megabytes; more are not looked into, and do not leave.
static LARGE: Semaphore = Semaphore::const_new(48);

/// Decodes a body while it streams, and looks at what comes out. No more than a window of it is in memory.
pub(crate) struct Decoder {
    coding: Coding,
    taken: u64,
    _turn: Option<SemaphorePermit<'static>>,
}

/// Why a body was not looked at to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undecodable {
    /// It is not what it says it is.
    Broken,
    /// It becomes so much larger that looking at it would stop everything else.
    Bomb,
    /// Too many others are decoded.
    Busy,
}

enum Coding {
    Gzip(flate2::write::MultiGzDecoder<Sink>),
    Zlib(flate2::write::ZlibDecoder<Sink>),
    Deflate(flate2::write::DeflateDecoder<Sink>),
    Brotli(Box<brotli::DecompressorWriter<Sink>>),
    Zstd(zstd::stream::write::Decoder<'static, Sink>),
    Form(Form),
}

/// Looks at what was decoded.
struct Sink {
    scanner: Arc<Scanner>,
    stream: Stream,
    found: Vec<Finding>,
    passed: u64,
    limit: u64,
}

/// `%41` (application/x-www-form-urlencoded).
struct Form {
    sink: Sink,
    /// The beginning of an escape.
    escape: Vec<u8>,
}

/// So much is always looked at.
const FREE: u64 = 16 << 20;
/// Beyond that, so many times what was sent: text is a tenth, a bomb a thousandth.
const RATIO: u64 = 200;
/// zstd's window, as a power of two: what RFC 8878 recommends that all decoders take.
const WINDOW_LOG: u32 = 23;
const BROTLI_BUFFER: usize = 16 << 10;

impl Decoder {
    /// For a `Content-Encoding`; none for one that is not known, and for several at once.
    ///
    /// # Errors
    /// When too many are decoded already.
    pub(crate) fn for_encoding(
        name: &str,
        scanner: &Arc<Scanner>,
        start: &[u8],
    ) -> Result<Option<Self>, Undecodable> {
        let name = name.trim().to_ascii_lowercase();
        let large = matches!(name.as_str(), "br" | "zstd");
        let turn = large.then(|| LARGE.try_acquire()).transpose().map_err(|_| Undecodable::Busy)?;
        let coding = Coding::named(&name, Sink::new(scanner), start);
        Ok(coding.map(|coding| Self { coding, taken: 0, _turn: turn }))
    }

    /// For what begins as a compressed file does.
    ///
    /// # Errors
    /// As [`Self::for_encoding`].
    pub(crate) fn for_file(start: &[u8], scanner: &Arc<Scanner>) -> Result<Option<Self>, Undecodable> {
        let name = match start {
            [0x1f, 0x8b, 8, ..] => "gzip",
            [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd",
            _ => return Ok(None),
        };
        Self::for_encoding(name, scanner, start)
    }

    /// For `application/x-www-form-urlencoded`.
    pub(crate) fn for_form(scanner: &Arc<Scanner>) -> Self {
        Self {
            coding: Coding::Form(Form { sink: Sink::new(scanner), escape: Vec::new() }),
            taken: 0,
            _turn: None,
        }
    }

    /// What the next piece completes.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<Finding>, Undecodable> {
        self.taken += piece.len() as u64;
        let limit = FREE.max(self.taken.saturating_mul(RATIO));
        self.coding.sink().limit = limit;
        let written = self.coding.write_all(piece).and_then(|()| self.coding.flush());
        self.found(&written)
    }

    /// What the end decides.
    pub(crate) fn end(&mut self) -> Result<Vec<Finding>, Undecodable> {
        let written = self.coding.finish();
        let sink = self.coding.sink();
        let last = sink.stream.end(&Arc::clone(&sink.scanner));
        sink.found.extend(last);
        self.found(&written)
    }

    fn found(&mut self, written: &io::Result<()>) -> Result<Vec<Finding>, Undecodable> {
        let sink = self.coding.sink();
        let found = std::mem::take(&mut sink.found);
        match written {
            // What was found before it broke is found.
            Err(_) if found.is_empty() && sink.passed > sink.limit => Err(Undecodable::Bomb),
            Err(_) if found.is_empty() => Err(Undecodable::Broken),
            _ => Ok(found),
        }
    }
}

impl Coding {
    fn named(name: &str, sink: Sink, start: &[u8]) -> Option<Self> {
        Some(match name {
            "gzip" | "x-gzip" => Self::Gzip(flate2::write::MultiGzDecoder::new(sink)),
            // Some send it bare, some as RFC 9110 has it: in zlib's wrapper.
            "deflate" if start.first().is_some_and(|byte| byte & 0x0f == 8) => {
                Self::Zlib(flate2::write::ZlibDecoder::new(sink))
            }
            "deflate" => Self::Deflate(flate2::write::DeflateDecoder::new(sink)),
            "br" => Self::Brotli(Box::new(brotli::DecompressorWriter::new(sink, BROTLI_BUFFER))),
            "zstd" => Self::zstd(sink)?,
            _ => return None,
        })
    }

    fn zstd(sink: Sink) -> Option<Self> {
        let mut decoder = zstd::stream::write::Decoder::new(sink).ok()?;
        decoder.window_log_max(WINDOW_LOG).ok()?;
        Some(Self::Zstd(decoder))
    }

    fn sink(&mut self) -> &mut Sink {
        match self {
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Zlib(decoder) => decoder.get_mut(),
            Self::Deflate(decoder) => decoder.get_mut(),
            Self::Brotli(decoder) => decoder.get_mut(),
            Self::Zstd(decoder) => decoder.get_mut(),
            Self::Form(form) => &mut form.sink,
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Self::Gzip(decoder) => decoder,
            Self::Zlib(decoder) => decoder,
            Self::Deflate(decoder) => decoder,
            Self::Brotli(decoder) => decoder,
            Self::Zstd(decoder) => decoder,
            Self::Form(form) => form,
        }
    }

    fn write_all(&mut self, piece: &[u8]) -> io::Result<()> {
        self.writer().write_all(piece)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Gzip(decoder) => decoder.try_finish(),
            Self::Zlib(decoder) => decoder.try_finish(),
            Self::Deflate(decoder) => decoder.try_finish(),
            Self::Brotli(decoder) => decoder.close(),
            Self::Zstd(decoder) => decoder.flush(),
            Self::Form(form) => form.finish(),
        }
    }
}

impl Sink {
    fn new(scanner: &Arc<Scanner>) -> Self {
        let (scanner, stream) = (Arc::clone(scanner), Stream::new());
        Self { scanner, stream, found: Vec::new(), passed: 0, limit: FREE }
    }
}

impl Write for Sink {
    fn write(&mut self, decoded: &[u8]) -> io::Result<usize> {
        self.passed += decoded.len() as u64;
        if self.passed > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.found.extend(self.stream.push(&self.scanner, decoded));
        Ok(decoded.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Form {
    fn finish(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.escape);
        self.sink.write_all(&rest)
    }
}

impl Write for Form {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        let mut text = std::mem::take(&mut self.escape);
        text.extend_from_slice(piece);
        let decoded = percent_decoded(&text);
        // An escape that is cut is decoded with the next piece.
        let cut = text.iter().rev().take(2).position(|&byte| byte == b'%').map_or(0, |at| at + 1);
        self.escape = text.split_off(text.len() - cut);
        self.sink.write_all(&decoded[..decoded.len() - cut])?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `text` with its escapes resolved (RFC 3986, section 2.1, and a form's `+`); what is no escape stays.
pub(crate) fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let escaped = after.get(..2).filter(|_| *first == b'%');
        match escaped.and_then(|hex| HEXLOWER_PERMISSIVE.decode(hex).ok()) {
            Some(byte) => {
                decoded.extend(byte);
                rest = &after[2..];
            }
            None => {
                decoded.push(if *first == b'+' { b' ' } else { *first });
                rest = after;
            }
        }
    }
    decoded
}
