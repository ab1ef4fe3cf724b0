use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;

use crate::identity::Identity;
use crate::preface::Token;
use redoma_policy::Tier;

/// Everything that init needs to raise a sandbox: the resolved policy, translated to mounts and rules.
///
/// A blueprint holds no choice any more: what cannot be done as drawn fails the start.
#[derive(Clone, Debug)]
pub struct Blueprint {
    /// What the kernel here enforces it with.
    pub tier: Tier,
    /// Who the commands are.
    pub identity: Identity,
    /// What commands of user 0 inside may do to its own; none where the commands are somebody else.
    pub privileges: Privileges,
    /// The machine's name inside; none is the host's.
    pub hostname: Option<String>,
    /// What the root folder is (full tier).
    pub root: Root,
    /// The root file system in the order in which it is put together (full tier).
    pub layout: Vec<Piece>,
    /// What Landlock grants. In the full tier everything visible is readable, so only what can be written counts.
    pub access: Vec<Grant>,
    /// Whether sandboxes may be made inside the sandbox.
    pub nested_userns: bool,
    /// Size limit of each private file system (`/tmp`, the home folder, `/dev/shm`), in bytes.
    pub private_bytes: u64,
    /// The way to the gateway; none means no network at all.
    pub wire: Option<Wire>,
    /// Limits set by `setrlimit(2)`.
    pub rlimits: Vec<(rustix::process::Resource, u64)>,
    /// What must fail before a command starts.
    pub canary: Canary,
}

/// What the root folder of a sandbox is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Root {
    /// An empty folder in memory that nobody can write, with the layout on it.
    #[default]
    Private,
    /// Layers, which commands can write as they like, with the layout on them.
    Layered(Layers),
}

/// Folders laid over each other. See `overlayfs` in the kernel's documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layers {
    /// What is seen, the topmost first. Nothing in them is changed.
    pub lower: Vec<PathBuf>,
    /// Where changes go.
    pub upper: PathBuf,
    /// A folder for the kernel's own use on the file system of `upper`.
    pub work: PathBuf,
    /// Whether nobody waits for changes to be on the disk, neither who asks for it inside nor whoever ends the sandbox: they
    /// are lost when the machine's power fails. See "Volatile mount" in the kernel's documentation of `overlayfs`.
    pub volatile: bool,
}

/// Which capabilities commands keep, over what belongs to the sandbox's own user namespace. See `capabilities(7)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Privileges {
    /// None.
    #[default]
    None,
    /// Those by which user 0 installs packages and starts services under other users: over owners and modes of files,
    /// over user ids, signals, and ports below 1024. None over mounts, devices, the network or the kernel.
    Root,
}

/// A path that Landlock lets commands use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// A folder with all below it, or a file.
    pub path: PathBuf,
    /// What may be done there.
    pub rights: Rights,
}

/// What a [`Grant`] gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rights {
    /// Listing folders.
    List,
    /// Reading, listing and executing.
    Read,
    /// Everything.
    Write,
}

/// One step of putting the root file system together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A private, empty, writable folder that lives in memory.
    Private {
        /// Where.
        at: PathBuf,
        /// Permission bits, such as `0o1777`.
        mode: u32,
    },
    /// A folder or file of the host under its own path.
    Host {
        /// Canonical path, outside and inside.
        at: PathBuf,
        /// Whether it may be written.
        writable: bool,
    },
    /// A folder or file of the host under another path.
    Bind {
        /// Canonical path outside.
        from: PathBuf,
        /// Path inside.
        at: PathBuf,
        /// Whether it may be written.
        writable: bool,
    },
    /// Folders of the host with changes kept aside.
    Overlay {
        /// Path inside.
        at: PathBuf,
        /// Canonical paths of the folders.
        layers: Layers,
    },
    /// A symbolic link.
    Link {
        /// Where.
        at: PathBuf,
        /// What it says.
        target: PathBuf,
    },
    /// A file or folder bound onto itself, so that it cannot be renamed or removed.
    Pin {
        /// Where.
        at: PathBuf,
        /// Whether it also becomes read-only.
        read_only: bool,
    },
    /// Something else in the place of what is there, or of nothing.
    Cover {
        /// Where.
        at: PathBuf,
        /// What is seen instead.
        with: Cover,
    },
    /// Something else in the place of a file, if there is one.
    Replace {
        /// Where.
        at: PathBuf,
        /// What is seen instead.
        with: Cover,
    },
}

impl Piece {
    /// Where the piece goes.
    pub fn at(&self) -> &PathBuf {
        match self {
            Self::Private { at, .. }
            | Self::Host { at, .. }
            | Self::Bind { at, .. }
            | Self::Overlay { at, .. }
            | Self::Link { at, .. }
            | Self::Pin { at, .. }
            | Self::Cover { at, .. }
            | Self::Replace { at, .. } => at,
        }
    }
}

/// What is seen in a covered place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cover {
    /// A file with this content and these permission bits.
    File(Vec<u8>, u32),
    /// A folder with these files: path below it, content and permission bits.
    Folder(Vec<(PathBuf, Vec<u8>, u32)>),
}

/// How connections of commands come to the gateway: one way for each tier.
#[derive(Clone, Debug)]
pub enum Wire {
    /// They are redirected to listeners made in the sandbox's network namespace (full tier).
    Namespace {
        /// The port of the HTTP and SOCKS proxy inside.
        proxy_port: NonZeroU16,
        /// Ports of this machine that are to be found on the same ports inside.
        reach: Vec<NonZeroU16>,
    },
    /// Init makes them in the command's place (landlock tier).
    OnBehalf {
        /// Where the gateway listens, on this machine's IPv4 loopback. The first thing that comes on each connection is
        /// a [`Preface`](crate::Preface).
        relay: SocketAddr,
        /// What the prefaces of this session begin with.
        token: Token,
        /// Ports that commands may listen on, on loopback.
        publish: Vec<NonZeroU16>,
    },
}

/// What a process inside must not be able to do, tried once before the first command.
#[derive(Clone, Debug)]
pub struct Canary {
    /// A file that the user can read outside and that no policy grants.
    pub read: PathBuf,
    /// A folder that the user can write to outside and that no policy grants.
    pub write: PathBuf,
    /// A port on the host's loopback where the caller listens.
    pub connect: u16,
}
