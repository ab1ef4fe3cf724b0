//! What a disposable sandbox is drawn from.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use redoma_jail::{Cover, Grant, Identity, Layers, Piece, Privileges, Rights, Root};
use redoma_policy::{CommandLine, NetworkDefault, ResolvedPolicy};

use super::store::{Base, Layer, Store, failed};
use crate::decoy::Seed;
use crate::driver::{DriverError, ImageName, Mount, Spec, User};
use crate::error::RunError;
use crate::gateway::Prepared;
use crate::homes::Homes;
use crate::project::Project;
use crate::settings::Settings;
use crate::view::{self, Findings, View};
use crate::walk;

/// Where commands run unless somebody says otherwise.
pub(crate) const WORKSPACE: &str = "/workspace";

/// A sandbox's folders on the host.
pub(crate) struct Folders<'a> {
    pub(crate) store: &'a Store,
    pub(crate) folder: PathBuf,
}

/// What is enforced: the built-in rules about the system, the administrator's ceiling, and what was asked for.
pub(crate) fn policy(homes: &Homes, spec: &Spec) -> Result<ResolvedPolicy, DriverError> {
    let sources = Settings::sources_of_sandbox(spec.rules.policy.as_deref())?;
    // Nothing of the caller's is granted but what is mounted. What may not appear in a project may not appear in what is
    // mounted to be written either.
    let nowhere = || homes.state().join("sandboxes").join(spec.id.as_str()).join("nothing");
    let project = written(spec).next().map_or_else(nowhere, |mount| mount.from.clone());
    let settings = Settings {
        homes: homes.clone(),
        project: Project { root: project.clone(), cwd: project, git_dirs: Vec::new() },
        user: String::new(),
        uid: rustix::process::geteuid().as_raw(),
    };
    let mounted = |writable: bool| {
        let direct = spec.mounts.iter().filter(move |mount| mount.writable == writable && !mount.overlay);
        direct.map(|mount| mount.from.to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let typed = CommandLine {
        profile: profile(spec),
        net: Some(default_net(spec)),
        allow: spec.rules.allow.clone(),
        read: mounted(false),
        write: mounted(true),
        memory: spec.amounts.memory,
        cpus: spec.amounts.cpus,
        pids: spec.amounts.pids,
        time: spec.amounts.time,
        ..CommandLine::default()
    };
    let mut policy = settings.resolve(&sources, &typed)?;
    policy.network.local.publish.extend(&spec.publish);
    let disk = [policy.limits.disk, spec.amounts.disk].into_iter().flatten().min();
    policy.limits.disk = disk;
    Ok(policy)
}

/// The host's folders that the sandbox writes.
pub(crate) fn written(spec: &Spec) -> impl Iterator<Item = &Mount> {
    spec.mounts.iter().filter(|mount| mount.writable && !mount.overlay && mount.from.is_dir())
}

/// Of an image nothing of the host's system is there to be ruled.
fn profile(spec: &Spec) -> Option<String> {
    let of_host = spec.image == ImageName::Host || !spec.mounts.is_empty();
    let name = if of_host { "base" } else { "empty" };
    spec.rules.policy.is_none().then(|| name.to_owned())
}

/// A way in, or to a neighbour, needs the gateway; nothing else is let out by it.
fn default_net(spec: &Spec) -> NetworkDefault {
    let asked = spec.rules.net.unwrap_or(match spec.rules.allow.is_empty() {
        true => NetworkDefault::None,
        false => NetworkDefault::Deny,
    });
    let needs_gateway = !spec.publish.is_empty() || !spec.peers.is_empty();
    if asked == NetworkDefault::None && needs_gateway { NetworkDefault::Deny } else { asked }
}

/// Who commands are, and what is missing where other users do not exist.
pub(crate) fn identity(spec: &Spec) -> (Identity, Option<String>) {
    let as_root = spec.user == User::Root;
    if spec.image == ImageName::Host {
        return (Identity::of_caller(as_root), None);
    }
    match super::mapped::identity(as_root) {
        Ok(ranges) => (ranges, None),
        Err(missing) => (Identity::of_caller(as_root), Some(missing)),
    }
}

pub(crate) fn privileges(spec: &Spec) -> Privileges {
    match spec.user {
        User::Root => Privileges::Root,
        User::Me => Privileges::None,
    }
}

impl Folders<'_> {
    pub(crate) fn root(&self, base: &Base) -> Result<Root, DriverError> {
        fresh_work(&self.folder.join("work"))?;
        let mut lower: Vec<PathBuf> = base.chain.iter().map(|layer| self.store.layer(layer)).collect();
        lower.push(self.folder.join("base"));
        let (upper, work) = (self.folder.join("upper"), self.folder.join("work"));
        Ok(Root::Layered(Layers { lower, upper, work, volatile: true }))
    }

    /// Draws everything that lies on the layers, and makes the places for it.
    pub(crate) fn draw(
        &self,
        homes: &Homes,
        spec: &Spec,
        policy: &ResolvedPolicy,
    ) -> Result<View, DriverError> {
        let mut view = match (&spec.image, spec.mounts.is_empty()) {
            (ImageName::Host, _) | (_, false) => self.of_policy(homes, spec, policy)?,
            _ => View::default(),
        };
        if spec.image != ImageName::Host {
            let processors = ["/sys/devices/system/cpu", "/sys/devices/system/node"].map(PathBuf::from);
            let there = processors.into_iter().filter(|path| path.is_dir());
            view.layout.extend(there.map(|at| Piece::Host { at, writable: false }));
        }
        for (number, mount) in spec.mounts.iter().enumerate().filter(|(_, mount)| mount.overlay) {
            view.layout.push(self.overlay(number, mount)?);
        }
        let hosts = format!("127.0.0.1 localhost {0}\n::1 localhost ip6-localhost ip6-loopback\n", spec.name);
        let hosts = Piece::Cover { at: "/etc/hosts".into(), with: Cover::File(hosts.into_bytes(), 0o444) };
        view.layout.push(hosts);
        self.make_places(&view.layout)?;
        view.access = vec![Grant { path: "/".into(), rights: Rights::Write }];
        Ok(view)
    }

    /// What the policy grants, as in a run: denied files are covered and protected ones pinned, also in what is mounted.
    fn of_policy(&self, homes: &Homes, spec: &Spec, policy: &ResolvedPolicy) -> Result<View, DriverError> {
        let start = |error| DriverError::Start(error);
        let found =
            view::search(policy, homes, walk::Limits::default()).map_err(|error| start(error.into()))?;
        let findings = Findings::collect(policy, &found);
        let policy = &findings.spelled_out(policy);
        let seed = Seed::random().map_err(|errno| start(RunError::Wait(errno)))?;
        let mut view = view::full(policy, &findings, &seed, None).map_err(start)?;
        let of_host = spec.image == ImageName::Host;
        let layout = std::mem::take(&mut view.layout).into_iter();
        view.layout = layout.filter_map(|piece| moved(piece, spec, policy, of_host)).collect();
        Ok(view)
    }

    /// The certificates and the resolver, with the places for them.
    pub(crate) fn network_pieces(&self, spec: &Spec, prepared: &Prepared) -> Result<Vec<Piece>, DriverError> {
        let pieces = match spec.image {
            // Names of the sandbox's own file stay: it is not the host's.
            ImageName::Host => {
                prepared.pieces().into_iter().filter(|piece| piece.at() != Path::new("/etc/hosts")).collect()
            }
            _ => prepared.pieces_of_image(),
        };
        self.make_places(&pieces)?;
        Ok(pieces)
    }

    fn overlay(&self, number: usize, mount: &Mount) -> Result<Piece, DriverError> {
        let own = self.folder.join("mounts").join(number.to_string());
        let (upper, work) = (own.join("upper"), own.join("work"));
        make_folders(&upper)?;
        fresh_work(&work)?;
        let layers = Layers { lower: vec![mount.from.clone()], upper, work, volatile: true };
        Ok(Piece::Overlay { at: mount.to.clone(), layers })
    }

    /// Everything that is mounted lies on something. What the image does not have is made below all of it, where a
    /// snapshot does not show it.
    fn make_places(&self, layout: &[Piece]) -> Result<(), DriverError> {
        let base = self.folder.join("base");
        const FOLDERS: [(&str, u32); 11] = [
            ("proc", 0o755),
            ("dev", 0o755),
            ("sys", 0o755),
            ("run", 0o755),
            ("etc", 0o755),
            ("tmp", 0o1777),
            ("var/tmp", 0o1777),
            ("root", 0o700),
            ("home/me", 0o755),
            ("workspace", 0o755),
            ("run/redoma", 0o755),
        ];
        for (name, mode) in FOLDERS {
            let folder = base.join(name);
            if !folder.is_dir() {
                make_folders(&folder)?;
                fs::set_permissions(&folder, fs::Permissions::from_mode(mode))
                    .map_err(|source| failed("make", &folder, source))?;
            }
        }
        for piece in layout {
            let (at, is_folder) = match piece {
                Piece::Host { at, .. } => (at, at.is_dir()),
                Piece::Bind { from, at, .. } => (at, from.is_dir()),
                Piece::Overlay { at, .. } | Piece::Private { at, .. } => (at, true),
                Piece::Cover { at, with } => (at, matches!(with, Cover::Folder(_))),
                Piece::Link { .. } | Piece::Pin { .. } | Piece::Replace { .. } => continue,
            };
            // What lies in something that is mounted has its place there.
            let within = |other: &Piece| other.at() != at && at.starts_with(other.at()) && is_mount(other);
            if !layout.iter().any(within) {
                make_place(&base.join(at.strip_prefix("/").unwrap_or(at)), is_folder)?;
            }
        }
        Ok(())
    }
}

fn is_mount(piece: &Piece) -> bool {
    matches!(piece, Piece::Host { .. } | Piece::Bind { .. } | Piece::Overlay { .. })
}

/// A piece of a run's view where it belongs in a sandbox; none for what it has not. Of the host's own system there is only
/// what the image is.
fn moved(piece: Piece, spec: &Spec, policy: &ResolvedPolicy, of_host: bool) -> Option<Piece> {
    let at = piece.at().clone();
    let mount = spec.mounts.iter().filter(|mount| !mount.overlay && at.starts_with(&mount.from));
    if let Some(mount) = mount.max_by_key(|mount| mount.from.components().count()) {
        let below = at.strip_prefix(&mount.from).unwrap_or(&at);
        let to = if below.as_os_str().is_empty() { mount.to.clone() } else { mount.to.join(below) };
        return match piece {
            Piece::Host { at: from, writable } => Some(Piece::Bind { from, at: to, writable }),
            Piece::Pin { read_only, .. } => Some(Piece::Pin { at: to, read_only }),
            Piece::Cover { with, .. } => Some(Piece::Cover { at: to, with }),
            Piece::Link { target, .. } => Some(Piece::Link { at: to, target }),
            Piece::Bind { .. } | Piece::Overlay { .. } | Piece::Private { .. } | Piece::Replace { .. } => {
                None
            }
        };
    }
    let of_system = !matches!(piece, Piece::Private { .. }) && !at.starts_with(&policy.home);
    (of_host && of_system).then_some(piece)
}

fn make_folders(path: &Path) -> Result<(), DriverError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(path)
        .map_err(|source| failed("make the folder", path, source))
}

