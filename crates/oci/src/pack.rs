//! Archives on their way: from readers to the engine, from the engine to readers. Never whole in memory.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::pin::Pin;

use bytes::{Buf, Bytes};
use futures_util::{Stream, StreamExt};
use redoma_sandbox::driver::Copied;
use tar::{Builder, EntryType, Header};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{Receiver, Sender, channel};

const CHUNK: usize = 64 << 10;
/// Chunks that may wait.
const WAITING: usize = 8;

type Chunk = Result<Bytes, io::Error>;

/// What a reader has, read by a thread of its own.
pub(crate) fn chunks(mut from: impl Read + Send + 'static) -> impl Stream<Item = Chunk> + Send + 'static {
    written(move |to| io::copy(&mut from, to).map(drop))
}

/// What `write` writes, in a thread of its own, as fast as it is taken.
pub(crate) fn written(
    write: impl FnOnce(&mut Writer) -> io::Result<()> + Send + 'static,
) -> impl Stream<Item = Chunk> + Send + 'static {
    let (sender, receiver) = channel(WAITING);
    std::thread::spawn(move || {
        let mut writer = Writer { sender, buffer: Vec::with_capacity(CHUNK) };
        if let Err(error) = write(&mut writer).and_then(|()| writer.flush()) {
            let _ = writer.sender.blocking_send(Err(error));
        }
    });
    let next = |mut receiver: Receiver<Chunk>| async { Some((receiver.recv().await?, receiver)) };
    futures_util::stream::unfold(receiver, next)
}

/// Writes into a stream.
pub(crate) struct Writer {
    sender: Sender<Chunk>,
    buffer: Vec<u8>,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let full = std::mem::replace(&mut self.buffer, Vec::with_capacity(CHUNK));
        if full.is_empty() {
            return Ok(());
        }
        self.sender.blocking_send(Ok(full.into())).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// Reads a stream.
pub(crate) struct Reader<'a> {
    handle: &'a Handle,
    stream: Pin<Box<dyn Stream<Item = Result<Bytes, bollard::errors::Error>> + Send + 'a>>,
    rest: Bytes,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(
        handle: &'a Handle,
        stream: impl Stream<Item = Result<Bytes, bollard::errors::Error>> + Send + 'a,
    ) -> Self {
        Self { handle, stream: Box::pin(stream), rest: Bytes::new() }
    }
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.handle.block_on(self.stream.next()) {
                Some(chunk) => self.rest = chunk.map_err(io::Error::other)?,
                None => return Ok(0),
            }
        }
        let length = self.rest.len().min(buffer.len());
        self.rest.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}

/// Whose the files of an archive are inside.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ownership {
    pub(crate) user: u64,
    pub(crate) group: u64,
}

/// An archive that is being written.
pub(crate) struct Packer<W: Write> {
    archive: Builder<W>,
    owner: Ownership,
    pub(crate) copied: Copied,
}

impl<W: Write> Packer<W> {
    pub(crate) fn new(to: W, owner: Ownership) -> Self {
        Self { archive: Builder::new(to), owner, copied: Copied::default() }
    }

    fn header(&self, kind: EntryType, mode: u32, size: u64) -> Header {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode & 0o7777);
        header.set_size(size);
        header.set_uid(self.owner.user);
        header.set_gid(self.owner.group);
        header
    }

    pub(crate) fn folder(&mut self, at: &Path, mode: u32) -> io::Result<()> {
        let mut header = self.header(EntryType::Directory, mode, 0);
        self.archive.append_data(&mut header, at, io::empty())
    }

    pub(crate) fn file(&mut self, at: &Path, mode: u32, size: u64, content: impl Read) -> io::Result<()> {
        let mut header = self.header(EntryType::Regular, mode, size);
        // A file that shrinks meanwhile must not shift what follows.
        let content = content.chain(io::repeat(0)).take(size);
        self.archive.append_data(&mut header, at, content)
    }

    /// A file or folder of the host, with all that is in it. No link is followed.
    pub(crate) fn tree(&mut self, from: &Path, at: &Path) -> io::Result<()> {
        let about = std::fs::symlink_metadata(from)?;
        let mode = about.permissions().mode();
        self.copied.entries += 1;
        if about.is_dir() {
            self.folder(at, mode)?;
            let mut inside = std::fs::read_dir(from)?.collect::<Result<Vec<_>, _>>()?;
            inside.sort_by_key(std::fs::DirEntry::file_name);
            return inside.iter().try_for_each(|entry| self.tree(&entry.path(), &at.join(entry.file_name())));
        }
        if about.is_symlink() {
            let mut header = self.header(EntryType::Symlink, 0o777, 0);
            return self.archive.append_link(&mut header, at, std::fs::read_link(from)?);
        }
        if !about.is_file() {
            self.copied.entries -= 1;
            self.copied.notes.push(format!("{} is no file, folder or link: left out", from.display()));
            return Ok(());
        }
        let file = File::open(from)?;
        let size = file.metadata()?.size();
        self.copied.bytes += size;
        // Set-user-id bits of the host mean nothing inside.
        self.file(at, mode & 0o777, size, file)
    }

    pub(crate) fn finish(mut self) -> io::Result<Copied> {
        self.archive.finish()?;
        Ok(self.copied)
    }
}
