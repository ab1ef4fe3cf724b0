//! What a session left of repositories, looked at when all its processes are gone.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use redoma_policy::ResolvedPolicy;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::config::{Config, Entry};
use super::configured::CONFIG_MAX;
use super::ground::Ground;
use super::harmless::is_harmless;
use super::repository::{Folder, PARTS, hooks, kind};
use super::{Before, MARKS_VERSION, Marks, is_mark};
use crate::homes::Homes;
use crate::quarantine::{Keep, Outcome, Quarantined};
use crate::settings::nearest_canonical;
use crate::view;
use crate::walk::tree::{self, Identity, Root};
use crate::walk::{FileKind, Found, Limits, Match, Verdict, Walk, WalkError};

/// For a tree that a start would refuse: the session may have made it so to be passed over.
const AT_THE_END: Limits =
    Limits { entries: 100_000_000, time: Duration::from_secs(120), pass_over_deep: true };

/// A `.git` file, `commondir` and `alternates`: some paths.
const POINTER_MAX: usize = 64 * 1024;

/// What was done.
#[derive(Debug, Default)]
pub(crate) struct Judged {
    pub(crate) quarantined: Vec<Quarantined>,
    /// Where nobody could look, for the user.
    pub(crate) notes: Vec<String>,
}

/// Moves away what the session made that git on the host would run, or be led elsewhere by.
pub(crate) fn judge(policy: &ResolvedPolicy, homes: &Homes, before: &Before, quarantine: &Path) -> Judged {
    let found = view::search(policy, homes, Limits::default());
    let found = found.or_else(|_| view::search(policy, homes, AT_THE_END));
    judge_found(found, &Ground::of(policy), before, quarantine)
}

/// The same, when nothing is left of the session but what was noted.
pub(crate) fn judge_noted(ground: &Ground, before: &Before, quarantine: &Path) -> Judged {
    let noted = Match { verdict: Verdict::Note, rule: u32::MAX };
    let matcher = |path: &Path, kind| is_mark(path, kind).then_some(noted);
    let walk =
        Walk { matcher: &matcher, fingerprint: MARKS_VERSION, limits: AT_THE_END, cache: None, sought: &[] };
    judge_found(walk.run(&ground.existing()), ground, before, quarantine)
}

fn judge_found(
    found: Result<Found, WalkError>,
    ground: &Ground,
    before: &Before,
    quarantine: &Path,
) -> Judged {
    let mut judge = Judge { ground, before, keep: Keep::new(quarantine), judged: Judged::default() };
    match found {
        Ok(found) => judge.all(&found),
        Err(error) => judge.judged.notes.push(format!(
            "git repositories made by this session could not be checked ({error}); look at their .git/config before you run git there"
        )),
    }
    judge.judged
}

struct Judge<'a> {
    ground: &'a Ground,
    before: &'a Before,
    keep: Keep,
    judged: Judged,
}

/// A git folder, held open.
struct Open<'a> {
    path: PathBuf,
    root: Root,
    known: Option<&'a Folder>,
}

// === impl Judge ===

