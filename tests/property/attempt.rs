//! What is tried inside: reading everything, writing everything, making what is missing, then moving and removing it,
//! one script per sandbox.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::select;
use redoma_sandbox::settings::nearest_canonical;
use redoma_tests::Ran;

use crate::rules::Rules;
use crate::tree::{Grove, Kind, Places};

/// What is tried on a file after a line was appended to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Nothing,
    Rename,
    Remove,
    Replace,
    Mode,
    HardLink,
    Truncate,
}

/// How a path that could not be made by writing to it is tried again.
#[derive(Clone, Copy, Debug)]
enum Making {
    Link,
    HardLink,
    Folder,
    MoveInto,
}

/// What is tried on a folder when all else is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Nothing,
    Rename,
    RemoveAll,
}

/// Choices for one session, each list used round and round.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    changes: Vec<Change>,
    makings: Vec<Making>,
    endings: Vec<Ending>,
    /// Folders are renamed from the top down, else from the bottom up.
    outermost_first: bool,
}

pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    use Change::{HardLink, Mode, Nothing, Remove, Rename, Replace, Truncate};
    let changes = select(vec![Nothing, Rename, Remove, Replace, Mode, HardLink, Truncate]);
    let makings = select(vec![Making::Link, Making::HardLink, Making::Folder, Making::MoveInto]);
    let endings = select(vec![Ending::Nothing, Ending::Rename, Ending::Rename, Ending::RemoveAll]);
    (
        prop::collection::vec(changes, 7),
        prop::collection::vec(makings, 3),
        prop::collection::vec(endings, 5),
        any::<bool>(),
    )
        .prop_map(|(changes, makings, endings, outermost_first)| Plan {
            changes,
            makings,
            endings,
            outermost_first,
        })
}

/// What a path is before the session, links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Is {
    File,
    Folder,
    Absent,
}

/// One path that is tried.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    pub(crate) path: PathBuf,
    pub(crate) is: Is,
    /// Tried on files; nothing where the path is a link.
    pub(crate) change: Change,
    making: Making,
    /// Where it leads, or would be made, links followed.
    pub(crate) end: PathBuf,
    /// In a repository. What is made there is judged by what it holds, when the session ends.
    pub(crate) judged: bool,
}

impl Probe {
    /// What the number-`at` probe writes. Nothing else holds it.
    pub(crate) fn marker(at: usize) -> String {
        format!("written{at}inside")
    }
}

/// Everything that one session tries.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) probes: Vec<Probe>,
    endings: Vec<(PathBuf, Ending)>,
    tops: Vec<PathBuf>,
}

/// In every folder, besides what is there.
const NEW_NAMES: [&str; 4] = ["new", ".envrc", "x.txt", ".mcp.json"];

impl Attempt {
    pub(crate) fn new(plan: &Plan, grove: &Grove, rules: &Rules, places: &Places) -> Self {
        let mut paths: BTreeSet<PathBuf> = rules.named(places).into_iter().collect();
        paths.extend(grove.plants.iter().map(|plant| plant.path.clone()));
        let folders: Vec<&Path> = grove.of(Kind::Folder).map(|plant| plant.path.as_path()).collect();
        for (at, folder) in folders.iter().enumerate() {
            paths.extend([NEW_NAMES[0], NEW_NAMES[1 + at % 3]].map(|name| folder.join(name)));
        }
        paths.retain(|path| can_be_there(&nearest_canonical(path)));
        let probes = paths.into_iter().enumerate().map(|(at, path)| plan.probe(at, path)).collect();
        let tops = places.all().map(Path::to_owned).to_vec();
        Self { probes, endings: plan.endings_of(&folders), tops }
    }

    /// For bash(1). Whatever fails is passed over in silence: what counts is what comes of it.
    pub(crate) fn script(&self) -> String {
        let mut script = "exec 2>/dev/null\n".to_owned();
        let mut say = |line: String| writeln!(script, "{line}").unwrap();
        for (at, probe) in self.probes.iter().enumerate() {
            match probe.is {
                Is::File => say(format!("echo '{}'; cat {}", heading(at), quoted(&probe.path))),
                Is::Folder => say(format!("echo '{}'; ls -A {}", heading(at), quoted(&probe.path))),
                Is::Absent => {}
            }
        }
        for (at, probe) in self.probes.iter().enumerate() {
            say(probe.write(at));
        }
        self.probes.iter().for_each(|probe| say(probe.try_further()));
        self.endings.iter().for_each(|(folder, ending)| say(ending.of(folder)));
        let tops: Vec<String> = self.tops.iter().map(|top| quoted(top)).collect();
        say(format!(
            "echo '{}'; find {} -type f -exec cat {{}} +",
            heading(self.probes.len()),
            tops.join(" ")
        ));
        // The last attempt is not what decides the exit code.
        script + "exit 0\n"
    }

