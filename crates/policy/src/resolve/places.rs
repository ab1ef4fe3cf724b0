//! Where written paths lead: variables expanded, links followed, each folder looked at once.

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use crate::pattern::unescape;
use crate::{Alias, Layer, PathFacts, PathKind, Surroundings};

/// Follows paths, remembering every folder on the way: the paths of a policy share most of their parents.
pub(super) struct Places<'a> {
    facts: &'a dyn PathFacts,
    folders: HashMap<PathBuf, Rc<Place>>,
}

/// Where a path leads.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The path with its parents canonical, its last component as it stands.
    pub(super) spot: PathBuf,
    /// What stands at the spot.
    pub(super) spot_kind: Option<PathKind>,
    /// The path with every link followed.
    pub(super) target: PathBuf,
    /// What stands at the target.
    pub(super) kind: Option<PathKind>,
    /// The links followed on the way.
    pub(super) aliases: Vec<Alias>,
}

impl<'a> Places<'a> {
    pub(super) fn new(facts: &'a dyn PathFacts) -> Self {
        Self { facts, folders: HashMap::new() }
    }

    /// Follows an absolute path. What does not exist leads to itself.
    pub(super) fn place(&mut self, path: &Path) -> Place {
        match path.components().next_back() {
            Some(Component::Normal(name)) => {
                let parent = self.folder(path.parent().unwrap_or(Path::new("/")));
                self.step(&parent, Path::new(name))
            }
            Some(Component::ParentDir) => {
                let parent = self.folder(path.parent().unwrap_or(Path::new("/")));
                let above = parent.target.parent().unwrap_or(Path::new("/")).to_owned();
                Place { spot: above.clone(), target: above, ..(*parent).clone() }
            }
            _ => Place {
                spot: PathBuf::from("/"),
                spot_kind: Some(PathKind::Folder),
                target: PathBuf::from("/"),
                kind: Some(PathKind::Folder),
                aliases: Vec::new(),
            },
        }
    }

    fn folder(&mut self, path: &Path) -> Rc<Place> {
        if let Some(known) = self.folders.get(path) {
            return Rc::clone(known);
        }
        let place = Rc::new(self.place(path));
        self.folders.insert(path.to_owned(), Rc::clone(&place));
        place
    }

    /// From a folder to a name in it.
    fn step(&mut self, parent: &Place, name: &Path) -> Place {
        let spot = parent.target.join(name);
        let exists = parent.kind == Some(PathKind::Folder);
        let spot_kind = if exists { self.facts.kind(&spot) } else { None };
        let mut aliases = parent.aliases.clone();
        let led = if spot_kind == Some(PathKind::Link) { self.facts.canonicalize(&spot) } else { None };
        match led {
            Some(target) => {
                aliases.push(Alias { link: spot.clone(), target: target.clone() });
                let kind = self.facts.kind(&target);
                Place { spot, spot_kind, target, kind, aliases }
            }
            // A link that leads nowhere is as absent as what it leads to.
            None => {
                let kind = spot_kind.filter(|kind| *kind != PathKind::Link);
                Place { target: spot.clone(), spot, spot_kind, kind, aliases }
            }
        }
    }
}

/// Why a written path means nothing.
pub(super) enum Unclear {
    /// Say so.
    Problem(String, &'static str),
    /// A variable is not set, and the entry ships with Redoma: there is nothing to mean.
    PassOver,
}

/// Expands `~` and `${NAME}` in front and inside, and puts a relative path below `base`. Backslashes stay.
pub(super) fn expand(
    text: &str,
    base: &Path,
    layer: Layer,
    world: &Surroundings<'_>,
) -> Result<String, Unclear> {
    if text.is_empty() || text.contains('\0') {
        return Err(Unclear::Problem("a path is missing".to_owned(), "write \".\" for the project"));
    }
    let text = expand_variables(text, layer, world)?;
    let home = || crate::pattern::escape(world.home);
    if text == "~" {
        return Ok(home());
    }
    if let Some(below) = text.strip_prefix("~/") {
        return Ok(format!("{}/{below}", home().trim_end_matches('/')));
    }
    if text.starts_with('~') {
        let problem = "the home of another user cannot be meant this way".to_owned();
        return Err(Unclear::Problem(problem, "write its path out: /home/name"));
    }
    if text.starts_with('/') {
        return Ok(text);
    }
    let below = text.strip_prefix("./").unwrap_or(&text);
    let base = crate::pattern::escape(base);
    Ok(if below == "." { base } else { format!("{}/{below}", base.trim_end_matches('/')) })
}

fn expand_variables(text: &str, layer: Layer, world: &Surroundings<'_>) -> Result<String, Unclear> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else {
            return Err(Unclear::Problem("`${` has no `}`".to_owned(), "write \"${HOME}/x\""));
        };
        out.push_str(&rest[..start]);
        out.push_str(&variable(&rest[start + 2..start + length], layer, world)?);
        rest = &rest[start + length + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

fn variable(name: &str, layer: Layer, world: &Surroundings<'_>) -> Result<String, Unclear> {
    let escaped = |path: &Path| crate::pattern::escape(path);
    let in_home = |below: &str| Some(escaped(&world.home.join(below)));
    let value = match name {
        "HOME" => return Ok(escaped(world.home)),
        "PROJECT" => return Ok(escaped(world.project)),
        "USER" => return Ok(escaped(Path::new(world.user))),
        "UID" => return Ok(world.uid.to_string()),
        _ => (world.vars)(name).filter(|value| is_sane(Path::new(value), world)),
    };
    // The XDG base directory specification gives these a value when they are not set.
    let value = value.map(|value| escaped(Path::new(&value))).or_else(|| match name {
        "XDG_CONFIG_HOME" => in_home(".config"),
        "XDG_DATA_HOME" => in_home(".local/share"),
        "XDG_STATE_HOME" => in_home(".local/state"),
        "XDG_CACHE_HOME" => in_home(".cache"),
        _ => None,
    });
    match (value, layer) {
        (Some(value), _) => Ok(value),
        (None, Layer::Builtin) => Err(Unclear::PassOver),
        (None, _) => Err(Unclear::Problem(
            format!("`${{{name}}}` is not set to an absolute path below the root and beside the home"),
            "set it before starting redoma, or write the path out",
        )),
    }
}

/// A variable such as `CARGO_HOME` must not widen a grant to everything: it names a folder, and neither the root nor
/// the home nor one above it.
fn is_sane(value: &Path, world: &Surroundings<'_>) -> bool {
    let plain = value.is_absolute() && !value.components().any(|part| part == Component::ParentDir);
    plain && value != Path::new("/") && !world.home.starts_with(value)
}

/// A written path without its backslashes and its trailing slash, and whether it had one.
pub(super) fn literal(expanded: &str) -> (PathBuf, bool) {
    let folder = expanded.len() > 1 && expanded.ends_with('/');
    (PathBuf::from(unescape(expanded.trim_end_matches('/'))), folder)
}