impl Judge<'_> {
    fn all(&mut self, found: &Found) {
        let marks = Marks::of(found);
        let writable = |path: &PathBuf| self.is_writable(path);
        let folders: BTreeSet<PathBuf> = marks.folders.into_iter().filter(writable).collect();
        let pointers: Vec<PathBuf> = marks.pointers.into_iter().filter(writable).collect();
        let closed: Vec<PathBuf> = found.unreadable.iter().filter(|path| writable(path)).cloned().collect();
        pointers.iter().for_each(|pointer| self.pointer(pointer, &folders));
        folders.iter().for_each(|folder| self.folder(folder, &folders));
        for path in closed.iter().filter(|path| !self.before.unreadable.contains(path)) {
            let note =
                format!("{} was closed by the session; nobody could look for git in it", path.display());
            self.judged.notes.push(note);
        }
    }

    fn is_writable(&self, path: &Path) -> bool {
        self.ground.holds(path)
    }

    /// A `.git` that is a file or a link must lead to a git folder that is judged as well. Nothing else is looked into: a
    /// pointer must not make us take the user's own files for hooks.
    fn pointer(&mut self, path: &Path, folders: &BTreeSet<PathBuf>) {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return };
        let Ok(dir) = self.open(folder) else { return };
        let Some(stat) = stat_at(dir.fd(), Path::new(name)) else { return };
        let target = match kind(&stat) {
            FileType::Symlink => Some(nearest_canonical(path)),
            FileType::RegularFile => pointed(&dir, Path::new(name), b"gitdir: ", folder),
            _ => None,
        };
        let unchanged =
            self.before.pointers.get(path) == Some(&Identity::of(&stat)) || self.before.was_guarded(path);
        if !unchanged && !target.is_some_and(|target| folders.contains(&target)) {
            self.take(dir.fd(), name, path.to_owned());
        }
    }

    /// Judges the parts of a git folder.
    fn folder(&mut self, path: &Path, folders: &BTreeSet<PathBuf>) {
        let Ok(root) = self.open(path) else { return };
        let Ok(own) = rustix::fs::fstat(root.fd()) else { return };
        let known = self.before.folders.get(&(own.st_dev, own.st_ino));
        let open = Open { path: path.to_owned(), root, known };
        for part in PARTS.map(Path::new) {
            match open.root.stat(part) {
                Ok(stat) if !self.is_unchanged(&open, part, &stat) => self.part(&open, part, &stat, folders),
                Ok(_) => {}
                // Reached through a link, as `objects` may be one: git follows it.
                Err(_) => self.through_link(&open, part),
            }
        }
    }

    fn part(&mut self, open: &Open<'_>, part: &Path, stat: &Stat, folders: &BTreeSet<PathBuf>) {
        match part.to_str() {
            Some("hooks") => self.hooks(open, stat),
            Some("commondir") => self.commondir(open, part, folders),
            Some("objects/info/alternates") => self.alternates(open, part),
            _ => self.config(open, part, stat),
        }
    }

    /// A part below a link that the session made: the link goes.
    fn through_link(&mut self, open: &Open<'_>, part: &Path) {
        let steps = part.ancestors().skip(1).filter(|step| !step.as_os_str().is_empty());
        for step in steps {
            let Ok(stat) = open.root.stat(step) else { continue };
            let at = open.path.join(step);
            let leads_out = kind(&stat) == FileType::Symlink && !self.is_writable(&nearest_canonical(&at));
            // Links that were there belong to folders that were: only those of new ones are judged.
            if leads_out && open.known.is_none() && !self.before.was_guarded(&at) {
                self.take_part(open, step);
            }
        }
    }

    /// Nobody inside could have changed it: a mount lay over it, or it is the very file that was there.
    fn is_unchanged(&self, open: &Open<'_>, part: &Path, stat: &Stat) -> bool {
        if self.before.is_later(stat) || self.before.was_guarded(&open.path.join(part)) {
            return true;
        }
        let Some(known) = open.known else { return false };
        let Some(then) = known.parts.get(part) else { return false };
        let covered = known.path == open.path && self.before.guards(&open.path.join(part));
        covered || kind(stat) != FileType::Directory && *then == Identity::of(stat)
    }

    fn config(&mut self, open: &Open<'_>, part: &Path, stat: &Stat) {
        let text =
            (kind(stat) == FileType::RegularFile).then(|| read(&open.root, part, CONFIG_MAX)).flatten();
        let config = text.as_deref().map_or(Config { malformed: true, ..Config::default() }, Config::parse);
        let (keep, drop): (Vec<Entry>, Vec<Entry>) = config
            .entries
            .into_iter()
            .partition(|entry| is_harmless(entry) || self.is_own_worktree(open, entry));
        if (config.malformed || !drop.is_empty()) && self.take_part(open, part) {
            // The repository goes on working. That a name which was just freed is taken again is for the next judge.
            let _stays_away = write_new(open.root.fd(), part, &Config::render(&keep));
        }
    }

    /// `core.worktree`, as submodules have it.
    fn is_own_worktree(&self, open: &Open<'_>, entry: &Entry) -> bool {
        let names_it = entry.section == "core" && entry.subsection.is_none() && entry.name == "worktree";
        let leads_to = entry.value.as_deref().map(|value| resolve(&open.path, value));
        names_it && leads_to.is_some_and(|path| self.is_writable(&path))
    }

    fn hooks(&mut self, open: &Open<'_>, stat: &Stat) {
        let part = Path::new("hooks");
        if kind(stat) != FileType::Directory {
            self.take_part(open, part);
            return;
        }
        let Ok(folder) = open.root.dir(part) else {
            self.take_part(open, part);
            return;
        };
        for name in hooks(&folder) {
            let hook = part.join(OsStr::from_bytes(&name));
            let same = open.root.stat(&hook).is_ok_and(|stat| self.is_unchanged(open, &hook, &stat));
            if !same {
                self.take(&folder, OsStr::from_bytes(&name), open.path.join(hook));
            }
        }
    }

    /// Names the folder whose configuration and hooks count instead of this one's.
    fn commondir(&mut self, open: &Open<'_>, part: &Path, folders: &BTreeSet<PathBuf>) {
        let target = pointed(&open.root, part, b"", &open.path);
        if !target.is_some_and(|target| folders.contains(&target)) {
            self.take_part(open, part);
        }
    }

    fn alternates(&mut self, open: &Open<'_>, part: &Path) {
        let objects = open.path.join("objects");
        let text = read(&open.root, part, POINTER_MAX);
        let inside = |line: &[u8]| line.starts_with(b"#") || self.is_writable(&resolve(&objects, line));
        if !text.is_some_and(|text| lines(&text).all(inside)) {
            self.take_part(open, part);
        }
    }

    /// Opens a folder below its grant with no link on the way.
    fn open(&self, path: &Path) -> Result<Root, Errno> {
        let granted = self.ground.root_of(path).ok_or(Errno::NOENT)?;
        let below = path.strip_prefix(granted).map_err(|_| Errno::INVAL)?;
        Ok(Root::of(Root::open(granted)?.dir(below)?, path))
    }

    fn take_part(&mut self, open: &Open<'_>, part: &Path) -> bool {
        match open.root.parent(part) {
            Ok((dir, name)) => self.take(&dir, name, open.path.join(part)),
            Err(_) => false,
        }
    }

    /// Whether it is gone.
    fn take(&mut self, dir: &OwnedFd, name: &OsStr, path: PathBuf) -> bool {
        let stat = stat_at(dir, Path::new(name));
        let kind = stat.map_or(FileKind::File, |stat| FileKind::from_type(kind(&stat)));
        let outcome = self.keep.take(dir, name).unwrap_or_else(Outcome::Failed);
        let gone = !matches!(outcome, Outcome::Failed(_));
        self.judged.quarantined.push(Quarantined { wanted: path.clone(), path, kind, outcome });
        gone
    }
}

