//! The root file system of the full tier: put together on tmpfs by direct mount calls, then entered.
//!
//! Host paths are opened first, while the host's tree is still the root, and without following any symbolic link:
//! the policy decided on canonical paths, and whatever a link says now was put there since. From `pivot_root` on,
//! nothing of the host can be named but what was opened. See `mount_namespaces(7)`, `pivot_root(2)`, `open_tree(2)`.

mod proc;

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use redoma_sys::{Errno, MountAttributes, mount_setattr};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags,
};

use crate::blueprint::{Blueprint, Cover, Layers, Piece, Root as Ground};
use crate::error::{Failure, InStep, Step};

/// Builds the root file system and makes it this process's root.
pub(crate) fn enter(blueprint: &Blueprint) -> Result<(), Failure> {
    // Without this every mount made here would propagate to the host's shared mounts.
    rustix::mount::mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .step(Step::DetachMounts)?;
    let trees = blueprint.layout.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    // A fresh proc can only be made while the host's own, unmasked one is in the mount namespace.
    let proc = new_filesystem("proc", &[]).step_at(Step::NewRoot, "/proc")?;
    let devices = open_devices()?;
    let ground = Opened::open(&blueprint.root)?;
    let mut root = Root::pivot(ground, blueprint.private_bytes)?;
    root.mount_proc(&proc, blueprint.nested_userns)?;
    root.make_dev(&devices)?;
    for (piece, tree) in blueprint.layout.iter().zip(trees) {
        root.place(piece, tree)?;
    }
    root.seal()
}

// === opening, on the host's side ===

/// The detached mount a piece brings along from the host, if any.
fn open(piece: &Piece) -> Result<Option<OwnedFd>, Failure> {
    match piece {
        Piece::Host { at, writable } => open_host(at, *writable).map(Some),
        Piece::Bind { from, writable, .. } => open_host(from, *writable).map(Some),
        Piece::Overlay { at, layers } => open_overlay(at, layers).map(Some),
        Piece::Private { .. }
        | Piece::Link { .. }
        | Piece::Pin { .. }
        | Piece::Cover { .. }
        | Piece::Replace { .. } => Ok(None),
    }
}

fn open_host(at: &Path, writable: bool) -> Result<OwnedFd, Failure> {
    let path = open_unlinked(at).step_at(Step::OpenHostPath, at)?;
    let tree = clone_tree(&path).step_at(Step::OpenHostPath, at)?;
    let attributes = match (at.starts_with("/dev"), writable) {
        (true, _) => MountAttributes::READ_ONLY_DEVICES,
        (false, true) => MountAttributes::CONFINED,
        (false, false) => MountAttributes::READ_ONLY,
    };
    mount_setattr(&tree, attributes, true).step_at(Step::OpenHostPath, at)?;
    Ok(tree)
}

fn open_unlinked(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat2(
        CWD,
        path,
        flags,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    )
}

fn clone_tree(of: impl AsFd) -> Result<OwnedFd, Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    rustix::mount::open_tree(of, "", flags)
}

/// The layers go in by descriptor: a path in an overlay's options would need escaping and could be swapped, and the
/// names of many would not fit.
fn open_overlay(at: &Path, layers: &Layers) -> Result<OwnedFd, Failure> {
    let open = |path: &PathBuf| open_unlinked(path).step_at(Step::Overlay, path);
    let lower = layers.lower.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let (upper, work) = (open(&layers.upper)?, open(&layers.work)?);
    let name = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
    // userxattr: without privilege over the host's file system the kernel's marks go into `user.overlay.*`.
    let mut own = vec![("upperdir", name(&upper)), ("workdir", name(&work)), ("userxattr", String::new())];
    own.extend(layers.volatile.then(|| ("volatile", String::new())));
    let together = ("lowerdir", lower.iter().map(name).collect::<Vec<_>>().join(":"));
    let one_by_one = lower.iter().map(|fd| ("lowerdir+", name(fd)));
    // One option holds at most 255 bytes. Before Linux 6.5 there is only that one.
    let overlay = new_filesystem("overlay", &one_by_one.chain(own.clone()).collect::<Vec<_>>())
        .or_else(|_| {
            new_filesystem("overlay", &[together].into_iter().chain(own.clone()).collect::<Vec<_>>())
        })
        .step_at(Step::Overlay, at)?;
    mount_setattr(&overlay, MountAttributes::CONFINED, false).step_at(Step::Overlay, at)?;
    Ok(overlay)
}

