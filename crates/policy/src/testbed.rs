//! A machine made of names, for tests: folders, files and links that exist only in a table.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use crate::{
    CommandLine, Layer, PathFacts, PathKind, PolicyError, ResolvedPolicy, Source, Surroundings, resolve,
};

pub(crate) const HOME: &str = "/home/u";
pub(crate) const PROJECT: &str = "/home/u/p";

/// What a path is on the machine.
#[derive(Clone, Debug)]
enum Node {
    File,
    Folder,
    Link(PathBuf),
}

/// A machine and what is asked of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Machine {
    nodes: BTreeMap<PathBuf, Node>,
    vars: BTreeMap<String, String>,
    files: BTreeMap<PathBuf, (String, bool)>,
    git_dirs: Vec<PathBuf>,
}

impl Machine {
    /// `"/a/b/"` is a folder, `"/a/b"` a file, `"/a/b -> /c"` a link; parents come by themselves.
    pub(crate) fn with(paths: &[&str]) -> Self {
        let usual =
            ["/usr/bin/", "/etc/passwd", "/etc/shadow", "/home/u/p/.git/config", "/home/u/.ssh/id_rsa"];
        let mut machine = Self::default();
        for path in usual.iter().chain(&["/bin -> /usr/bin"]).chain(paths) {
            machine.add(path);
        }
        machine
    }

    fn add(&mut self, text: &str) {
        let (path, node) = match text.split_once(" -> ") {
            Some((path, target)) => (path, Node::Link(PathBuf::from(target))),
            None if text.ends_with('/') => (text.trim_end_matches('/'), Node::Folder),
            None => (text, Node::File),
        };
        for parent in Path::new(path).ancestors().skip(1) {
            self.nodes.entry(parent.to_owned()).or_insert(Node::Folder);
        }
        self.nodes.insert(PathBuf::from(path), node);
    }

    pub(crate) fn var(mut self, name: &str, value: &str) -> Self {
        self.vars.insert(name.to_owned(), value.to_owned());
        self
    }

    /// A file that `extends` may name.
    pub(crate) fn file(mut self, path: &str, text: &str, trusted: bool) -> Self {
        self.files.insert(PathBuf::from(path), (text.to_owned(), trusted));
        self
    }

    pub(crate) fn git_dir(mut self, path: &str) -> Self {
        self.git_dirs.push(PathBuf::from(path));
        self
    }

    pub(crate) fn try_resolve(
        &self,
        sources: &[Source],
        typed: &CommandLine,
    ) -> Result<ResolvedPolicy, PolicyError> {
        let vars = |name: &str| self.vars.get(name).cloned();
        let load = |path: &Path| {
            let (text, trusted) = self.files.get(path).ok_or("no such file")?;
            let (layer, path) = (Layer::User, Some(path.to_owned()));
            Ok(Source { layer, path, text: text.clone().into_bytes(), trusted: *trusted })
        };
        let world = Surroundings {
            home: Path::new(HOME),
            project: Path::new(PROJECT),
            cwd: Path::new(PROJECT),
            git_dirs: &self.git_dirs,
            user: "u",
            uid: 1000,
            vars: &vars,
            paths: self,
            load: &load,
        };
        resolve(sources, typed, &world)
    }

    pub(crate) fn resolve(&self, sources: &[Source], typed: &CommandLine) -> ResolvedPolicy {
        self.try_resolve(sources, typed).unwrap_or_else(|error| panic!("{}", error.render(false)))
    }

    fn follow(&self, path: &Path, left: u32) -> Option<PathBuf> {
        let mut here = PathBuf::from("/");
        for part in path.components() {
            match part {
                Component::ParentDir => {
                    here.pop();
                }
                Component::Normal(name) => here = self.step(&here.join(name), left)?,
                _ => {}
            }
        }
        Some(here)
    }

    fn step(&self, next: &Path, left: u32) -> Option<PathBuf> {
        match self.nodes.get(next)? {
            Node::Link(target) => self.follow(&next.parent()?.join(target), left.checked_sub(1)?),
            Node::File | Node::Folder => Some(next.to_owned()),
        }
    }
}

impl PathFacts for Machine {
    fn canonicalize(&self, path: &Path) -> Option<PathBuf> {
        self.follow(path, 40)
    }

    fn kind(&self, path: &Path) -> Option<PathKind> {
        let parent = self.follow(path.parent().unwrap_or(path), 40)?;
        let spot = path.file_name().map_or(parent.clone(), |name| parent.join(name));
        Some(match self.nodes.get(&spot)? {
            Node::File => PathKind::File,
            Node::Folder => PathKind::Folder,
            Node::Link(_) => PathKind::Link,
        })
    }
}

/// A document of a layer.
pub(crate) fn source(layer: Layer, trusted: bool, text: &str) -> Source {
    let path = match layer {
        Layer::System => "/etc/redoma/policy.toml",
        Layer::Project => "/home/u/p/redoma.toml",
        _ => "/home/u/.config/redoma/policy.toml",
    };
    Source { layer, path: Some(PathBuf::from(path)), text: text.as_bytes().to_vec(), trusted }
}

pub(crate) fn user(text: &str) -> Source {
    source(Layer::User, true, text)
}

pub(crate) fn project(trusted: bool, text: &str) -> Source {
    source(Layer::Project, trusted, text)
}

pub(crate) fn system(text: &str) -> Source {
    source(Layer::System, true, text)
}
