//! Policies over a generated tree: what is granted, denied, protected and left out, and how the workspace is mounted.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::{Index, select};
use redoma_tests::Tier;

use crate::tree::{Grove, Kind, Places, SENTINEL, Spot, Top, spot};

/// Globs of every shape that is treated in a way of its own: by name alone, with folders in it, anchored.
const GLOBS: [&str; 9] = [
    "**/*.pem",
    "**/b",
    "**/b/*.txt",
    "**/[ab]/x.txt",
    "**/{config,.envrc}",
    "PROJECT/a/*",
    "NEAR/**/.env*",
    "FAR/*/*",
    "FAR/a*/**/c.pem",
];

/// Built-in rules that a user may want to lift.
const BUILT_IN: [&str; 5] =
    ["**/.env*", ".envrc", ".vscode/", ".git/config", "**/id_{rsa,dsa,ecdsa,ed25519}"];

/// What an entry of a list names.
#[derive(Clone, Debug)]
enum Target {
    /// A planted path, but no sentinel: it shows whether its folder can be listed, and so goes with it.
    Planted(Index),
    /// A planted folder.
    Folder(Index),
    /// Any path; mostly one that does not exist.
    Spot(Spot),
    /// The same, marked as a folder by a `/` at its end.
    Marked(Spot),
    Glob(&'static str),
}

/// A policy as its author would write it.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    profile: &'static str,
    workspace: &'static str,
    read: Vec<Target>,
    write: Vec<Target>,
    deny: Vec<Target>,
    protect: Vec<Target>,
    without: Vec<&'static str>,
    /// What the project's own, untrusted file says: it may deny, and grants nothing.
    untrusted: Option<(Vec<Target>, Vec<Target>)>,
}

/// Policies that `tier` has a chance to start with. The landlock tier refuses whatever is denied or protected below a
/// write grant, so it gets fewer of those.
pub(crate) fn rules(tier: Tier) -> BoxedStrategy<Rules> {
    match tier {
        Tier::Full => of(&["default", "strict"], &["direct", "direct", "overlay"], 3, None).boxed(),
        Tier::Landlock => {
            let lifted = Some(vec!["**/.env*", ".envrc", ".vscode/"]);
            of(&["strict", "strict", "strict", "default"], &["direct"], 2, lifted).boxed()
        }
    }
}

fn of(
    profiles: &'static [&'static str],
    workspaces: &'static [&'static str],
    writes: usize,
    lifted: Option<Vec<&'static str>>,
) -> impl Strategy<Value = Rules> {
    let list = |target: BoxedStrategy<Target>, most| prop::collection::vec(target, 0..=most);
    let lists = (list(grant(), 3), list(grant(), writes), list(rule(), 3), list(rule(), 2));
    let without = match lifted {
        Some(lifted) => prop_oneof![Just(lifted), Just(Vec::new())].boxed(),
        None => prop::collection::vec(select(BUILT_IN.to_vec()), 0..2).boxed(),
    };
    let untrusted = prop::option::weighted(0.2, (list(rule(), 2), list(grant(), 2)));
    (select(profiles.to_vec()), select(workspaces.to_vec()), lists, without, untrusted).prop_map(
        |(profile, workspace, (read, write, deny, protect), without, untrusted)| Rules {
            profile,
            workspace,
            read,
            write,
            deny,
            protect,
            without,
            untrusted,
        },
    )
}

fn grant() -> BoxedStrategy<Target> {
    prop_oneof![
        4 => any::<Index>().prop_map(Target::Folder),
        2 => any::<Index>().prop_map(Target::Planted),
        1 => spot(0, 1).prop_map(Target::Spot),
    ]
    .boxed()
}

/// A session cannot start in a folder that is hidden from it, so no rule names the project's top.
fn rule() -> BoxedStrategy<Target> {
    let below = |spot: &Spot| !(spot.top == Top::Project && spot.names.is_empty());
    prop_oneof![
        4 => any::<Index>().prop_map(Target::Planted),
        3 => spot(0, 3).prop_filter("the project's top", below).prop_map(Target::Spot),
        1 => spot(1, 2).prop_map(Target::Marked),
        3 => select(GLOBS.to_vec()).prop_map(Target::Glob),
    ]
    .boxed()
}

impl Target {
    fn text(&self, grove: &Grove, places: &Places) -> String {
        let path = |spot: &Spot| spot.at(places).display().to_string();
        match self {
            Self::Planted(which) => {
                let named = |path: &Path| path != places.project && !path.ends_with(SENTINEL);
                let plants: Vec<_> = grove.plants.iter().filter(|plant| named(&plant.path)).collect();
                which.get(&plants).path.display().to_string()
            }
            Self::Folder(which) => {
                let folders: Vec<_> = grove.of(Kind::Folder).collect();
                which.get(&folders).path.display().to_string()
            }
            Self::Spot(spot) => path(spot),
            Self::Marked(spot) => path(spot) + "/",
            Self::Glob(glob) => Top::ALL.into_iter().fold((*glob).to_owned(), |text, top| {
                text.replace(&format!("{top:?}").to_uppercase(), &places.of(top).display().to_string())
            }),
        }
    }

    fn spot(&self) -> Option<&Spot> {
        match self {
            Self::Spot(spot) | Self::Marked(spot) => Some(spot),
            _ => None,
        }
    }
}

impl Rules {
    /// The user's policy file.
    pub(crate) fn text(&self, grove: &Grove, places: &Places) -> String {
        let mut text = format!("extends = {:?}\n\n[filesystem]\n", self.profile);
        writeln!(text, "workspace = {:?}\nundo = false", self.workspace).unwrap();
        let lists =
            [("read", &self.read), ("write", &self.write), ("deny", &self.deny), ("protect", &self.protect)];
        for (name, targets) in lists {
            writeln!(text, "{}", line(name, targets, grove, places)).unwrap();
        }
        writeln!(text, "without = {:?}", self.without).unwrap();
        text
    }

    /// The project's own policy file, if it has one.
    pub(crate) fn untrusted_text(&self, grove: &Grove, places: &Places) -> Option<String> {
        let (deny, write) = self.untrusted.as_ref()?;
        let (deny, write) = (line("deny", deny, grove, places), line("write", write, grove, places));
        Some(format!("[filesystem]\n{deny}\n{write}\n"))
    }

    /// Paths that rules name and that were not planted: whoever is kept from something tries to make it.
    pub(crate) fn named(&self, places: &Places) -> Vec<PathBuf> {
        let untrusted = self.untrusted.iter().flat_map(|(deny, _)| deny);
        let rules = self.deny.iter().chain(&self.protect).chain(untrusted);
        rules.filter_map(Target::spot).map(|spot| spot.at(places)).collect()
    }
}

fn line(name: &str, targets: &[Target], grove: &Grove, places: &Places) -> String {
    let entries: Vec<String> = targets.iter().map(|target| target.text(grove, places)).collect();
    format!("{name} = {entries:?}")
}