/// The kernel leaves a mark there that no volatile mount may follow another: what is in its memory has to be let go of first,
/// as in a failure of power. Between two keepers there is none.
fn fresh_work(work: &Path) -> Result<(), DriverError> {
    let marked = work.join("work/incompat");
    // As root it can be looked into; otherwise the kernel's folder is closed, and is there after any use.
    if marked.symlink_metadata().is_ok() || work.join("work").symlink_metadata().is_ok() {
        crate::leftovers::remove_path(work).map_err(|source| failed("clear", work, source))?;
    }
    make_folders(work)
}

fn make_place(path: &Path, is_folder: bool) -> Result<(), DriverError> {
    if is_folder {
        return make_folders(path);
    }
    make_folders(path.parent().unwrap_or(path))?;
    match fs::File::create_new(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed("make", path, error)),
        _ => Ok(()),
    }
}

/// Refuses what must not be seen inside, or would be in the way of what every sandbox has.
pub(crate) fn check_mounts(homes: &Homes, mounts: &[Mount]) -> Result<(), DriverError> {
    let own = [homes.config(), homes.state(), homes.run()]
        .map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
    for mount in mounts {
        let refuse = |why: &str, hint: &str| {
            let what = format!("the mount {}:{}", mount.from.display(), mount.to.display());
            Err(DriverError::Invalid { what, why: why.to_owned(), hint: hint.to_owned() })
        };
        let plain = mount.to.components().skip(1).all(|part| matches!(part, Component::Normal(_)));
        if !mount.to.is_absolute() || !plain || mount.to == Path::new("/") {
            return refuse("its place inside is no plain absolute path", "--mount .:/workspace");
        }
        if ["/proc", "/dev", "/sys"].iter().any(|kernel| mount.to.starts_with(kernel)) {
            return refuse("the kernel's own folders are not to be covered", "--mount .:/workspace");
        }
        if own.iter().any(|own| own.starts_with(&mount.from) || mount.from.starts_with(own)) {
            return refuse(
                "it holds what Redoma keeps: keys, the record, sandboxes",
                "mount a folder below it instead",
            );
        }
        if !mount.from.exists() {
            return refuse("there is no such file or folder on this machine", "ls -l");
        }
        if mount.overlay && !mount.from.is_dir() {
            return refuse("only a folder can have changes kept aside", "add `:ro` to it");
        }
    }
    Ok(())
}

/// Layers of the host that an image is, checked when the sandbox is made.
pub(crate) fn folder_layer(path: &Path) -> Result<Layer, DriverError> {
    let real = path.canonicalize().map_err(|source| failed("open the folder", path, source))?;
    if real.is_dir() {
        return Ok(Layer::Folder(real));
    }
    Err(failed("open the folder", path, io::ErrorKind::NotADirectory.into()))
}