/// A new file system, mounted nowhere yet.
fn new_filesystem(kind: &str, options: &[(&str, String)]) -> Result<OwnedFd, Errno> {
    let context = rustix::mount::fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        if value.is_empty() {
            rustix::mount::fsconfig_set_flag(context.as_fd(), *key)?;
        } else {
            rustix::mount::fsconfig_set_string(context.as_fd(), *key, value.as_str())?;
        }
    }
    rustix::mount::fsconfig_create(context.as_fd())?;
    // Terminals are devices; nothing else that is made here may hold any.
    let devices =
        if kind == "devpts" { MountAttrFlags::MOUNT_ATTR_NOEXEC } else { MountAttrFlags::MOUNT_ATTR_NODEV };
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | devices;
    rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// The devices that programs cannot do without; none reaches hardware.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

fn open_devices() -> Result<Vec<OwnedFd>, Failure> {
    let open = |name: &&str| {
        let path = Path::new("/dev").join(name);
        let tree = clone_tree(open_unlinked(&path).step_at(Step::OpenHostPath, &path)?)
            .step_at(Step::OpenHostPath, &path)?;
        mount_setattr(&tree, MountAttributes::READ_ONLY_DEVICES, false).step_at(Step::OpenHostPath, &path)?;
        Ok(tree)
    };
    DEVICES.iter().map(open).collect()
}

// === placing, on the inside ===

/// What the new root folder will be.
enum Opened {
    Private,
    Layered(OwnedFd),
}

impl Opened {
    fn open(ground: &Ground) -> Result<Self, Failure> {
        match ground {
            Ground::Private => Ok(Self::Private),
            Ground::Layered(layers) => open_overlay(Path::new("/"), layers).map(Self::Layered),
        }
    }
}

/// The new root, already entered.
struct Root {
    /// `/`, for paths that must not leave it.
    folder: OwnedFd,
    /// Whether `/` itself is the commands' to write.
    writable: bool,
    /// One file system for all private folders and covers, so that one size limits them together.
    store: OwnedFd,
    /// How many things the store holds; each is named by its number.
    stored: usize,
    /// Device numbers of the file systems made here. A mount point is only ever created in one of these: the host's
    /// tree stays as it is.
    ours: Vec<u64>,
}

/// An empty folder at the root. A store lies there for a moment when the host replaces what is covered; then what it
/// holds is mounted where it belongs and has no other name.
const STORE: &str = ".redoma";

impl Root {
    fn pivot(ground: Opened, private_bytes: u64) -> Result<Self, Failure> {
        /// Mount points and links; it is read-only before a command runs.
        const ROOM: u64 = 16 << 20;
        let (folder, writable) = match ground {
            Opened::Private => (tmpfs(ROOM, 0o755).step(Step::NewRoot)?, false),
            Opened::Layered(layers) => (layers, true),
        };
        // The mount has to be somewhere to become the root, and /tmp is everywhere. This process alone sees it.
        // The store lies beneath it, in the host's tree, and goes with that: every unmount waits until all processors
        // have seen it.
        let store = tmpfs(private_bytes, 0o700).step(Step::NewRoot)?;
        attach(&store, CWD, "/tmp").step(Step::EnterRoot)?;
        attach(&folder, CWD, "/tmp").step(Step::EnterRoot)?;
        rustix::process::fchdir(&folder).step(Step::EnterRoot)?;
        // The host's tree then lies over the new root, where no path leads, until `seal`.
        rustix::process::pivot_root(".", ".").step(Step::EnterRoot)?;
        rustix::process::chdir("/").step(Step::EnterRoot)?;
        if !writable {
            rustix::fs::mkdirat(&folder, STORE, Mode::from_raw_mode(0o700)).step(Step::NewRoot)?;
        }
        Self::with_store(folder, writable, store)
    }

    /// In a root that was entered and sealed before.
    fn entered(bytes: u64) -> Result<Self, Failure> {
        let folder = open_unlinked(Path::new("/")).step(Step::EnterRoot)?;
        let store = tmpfs(bytes, 0o700).step(Step::NewRoot)?;
        let place = open_beneath(&folder, Path::new(STORE)).step(Step::NewRoot)?;
        attach(&store, place, "").step(Step::NewRoot)?;
        Self::with_store(folder, false, store)
    }

