//! Small trees of files, folders, links and hard links, in three places: the project, elsewhere in the home, and
//! outside it.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Names with and without a meaning in the built-in profiles.
const NAMES: [&str; 10] =
    ["a", "b", "x.txt", "c.pem", ".env", ".env.example", ".envrc", ".git", "config", ".vscode"];

/// The file in every folder that shows by its name that the folder can be listed.
pub(crate) const SENTINEL: &str = "sentinel";

/// Where generated trees stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Top {
    /// The folder that `redoma` is started in.
    Project,
    /// Another folder in the home.
    Near,
    /// A folder beside the home.
    Far,
}

impl Top {
    pub(crate) const ALL: [Self; 3] = [Self::Project, Self::Near, Self::Far];
}

/// The three tops, as paths.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) project: PathBuf,
    pub(crate) near: PathBuf,
    pub(crate) far: PathBuf,
}

impl Places {
    pub(crate) fn of(&self, top: Top) -> &Path {
        match top {
            Top::Project => &self.project,
            Top::Near => &self.near,
            Top::Far => &self.far,
        }
    }

    pub(crate) fn all(&self) -> [&Path; 3] {
        Top::ALL.map(|top| self.of(top))
    }
}

/// A path below one of the tops; it may exist or not.
#[derive(Clone, Debug)]
pub(crate) struct Spot {
    pub(crate) top: Top,
    pub(crate) names: Vec<&'static str>,
}

impl Spot {
    pub(crate) fn at(&self, places: &Places) -> PathBuf {
        self.names.iter().fold(places.of(self.top).to_owned(), |path, name| path.join(name))
    }
}

/// A spot between `least` and `most` names below a top.
pub(crate) fn spot(least: usize, most: usize) -> impl Strategy<Value = Spot> {
    let names = prop::collection::vec(select(NAMES.to_vec()), least..=most);
    (select(Top::ALL.to_vec()), names).prop_map(|(top, names)| Spot { top, names })
}

/// What to plant at a spot.
#[derive(Clone, Debug)]
enum Seed {
    File,
    Folder,
    /// A symbolic link; it may lead nowhere, or in circles.
    Link(Spot),
    /// Another name of a file that was planted before.
    HardLink(Index),
}

/// A tree that has not been planted. Parents are folders; a seed whose place is taken is passed over.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    seeds: Vec<(Spot, Seed)>,
}

/// Trees with enough in them for every kind of rule to hit something.
pub(crate) fn tree() -> impl Strategy<Value = Tree> {
    let seed = prop_oneof![
        10 => Just(Seed::File),
        1 => Just(Seed::Folder),
        2 => spot(0, 3).prop_map(Seed::Link),
        1 => any::<Index>().prop_map(Seed::HardLink),
    ];
    prop::collection::vec((spot(1, 3), seed), 6..16).prop_map(|seeds| Tree { seeds })
}

impl std::fmt::Display for Grove {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for plant in self.plants.iter().filter(|plant| !plant.path.ends_with(SENTINEL)) {
            write!(f, "{:?} {} inode {}", plant.kind, plant.path.display(), plant.inode.1)?;
            match &plant.leads_to {
                Some(target) => writeln!(f, " -> {}", target.display())?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

/// What stands at a planted path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Folder,
    Link,
}

/// A path that exists before the session.
#[derive(Debug)]
pub(crate) struct Plant {
    pub(crate) path: PathBuf,
    pub(crate) kind: Kind,
    /// Device and inode.
    pub(crate) inode: (u64, u64),
    /// What a link says.
    leads_to: Option<PathBuf>,
}

/// A planted file. Held open, so that its bytes can be looked at whatever becomes of its names, and so that no new
/// file gets its inode.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) inode: (u64, u64),
    /// No decoy or placeholder can hold it.
    pub(crate) marker: String,
    pub(crate) mode: u32,
    pub(crate) links: u64,
    handle: File,
}

impl Kept {
    fn of(path: &Path, marker: String) -> Self {
        let handle = File::open(path).unwrap();
        let status = handle.metadata().unwrap();
        let inode = (status.dev(), status.ino());
        Self { inode, marker, mode: status.mode(), links: status.nlink(), handle }
    }

