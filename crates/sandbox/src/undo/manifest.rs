//! The state of a project at one moment: everything but the content, which lies in the store by its hash.

use crate::walk::bytes::{self, Input, put, put_bytes};
use crate::walk::tree::Identity;

const MAGIC: &[u8; 8] = b"RDUNDO\x00\x01";

/// One state of the project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    /// In path order.
    pub(super) entries: Vec<Entry>,
    /// Whether ignore rules applied: it was a git tree.
    pub(super) git: bool,
    /// Names that were left out because git ignores them.
    pub(super) ignored: u64,
    /// Names that were left out because they could not be read, or are sockets, FIFOs or devices.
    pub(super) unkept: u64,
}

/// One file, folder or link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Relative to the project; empty for the project's own folder.
    pub(super) rel: Vec<u8>,
    pub(super) node: Node,
    /// Permission bits with set-user-ID, set-group-ID and sticky.
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Nanoseconds since 1970.
    pub(super) mtime: i64,
    pub(super) identity: Identity,
    /// A later change could carry the same identity: read it again.
    pub(super) racy: bool,
}

/// What it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Dir,
    /// The hash is missing while nobody has read the content.
    File {
        size: u64,
        hash: Option<[u8; 32]>,
    },
    Link(Vec<u8>),
}

impl Entry {
    /// Whether undoing from one to the other would change nothing.
    pub(super) fn same_state(&self, other: &Self) -> bool {
        let attributes = |entry: &Self| (entry.mode, entry.uid, entry.gid);
        self.rel == other.rel && self.node == other.node && attributes(self) == attributes(other)
    }
}

impl Manifest {
    pub(super) fn find(&self, rel: &[u8]) -> Option<&Entry> {
        let index = self.entries.binary_search_by(|entry| entry.rel.as_slice().cmp(rel)).ok()?;
        self.entries.get(index)
    }

    pub(super) fn same_state(&self, other: &Self) -> bool {
        self.entries.len() == other.entries.len()
            && self.git == other.git
            && self.entries.iter().zip(&other.entries).all(|(one, two)| one.same_state(two))
    }

    /// Files and bytes.
    pub(super) fn totals(&self) -> (u64, u64) {
        self.entries.iter().fold((0, 0), |(files, bytes), entry| match entry.node {
            Node::File { size, .. } => (files + 1, bytes + size),
            _ => (files, bytes),
        })
    }

    pub(super) fn render(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.entries.len() * 160);
        out.extend_from_slice(MAGIC);
        out.push(u8::from(self.git));
        put(&mut out, self.ignored);
        put(&mut out, self.unkept);
        put(&mut out, self.entries.len() as u64);
        self.entries.iter().for_each(|entry| entry.render(&mut out));
        bytes::seal(out)
    }

    pub(super) fn parse(content: &[u8]) -> Option<Self> {
        let mut input = bytes::unseal(content, MAGIC)?;
        let git = input.byte()? != 0;
        let (ignored, unkept, count) = (input.number()?, input.number()?, input.count()?);
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            entries.push(Entry::parse(&mut input)?);
        }
        Some(Self { entries, git, ignored, unkept })
    }
}

impl Entry {
    fn render(&self, out: &mut Vec<u8>) {
        put_bytes(out, &self.rel);
        match &self.node {
            Node::Dir => out.push(0),
            Node::File { size, hash } => {
                out.push(1);
                put(out, *size);
                out.extend_from_slice(&hash.unwrap_or_default());
            }
            Node::Link(target) => {
                out.push(2);
                put_bytes(out, target);
            }
        }
        let Identity { dev, ino, ctime } = self.identity;
        let small = [self.mode, self.uid, self.gid].map(u64::from);
        let large = [self.mtime.cast_unsigned(), dev, ino, ctime.cast_unsigned(), u64::from(self.racy)];
        small.into_iter().chain(large).for_each(|number| put(out, number));
    }

    fn parse(input: &mut Input<'_>) -> Option<Self> {
        let rel = input.bytes()?.to_vec();
        let node = match input.byte()? {
            0 => Node::Dir,
            1 => Node::File { size: input.number()?, hash: Some(input.take(32)?.try_into().ok()?) },
            2 => Node::Link(input.bytes()?.to_vec()),
            _ => return None,
        };
        let mut small = || u32::try_from(input.number()?).ok();
        let (mode, uid, gid) = (small()?, small()?, small()?);
        let mtime = input.number()?.cast_signed();
        let identity =
            Identity { dev: input.number()?, ino: input.number()?, ctime: input.number()?.cast_signed() };
        let racy = input.number()? != 0;
        Some(Self { rel, node, mode, uid, gid, mtime, identity, racy })
    }
}