    fn with_store(folder: OwnedFd, writable: bool, store: OwnedFd) -> Result<Self, Failure> {
        let device = |fd: &OwnedFd| rustix::fs::fstat(fd).map(|stat| stat.st_dev).step(Step::NewRoot);
        let ours = vec![device(&folder)?, device(&store)?];
        Ok(Self { folder, writable, store, stored: 0, ours })
    }

    fn let_go_of_store(&self) -> Result<(), Failure> {
        rustix::mount::unmount(Path::new("/").join(STORE), UnmountFlags::DETACH).step(Step::NewRoot)
    }

    fn make_dev(&mut self, devices: &[OwnedFd]) -> Result<(), Failure> {
        const LINKS: [(&str, &str); 5] = [
            ("ptmx", "pts/ptmx"),
            ("fd", "/proc/self/fd"),
            ("stdin", "/proc/self/fd/0"),
            ("stdout", "/proc/self/fd/1"),
            ("stderr", "/proc/self/fd/2"),
        ];
        let dev = Path::new("/dev");
        for (name, tree) in DEVICES.iter().zip(devices) {
            self.attach_at(tree, &dev.join(name), Kind::File)?;
        }
        // A terminal of the sandbox's own has a name here and none outside.
        let options = [("newinstance", String::new()), ("ptmxmode", "0666".into()), ("mode", "0620".into())];
        let terminals = new_filesystem("devpts", &options).step_at(Step::NewRoot, "/dev/pts")?;
        self.attach_at(&terminals, &dev.join("pts"), Kind::Folder)?;
        for (name, target) in LINKS {
            self.link(&dev.join(name), Path::new(target))?;
        }
        self.private(&dev.join("shm"), 0o1777)
    }

    fn place(&mut self, piece: &Piece, tree: Option<OwnedFd>) -> Result<(), Failure> {
        match (piece, tree) {
            (Piece::Host { at, .. } | Piece::Bind { at, .. } | Piece::Overlay { at, .. }, Some(tree)) => {
                let kind = Kind::of(&tree).step_at(Step::Place, at)?;
                self.attach_at(&tree, at, kind)
            }
            (Piece::Private { at, mode }, _) => self.private(at, *mode),
            (Piece::Link { at, target }, _) => self.link(at, target),
            (Piece::Pin { at, read_only }, _) => self.pin(at, *read_only),
            (Piece::Cover { at, with }, _) => self.cover(at, with),
            (Piece::Replace { at, with }, _) => match self.open(at) {
                // A link is another name of a file that is replaced itself.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(()),
                _ => self.cover(at, with),
            },
            (Piece::Host { .. } | Piece::Bind { .. } | Piece::Overlay { .. }, None) => {
                unreachable!("opened above")
            }
        }
    }

    fn private(&mut self, at: &Path, mode: u32) -> Result<(), Failure> {
        let folder = self.new_folder(mode).step_at(Step::NewRoot, at)?;
        let tree = stored_tree(&folder, MountAttributes::CONFINED).step_at(Step::Place, at)?;
        self.attach_at(&tree, at, Kind::Folder)
    }

    fn new_name(&mut self) -> String {
        self.stored += 1;
        self.stored.to_string()
    }

    fn new_folder(&mut self, mode: u32) -> Result<OwnedFd, Errno> {
        let name = self.new_name();
        rustix::fs::mkdirat(&self.store, &name, Mode::from_raw_mode(mode))?;
        open_beneath(&self.store, Path::new(&name))
    }

    fn link(&self, at: &Path, target: &Path) -> Result<(), Failure> {
        let (parent, name) = self.parent(at)?;
        match rustix::fs::symlinkat(target, &parent, name) {
            // The host's own link is visible here already.
            Err(Errno::EXIST) => Ok(()),
            done => done.step_at(Step::Create, at),
        }
    }

    fn pin(&self, at: &Path, read_only: bool) -> Result<(), Failure> {
        pin(&self.open(at).step_at(Step::Place, at)?, at, read_only)
    }

    fn cover(&mut self, at: &Path, cover: &Cover) -> Result<(), Failure> {
        let stored = self.store(cover).step_at(Step::Create, at)?;
        let tree = stored_tree(&stored, MountAttributes::READ_ONLY).step_at(Step::Place, at)?;
        self.attach_at(&tree, at, cover.into())
    }

