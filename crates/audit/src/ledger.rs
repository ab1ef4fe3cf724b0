//! The machine's ledger: every session that was opened, closed or purged here, each line signed.
//!
//! A session's log begins with the hash of its `opened` line and its final hash stands in its `closed` line, so a log cannot be
//! dropped, exchanged or moved unnoticed. Lines cut off the ledger's own end show by its anchor, which lies with the keys.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use jiff::Timestamp;
use rustix::fs::{FlockOperation, OFlags, flock};
use serde::{Deserialize, Serialize};

use crate::folder::Folder;
use crate::key::{Purpose, Signer};
use crate::line::{Chain, Head};
use crate::store::Home;
use crate::{Digest, Error, SessionId};

/// The ledger's file in the logs folder.
pub(crate) const LEDGER: &str = "ledger.jsonl";
/// The anchor's file in the keys folder.
const ANCHOR: &str = "audit.head";
/// How far back the last whole line is looked for; lines here are shorter than 1 KiB.
const TAIL: u64 = 64 * 1024;

/// A line of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Entry {
    /// A session begins; its log starts with the hash of this line.
    Opened { session: SessionId },
    /// A running session had this many records, the last with this hash.
    Marked { session: SessionId, records: u64, hash: Digest },
    /// A session has ended with this many records, the last with this hash.
    Closed { session: SessionId, records: u64, hash: Digest },
    /// The log of a session is about to be removed, its retention time being over.
    Purged { session: SessionId, records: u64, hash: Digest },
    /// The line before is the rest of one that a crash or a full disk cut off.
    Torn { bytes: u64, hash: Digest },
    /// The anchor knew of more lines, or of other ones, than stood here; or it was gone.
    Gap { expected: Option<u64> },
}

/// What the ledger starts with in place of the hash of a line before.
pub(crate) fn genesis() -> Digest {
    Digest::of(b"redoma audit ledger v1")
}

/// Appends `entries` in one write and returns the hash of the last line. Writers wait for each other.
pub(crate) fn append(home: &Home, signer: &Signer, entries: &[Entry]) -> Result<Digest, Error> {
    let path = || home.logs.path(LEDGER);
    let file = home.logs.file(LEDGER, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)?;
    // Closing the file gives the lock back, whatever happens in between.
    flock(&file, FlockOperation::LockExclusive)
        .map_err(|errno| Error::Lock { path: path(), source: errno.into() })?;
    let tail = Tail::read(&file).map_err(|source| Error::Read { path: path(), source })?;
    let tail = tail.ok_or_else(|| Error::Ledger { path: path() })?;
    let anchor = Anchor::open(&home.keys)?;
    let mut page = Page { chain: tail.chain, bytes: Vec::new(), signer };
    page.explain(&tail, &anchor)?;
    entries.iter().try_for_each(|entry| page.push(entry))?;
    (&file).write_all(&page.bytes).map_err(|source| Error::Write { path: path(), source })?;
    home.settle(&file).map_err(|source| Error::Write { path: path(), source })?;
    anchor.write(&page.chain)?;
    Ok(page.chain.prev)
}

/// The lines that one write appends.
struct Page<'a> {
    chain: Chain,
    bytes: Vec<u8>,
    signer: &'a Signer,
}

/// The end of the ledger.
struct Tail {
    /// Where the next line goes.
    chain: Chain,
    /// What follows the last whole line.
    torn: Vec<u8>,
    /// Whether the file ends with a line feed, or is empty.
    ends_line: bool,
}

/// The number of lines and the hash of the last one, kept in another folder than the ledger.
pub(crate) struct Anchor {
    file: File,
    path: PathBuf,
    known: Option<Chain>,
}

// === impl Page ===

impl Page<'_> {
    /// What a reader must know before the new entries: how the ledger's end differs from what it should be.
    fn explain(&mut self, tail: &Tail, anchor: &Anchor) -> Result<(), Error> {
        if !tail.ends_line {
            self.bytes.push(b'\n');
        }
        if !tail.torn.is_empty() {
            self.push(&Entry::Torn { bytes: tail.torn.len() as u64, hash: Digest::of(&tail.torn) })?;
        }
        if !anchor.fits(tail.chain) {
            self.push(&Entry::Gap { expected: anchor.known.map(|chain| chain.seq) })?;
        }
        Ok(())
    }

    fn push(&mut self, entry: &Entry) -> Result<(), Error> {
        let start = self.bytes.len();
        self.chain.write(&mut self.bytes, Timestamp::now(), entry)?;
        self.bytes.pop();
        self.signer.seal(Purpose::Ledger, &mut self.bytes, start);
        self.chain.advance(&self.bytes[start..]);
        self.bytes.push(b'\n');
        Ok(())
    }
}