    /// What the number-`at` probe was shown.
    pub(crate) fn shown(&self, ran: &Ran, at: usize) -> String {
        let out = ran.out();
        let rest = out.split_once(&(heading(at) + "\n")).map_or("", |(_, rest)| rest);
        rest.split_once("=== ").map_or(rest, |(own, _)| own).to_owned()
    }

    /// Whether all was tried.
    pub(crate) fn finished(&self, ran: &Ran) -> bool {
        ran.out().contains(&heading(self.probes.len()))
    }

    /// Whether what the probe makes may be gone, or in the way of another: its folder was to be removed with all that
    /// is in it, or a file was made where it should be.
    pub(crate) fn spoilt(&self, probe: &Probe) -> bool {
        let removed =
            |(top, ending): &(PathBuf, Ending)| *ending == Ending::RemoveAll && probe.end.starts_with(top);
        let above = |other: &Probe| {
            other.is == Is::Absent && other.end != probe.end && probe.end.starts_with(&other.end)
        };
        self.endings.iter().any(removed) || self.probes.iter().any(above)
    }
}

impl Plan {
    fn probe(&self, at: usize, path: PathBuf) -> Probe {
        let is = match fs::metadata(&path) {
            Ok(status) if status.is_dir() => Is::Folder,
            Ok(_) => Is::File,
            Err(_) => Is::Absent,
        };
        let change = if path.is_symlink() { Change::Nothing } else { self.changes[at % self.changes.len()] };
        let (making, end) = (self.makings[at % self.makings.len()], nearest_canonical(&path));
        let judged = end.components().any(|name| name.as_os_str() == ".git");
        Probe { path, is, change, making, end, judged }
    }

    fn endings_of(&self, folders: &[&Path]) -> Vec<(PathBuf, Ending)> {
        let chosen = folders
            .iter()
            .enumerate()
            .map(|(at, folder)| (folder.to_path_buf(), self.endings[at % self.endings.len()]));
        let mut endings: Vec<_> = chosen.collect();
        endings.sort_by_key(|(folder, _)| folder.components().count());
        if !self.outermost_first {
            endings.reverse();
        }
        endings
    }
}

impl Probe {
    fn write(&self, at: usize) -> String {
        let path = quoted(&self.path);
        let append = format!("echo {} >> {path}", Self::marker(at));
        match self.is {
            Is::File => append,
            Is::Folder => String::new(),
            Is::Absent => format!("mkdir -p {}; {append}", quoted(self.end.parent().unwrap())),
        }
    }

    fn try_further(&self) -> String {
        let path = quoted(&self.path);
        match self.is {
            Is::File => self.change.of(&path),
            Is::Folder => String::new(),
            Is::Absent => format!("[ -e {path} ] || [ -L {path} ] || {}", self.making.of(&path)),
        }
    }
}

impl Change {
    fn of(self, path: &str) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Rename => format!("mv -n {path} {path}.moved"),
            Self::Remove => format!("rm -f {path}"),
            Self::Replace => format!("echo other > {path}.other && mv -f {path}.other {path}"),
            Self::Mode => format!("chmod 0707 {path}"),
            Self::HardLink => format!("ln {path} {path}.again && echo more >> {path}.again"),
            Self::Truncate => format!(": > {path}"),
        }
    }
}

impl Making {
    fn of(self, path: &str) -> String {
        match self {
            Self::Link => format!("ln -s /etc/hostname {path}"),
            Self::HardLink => format!("{{ echo other > {path}.other && ln {path}.other {path}; }}"),
            Self::Folder => format!("mkdir {path}"),
            Self::MoveInto => format!("{{ echo other > {path}.other && mv {path}.other {path}; }}"),
        }
    }
}

impl Ending {
    fn of(self, folder: &Path) -> String {
        let folder = quoted(folder);
        match self {
            Self::Nothing => String::new(),
            Self::Rename => format!("mv -n {folder} {folder}.moved"),
            Self::RemoveAll => format!("rm -rf {folder}"),
        }
    }
}

/// Not what leads in circles, nor what would lie below a file.
fn can_be_there(path: &Path) -> bool {
    let above = path.ancestors().skip(1).find(|above| above.symlink_metadata().is_ok());
    !path.is_symlink() && above.is_some_and(Path::is_dir)
}

fn heading(at: usize) -> String {
    format!("=== {at}")
}

/// Generated names need no quotes, a temporary folder's might.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}