    fn store(&mut self, cover: &Cover) -> Result<OwnedFd, Errno> {
        match cover {
            Cover::File(content, mode) => {
                let name = self.new_name();
                write_file(&self.store, OsStr::new(&name), content, *mode)?;
                open_beneath(&self.store, Path::new(&name))
            }
            Cover::Folder(files) => self.new_folder(0o700).and_then(|folder| fill(folder, files)),
        }
    }

    fn where_present(
        &mut self,
        at: &Path,
        act: impl FnOnce(&mut Self, &Path, OwnedFd) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        match self.open(at) {
            Err(Errno::NOENT) => Ok(()),
            opened => act(self, at, opened.step_at(Step::Place, at)?),
        }
    }

    /// Lets go of the host's tree, and of the store with it: nothing is left to climb back to. From here on `/` itself
    /// can't be written, unless it is layers that can.
    fn seal(&self) -> Result<(), Failure> {
        rustix::mount::unmount(".", UnmountFlags::DETACH).step(Step::EnterRoot)?;
        if self.writable {
            return Ok(());
        }
        mount_setattr(&self.folder, MountAttributes::READ_ONLY, false).step(Step::NewRoot)
    }

    fn attach_at(&self, tree: &OwnedFd, at: &Path, kind: Kind) -> Result<(), Failure> {
        let target = match self.open(at) {
            Err(Errno::NOENT) => self.create(at, kind)?,
            // An image's link in the place of a file that every sandbox has, such as /etc/resolv.conf: nothing but a
            // file can be mounted on, and what the link leads to is not what was asked for.
            Err(Errno::LOOP) if self.writable => self.replace_link(at, kind)?,
            opened => opened.step_at(Step::Place, at)?,
        };
        attach(tree, &target, "").step_at(Step::Place, at)
    }

    fn open(&self, at: &Path) -> Result<OwnedFd, Errno> {
        open_beneath(&self.folder, at.strip_prefix("/").unwrap_or(at))
    }

    fn create(&self, at: &Path, kind: Kind) -> Result<OwnedFd, Failure> {
        let (parent, name) = self.parent(at)?;
        self.require_ours(&parent, at)?;
        match kind {
            Kind::Folder => rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755)),
            Kind::File => write_file(&parent, name, &[], 0o644),
        }
        .step_at(Step::Create, at)?;
        self.open(at).step_at(Step::Create, at)
    }

    fn replace_link(&self, at: &Path, kind: Kind) -> Result<OwnedFd, Failure> {
        let (parent, name) = self.parent(at)?;
        self.require_ours(&parent, at)?;
        rustix::fs::unlinkat(&parent, name, AtFlags::empty()).step_at(Step::Create, at)?;
        self.create(at, kind)
    }

    fn parent<'a>(&self, at: &'a Path) -> Result<(OwnedFd, &'a OsStr), Failure> {
        let Some(Component::Normal(name)) = at.components().next_back() else {
            return Err(Failure::at(Step::Create, at, Errno::INVAL));
        };
        let folder = at.parent().unwrap_or(Path::new("/"));
        match self.open(folder) {
            Ok(parent) => Ok((parent, name)),
            Err(Errno::NOENT) => Ok((self.create(folder, Kind::Folder)?, name)),
            Err(errno) => Err(Failure::at(Step::Create, folder, errno)),
        }
    }

    fn require_ours(&self, parent: &OwnedFd, at: &Path) -> Result<(), Failure> {
        let device = rustix::fs::fstat(parent).step_at(Step::Create, at)?.st_dev;
        if self.ours.contains(&device) { Ok(()) } else { Err(Failure::at(Step::Create, at, Errno::ROFS)) }
    }
}

/// A mount of its own for what the store holds.
fn stored_tree(stored: &OwnedFd, attributes: MountAttributes) -> Result<OwnedFd, Errno> {
    let tree = clone_tree(stored)?;
    mount_setattr(&tree, attributes, false)?;
    Ok(tree)
}

/// Mounts what lies at a place over itself.
fn pin(path: &OwnedFd, at: &Path, read_only: bool) -> Result<(), Failure> {
    let tree = clone_tree(path).step_at(Step::Place, at)?;
    if read_only {
        mount_setattr(&tree, MountAttributes::READ_ONLY, true).step_at(Step::Place, at)?;
    }
    attach(&tree, path, "").step_at(Step::Place, at)
}

/// Opens a path below a folder of the new root. Symbolic links in it are refused: the pieces have canonical paths.
fn open_beneath(folder: &OwnedFd, below: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(folder, below, flags, Mode::empty(), resolve)
}

