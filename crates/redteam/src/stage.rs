use std::fs;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use redoma_sys::probe::FileHandle;
use serde::{Deserialize, Serialize};

use crate::attempt::Outcome;

/// Where things are and what to look for: all that an attempt inside is told.
///
/// A real attacker would have to find these out. Telling it makes the attempts short and the stronger
/// test.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stage {
    /// Stands in everything that is secret. Whoever shows it has read the real thing.
    pub marker: String,
    /// Granted for writing: the project.
    pub project: PathBuf,
    /// Granted for reading. Holds one readable file and one that is denied.
    pub library: PathBuf,
    /// Granted to no one.
    pub outside: PathBuf,
    /// The home folder outside: its `.ssh` is denied, the rest is not granted.
    pub home: PathBuf,
    /// A process outside, of the same user, with the marker in its environment.
    pub victim: i32,
    /// Process 1: inside, the sandbox's init. Where nothing is around an attempt, another process of the same
    /// user stands in for it.
    pub init: i32,
    /// Answers every connection with the marker, on the host's loopback.
    pub tcp: SocketAddr,
    /// Answers every datagram with the marker, on the host's loopback.
    pub udp: SocketAddr,
    /// An address of the host on a real network; loopback where it has none.
    pub host_address: SocketAddr,
    /// Abstract Unix socket of the host that answers with the marker, without the leading NUL.
    pub abstract_socket: String,
    /// Abstract Unix datagram socket of the host.
    pub abstract_datagram: String,
    /// Unix socket of the host below `outside`.
    pub outside_socket: PathBuf,
    /// Unix socket of the host in a granted folder.
    pub granted_socket: PathBuf,
    /// A terminal of the user's, in use outside.
    pub terminal: PathBuf,
    /// Descriptor of the library's folder, left open by whoever called Redoma.
    pub inherited: Option<i32>,
    /// Handle of the denied file, taken outside, where the file system has handles.
    pub secret_handle: Option<Handle>,
    /// System V shared memory of the host, holding the marker.
    pub shared_memory: Option<i32>,
}

/// What `open_by_handle_at(2)` opens a file by.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "as redoma_sys::probe::FileHandle has them")]
pub struct Handle {
    pub kind: i32,
    pub bytes: Vec<u8>,
}

// === impl Stage ===

impl Stage {
    /// Reads a stage from what [`Stage::to_json`] gave.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn from_json(json: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(json)
    }

    /// One line of JSON, to be handed to the process inside as an argument.
    ///
    /// # Errors
    /// When a path isn't valid UTF-8.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Denied, below a granted folder.
    pub(crate) fn secret(&self) -> PathBuf {
        self.library.join(SECRET)
    }

    /// Readable, not writable.
    pub(crate) fn book(&self) -> PathBuf {
        self.library.join("book.txt")
    }

    /// Another name of the denied file, made before.
    pub(crate) fn alias(&self) -> PathBuf {
        self.library.join("alias.txt")
    }

    /// A program that is denied: run, it prints its argument.
    pub(crate) fn tool(&self) -> PathBuf {
        self.library.join("tool")
    }

    /// Denied, two folders below the writable project.
    pub(crate) fn nested_secret(&self) -> PathBuf {
        self.project.join("nest/deep/secret.key")
    }

    pub(crate) fn holds_marker(&self, bytes: &[u8]) -> bool {
        bytes.windows(self.marker.len()).any(|window| window == self.marker.as_bytes())
    }

    /// Success when the marker was read; a decoy, an empty file or an error means stopped.
    pub(crate) fn judge_read<E: Into<io::Error>>(&self, content: Result<Vec<u8>, E>) -> Outcome {
        match content {
            Ok(bytes) if self.holds_marker(&bytes) => Outcome::succeeded("read the planted secret"),
            Ok(bytes) => Outcome::stopped(format!("a cover ({} bytes, no secret)", bytes.len())),
            Err(error) => Outcome::refused(error),
        }
    }

    /// Opens and reads `path`, as any program would.
    pub(crate) fn try_read(&self, path: impl AsRef<Path>) -> Outcome {
        self.judge_read(read_bounded(path.as_ref()))
    }
}

impl From<FileHandle> for Handle {
    fn from(handle: FileHandle) -> Self {
        Self { kind: handle.kind, bytes: handle.bytes }
    }
}

/// Name of the denied file in the library.
pub(crate) const SECRET: &str = "secret.key";

/// No planted file is longer; devices and files of `/proc` may have no end.
const READ_MAX: u64 = 1 << 20;

pub(crate) fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    drain(fs::File::open(path)?)
}

pub(crate) fn drain(from: impl Read) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    from.take(READ_MAX).read_to_end(&mut content)?;
    Ok(content)
}