fn stat_at(dir: &OwnedFd, name: &Path) -> Option<Stat> {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()
}

/// A path in one of git's files, where it leads in the end.
fn resolve(base: &Path, written: &[u8]) -> PathBuf {
    nearest_canonical(&base.join(OsStr::from_bytes(written)))
}

/// Where a file that holds one path leads.
fn pointed(dir: &Root, name: &Path, prefix: &[u8], base: &Path) -> Option<PathBuf> {
    let text = read(dir, name, POINTER_MAX)?;
    lines(text.strip_prefix(prefix)?).next().map(|line| resolve(base, line))
}

/// Lines that are not empty.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.filter(|line| !line.is_empty())
}

/// A regular file of at most `limit` bytes; `None` for all else.
fn read(root: &Root, part: &Path, limit: usize) -> Option<Vec<u8>> {
    let file = root.file(part).ok()?;
    if kind(&rustix::fs::fstat(&file).ok()?) != FileType::RegularFile {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::from(file).take(limit as u64 + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() <= limit).then_some(bytes)
}

fn write_new(dir: &OwnedFd, name: &Path, content: &[u8]) -> std::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let file = tree::beneath(dir, name, flags, Mode::from_raw_mode(0o644))?;
    std::fs::File::from(file).write_all(content)
}