    /// What it held when it was planted. A dotenv file's shape, since those are read and imitated.
    pub(crate) fn content(marker: &str) -> String {
        format!("VALUE={marker}\n")
    }

    pub(crate) fn text(&self) -> String {
        let mut bytes = vec![0; usize::try_from(self.status().len()).unwrap()];
        self.handle.read_exact_at(&mut bytes, 0).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    pub(crate) fn status(&self) -> fs::Metadata {
        self.handle.metadata().unwrap()
    }
}

/// A tree on the disk.
#[derive(Debug)]
pub(crate) struct Grove {
    pub(crate) plants: Vec<Plant>,
    pub(crate) files: Vec<Kept>,
}

impl Tree {
    /// Plants it below the tops, which are made too.
    pub(crate) fn plant(&self, places: &Places) -> Grove {
        let mut grove = Grove { plants: Vec::new(), files: Vec::new() };
        places.all().into_iter().for_each(|top| grove.folder(top));
        for (spot, seed) in &self.seeds {
            let path = spot.at(places);
            if fs::symlink_metadata(&path).is_err() && grove.reach(path.parent().unwrap()) {
                grove.sow(&path, seed, places);
            }
        }
        // A second name given to a file counts for the first one too.
        grove.files.iter_mut().for_each(|file| file.links = file.status().nlink());
        grove
    }
}

impl Grove {
    /// The planted file that a path leads to, links followed.
    pub(crate) fn file_at(&self, path: &Path) -> Option<&Kept> {
        let status = fs::metadata(path).ok()?;
        self.files.iter().find(|file| file.inode == (status.dev(), status.ino()))
    }

    pub(crate) fn of(&self, kind: Kind) -> impl Iterator<Item = &Plant> {
        self.plants.iter().filter(move |plant| plant.kind == kind)
    }

    /// A file that is there for its own sake.
    pub(crate) fn add(&mut self, path: &Path, content: &str) {
        fs::write(path, content).unwrap();
        self.note(path, Kind::File);
    }

    fn sow(&mut self, path: &Path, seed: &Seed, places: &Places) {
        match seed {
            Seed::File => self.file(path),
            Seed::Folder => self.folder(path),
            Seed::Link(to) => {
                symlink(to.at(places), path).unwrap();
                self.note(path, Kind::Link);
            }
            Seed::HardLink(which) => {
                let files: Vec<PathBuf> = self.of(Kind::File).map(|plant| plant.path.clone()).collect();
                fs::hard_link(which.get(&files), path).unwrap();
                self.note(path, Kind::File);
            }
        }
    }

    /// Makes the folders that are missing. Not through links, nor where a file stands.
    fn reach(&mut self, folder: &Path) -> bool {
        match fs::canonicalize(folder) {
            Ok(real) => real == folder && real.is_dir(),
            Err(_) if folder.is_symlink() || !self.reach(folder.parent().unwrap()) => false,
            Err(_) => {
                self.folder(folder);
                true
            }
        }
    }

    fn folder(&mut self, path: &Path) {
        fs::create_dir_all(path).unwrap();
        self.note(path, Kind::Folder);
        self.file(&path.join(SENTINEL));
    }

    fn file(&mut self, path: &Path) {
        let marker = format!("real{}end", self.files.len());
        fs::write(path, Kept::content(&marker)).unwrap();
        self.files.push(Kept::of(path, marker));
        self.note(path, Kind::File);
    }

    fn note(&mut self, path: &Path, kind: Kind) {
        let status = fs::symlink_metadata(path).unwrap();
        let inode = (status.dev(), status.ino());
        self.plants.push(Plant { path: path.to_owned(), kind, inode, leads_to: fs::read_link(path).ok() });
    }
}

/// Everything below a folder, itself left out; links are not followed.
pub(crate) fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries.map(Result::unwrap) {
        found.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            found.extend(below(&entry.path()));
        }
    }
    found
}