// === impl Tail ===

impl Tail {
    /// `None` if there is something, but no line of a ledger.
    fn read(file: &File) -> std::io::Result<Option<Self>> {
        let length = file.metadata()?.len();
        let start = length.saturating_sub(TAIL);
        let mut bytes = vec![0; usize::try_from(length - start).unwrap_or_default()];
        file.read_exact_at(&mut bytes, start)?;
        let ends_line = bytes.last().is_none_or(|&byte| byte == b'\n');
        let (chain, torn) = match last_record(&bytes) {
            Some((chain, end)) => (chain, bytes.split_off(end)),
            None if start == 0 => (Chain::start(genesis()), bytes),
            None => return Ok(None),
        };
        Ok(Some(Self { chain, torn, ends_line }))
    }
}

/// The last whole record in `bytes`, as the chain behind it, and where it ends.
pub(crate) fn last_record(bytes: &[u8]) -> Option<(Chain, usize)> {
    let mut end = bytes.len();
    loop {
        let text = bytes[..end].strip_suffix(b"\n").unwrap_or(&bytes[..end]);
        let start = memchr::memrchr(b'\n', text).map_or(0, |at| at + 1);
        if let Ok(head) = Head::parse(&text[start..]) {
            let mut chain = head.chain;
            chain.advance(&text[start..]);
            return Some((chain, end));
        }
        if start == 0 {
            return None;
        }
        end = start;
    }
}

// === impl Anchor ===

impl Anchor {
    const LEN: usize = 20 + 1 + Digest::HEX_LEN + 1;

    fn open(keys: &Folder) -> Result<Self, Error> {
        let path = keys.path(ANCHOR);
        if let Some(file) = keys.existing(ANCHOR, OFlags::RDWR)? {
            let known = read_anchor(&file).map_err(|source| Error::Read { path: path.clone(), source })?;
            return Ok(Self { file, path, known });
        }
        let file = keys.file(ANCHOR, OFlags::RDWR | OFlags::CREATE)?;
        Ok(Self { file, path, known: None })
    }

    /// What the anchor in `keys` holds; `None` if there is none.
    pub(crate) fn read_in(keys: &Folder) -> Result<Option<Chain>, Error> {
        let Some(file) = keys.existing(ANCHOR, OFlags::RDONLY)? else { return Ok(None) };
        read_anchor(&file).map_err(|source| Error::Read { path: keys.path(ANCHOR), source })
    }

    /// Whether a ledger that ends with `chain` can be the one it was last written for. More lines than it knows
    /// of are no wonder: a writer may have died between the two writes.
    fn fits(&self, chain: Chain) -> bool {
        match self.known {
            None => chain.seq == 0,
            Some(known) if known.seq == chain.seq => known.prev == chain.prev,
            Some(known) => known.seq < chain.seq,
        }
    }

    /// A fixed length, written over in place: once written, there is no moment when it is empty.
    fn write(&self, chain: &Chain) -> Result<(), Error> {
        let text = format!("{:020} {}\n", chain.seq, chain.prev);
        self.file
            .write_all_at(text.as_bytes(), 0)
            .map_err(|source| Error::Write { path: self.path.clone(), source })
    }
}

/// It is empty when the first writer of all died between its two writes: then any ledger fits.
fn read_anchor(file: &File) -> std::io::Result<Option<Chain>> {
    let mut bytes = [0; Anchor::LEN];
    match file.read_exact_at(&mut bytes, 0) {
        Ok(()) => Ok(parse_anchor(&bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(Some(Chain::start(genesis()))),
        Err(error) => Err(error),
    }
}

fn parse_anchor(bytes: &[u8; Anchor::LEN]) -> Option<Chain> {
    let (seq, hash) = str::from_utf8(bytes).ok()?.strip_suffix('\n')?.split_once(' ')?;
    Some(Chain { seq: seq.parse().ok()?, prev: hash.parse().ok()? })
}