fn fill(folder: OwnedFd, files: &[(PathBuf, Vec<u8>, u32)]) -> Result<OwnedFd, Errno> {
    for (name, content, mode) in files {
        if let Some(parent) = name.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            match rustix::fs::mkdirat(&folder, parent, Mode::from_raw_mode(0o700)) {
                Err(Errno::EXIST) => {}
                made => made?,
            }
        }
        write_file(&folder, name.as_os_str(), content, *mode)?;
    }
    Ok(folder)
}

#[derive(Clone, Copy)]
enum Kind {
    File,
    Folder,
}

impl Kind {
    fn of(tree: &OwnedFd) -> Result<Self, Errno> {
        let mode = rustix::fs::fstat(tree)?.st_mode;
        Ok(if FileType::from_raw_mode(mode) == FileType::Directory { Self::Folder } else { Self::File })
    }
}

impl From<&Cover> for Kind {
    fn from(cover: &Cover) -> Self {
        match cover {
            Cover::File(..) => Self::File,
            Cover::Folder(_) => Self::Folder,
        }
    }
}

/// A file system in memory. Its names cost the kernel memory too, which no size counts.
fn tmpfs(bytes: u64, mode: u32) -> Result<OwnedFd, Errno> {
    let names = (bytes / 8192).max(65_536);
    let size = ("size", bytes.to_string());
    new_filesystem("tmpfs", &[size, ("nr_inodes", names.to_string()), ("mode", format!("{mode:o}"))])
}

fn attach(tree: impl AsFd, to: impl AsFd, path: &str) -> Result<(), Errno> {
    let mut flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    if path.is_empty() {
        flags |= MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    }
    rustix::mount::move_mount(tree, "", to, path, flags)
}

fn write_file(folder: &OwnedFd, name: &OsStr, content: &[u8], mode: u32) -> Result<(), Errno> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(mode))?;
    let mut rest = content;
    while !rest.is_empty() {
        rest = &rest[rustix::io::write(&file, rest)?..];
    }
    Ok(())
}

/// Places pieces once more, in a root that was entered and sealed before.
pub(crate) fn place_again(pieces: &[Piece]) -> Result<(), Failure> {
    const ROOM: u64 = 16 << 20;
    let mut root = Root::entered(ROOM)?;
    // Nothing may be created now.
    root.ours.clear();
    for piece in pieces {
        root.place_where_it_is(piece)?;
    }
    root.let_go_of_store()
}

impl Root {
    /// A program on the host that writes a file several times, as git does, may replace it between our look at it and our
    /// mount on it.
    fn place_where_it_is(&mut self, piece: &Piece) -> Result<(), Failure> {
        const TRIES: usize = 100;
        let mut placed = Ok(());
        for _ in 0..TRIES {
            // What the host has removed needs no cover.
            placed = self.where_present(piece.at(), |root, _, _| root.place(piece, None));
            match &placed {
                Err(failure) if failure.errno() == Errno::NOENT => {}
                _ => return placed,
            }
        }
        placed
    }
}

// === rehearsals, for the probes ===

/// Does what every sandbox does, with nothing of the host in it.
pub(crate) fn rehearse() -> Result<(), Failure> {
    rustix::mount::mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
        .step(Step::DetachMounts)?;
    let usr = open_host(Path::new("/usr"), false)?;
    let proc = new_filesystem("proc", &[]).step_at(Step::NewRoot, "/proc")?;
    let devices = open_devices()?;
    let mut root = Root::pivot(Opened::Private, 1 << 20)?;
    root.mount_proc(&proc, false)?;
    root.make_dev(&devices)?;
    root.attach_at(&usr, Path::new("/usr"), Kind::Folder)?;
    root.seal()
}

/// Lays one folder over another, all of them in a file system that is gone afterwards.
pub(crate) fn rehearse_overlay() -> Result<(), Failure> {
    let base = Path::new("/tmp");
    let place = tmpfs(1 << 20, 0o700).step_at(Step::NewRoot, base)?;
    attach(&place, CWD, "/tmp").step_at(Step::Place, base)?;
    for name in ["lower", "upper", "work"] {
        rustix::fs::mkdirat(&place, name, Mode::from_raw_mode(0o700))
            .step_at(Step::Create, base.join(name))?;
    }
    let (lower, upper, work) = (vec![base.join("lower")], base.join("upper"), base.join("work"));
    open_overlay(base, &Layers { lower, upper, work, volatile: false }).map(drop)
}
