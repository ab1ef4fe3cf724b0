//! cargo: registries, what replaces the default one, and the hosts that their crates are on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use redoma_policy::Host;
use serde::Deserialize;

use super::{Findings, Found, Outside, PresetError, Tool, Url, binary};

/// The part of cargo's configuration that says where crates come from (the Cargo book, "Source Replacement").
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Settings {
    source: BTreeMap<String, Source>,
    registries: BTreeMap<String, Registry>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct Source {
    replace_with: Option<String>,
    registry: Option<String>,
    git: Option<String>,
    directory: Option<String>,
    local_registry: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Registry {
    index: String,
}

/// The part of an index's `config.json` that matters (the Cargo book, "Registry Index").
#[derive(Debug, Deserialize)]
struct IndexConfig {
    dl: String,
}

const INDEX: &str = "index";
const CRATES: &str = "crates";

pub(super) fn read(tool: &Tool, outside: &Outside<'_>) -> Result<Findings, PresetError> {
    let home = outside.var("CARGO_HOME").map_or_else(|| outside.home.join(".cargo"), PathBuf::from);
    let (file, settings) = settings(&home, outside)?;
    let mut places = settings.places(&file.display().to_string());
    places.extend(registries_of_variables(outside));
    if !settings.replaces_default() {
        let program = real_cargo(tool, outside)?;
        let defaults = binary::urls(&program, "sparse+https://", "/")?;
        let from = "cargo's own default".to_owned();
        let place = |url| Found { url, kind: INDEX, from: from.clone(), configured: false };
        places.extend(defaults.into_iter().map(place));
    }
    let mut notes = Vec::new();
    add_crates(&mut places, &mut notes, &home.join("registry/index"), outside)?;
    Ok(Findings { places, notes, ..Findings::default() })
}

/// `config.toml`, or `config` as it was once called.
fn settings(home: &Path, outside: &Outside<'_>) -> Result<(PathBuf, Settings), PresetError> {
    for name in ["config", "config.toml"] {
        let file = home.join(name);
        let Some(text) = outside.read(&file)? else { continue };
        let settings = toml::from_str(&text).map_err(|error| PresetError::Unreadable {
            path: file.clone(),
            why: error.message().to_owned(),
        })?;
        return Ok((file, settings));
    }
    Ok((home.join("config.toml"), Settings::default()))
}

fn registries_of_variables(outside: &Outside<'_>) -> Vec<Found> {
    let names = outside.vars.iter().filter_map(|(name, _)| name.to_str());
    let indexes = names.filter(|name| name.starts_with("CARGO_REGISTRIES_") && name.ends_with("_INDEX"));
    let urls = indexes.filter_map(|name| Some((name, Url::read(outside.text_var(name)?)?)));
    urls.map(|(name, url)| Found { url, kind: INDEX, from: name.to_owned(), configured: true }).collect()
}

/// The program that holds the default: in front of it may stand rustup's proxy, which knows which it is.
fn real_cargo(tool: &Tool, outside: &Outside<'_>) -> Result<PathBuf, PresetError> {
    let program = outside.program_of(tool)?;
    let real = program.canonicalize().unwrap_or_else(|_| program.clone());
    if real.file_name().is_none_or(|name| name != "rustup") {
        return Ok(real);
    }
    let answer = outside.run(&real, &["which", "cargo"], &tool.passes)?;
    let found = PathBuf::from(answer.trim_end());
    let missing = || PresetError::NoProgram { preset: tool.name.clone(), program: tool.program.clone() };
    found.canonicalize().ok().filter(|real| !outside.in_project(real)).ok_or_else(missing)
}

// === impl Settings ===

impl Settings {
    /// A source that is replaced and says nothing else is the built-in one.
    fn replaces_default(&self) -> bool {
        let built_in = |source: &Source| {
            let Source { registry, git, directory, local_registry, .. } = source;
            [registry, git, directory, local_registry].iter().all(|place| place.is_none())
        };
        self.source.values().any(|source| source.replace_with.is_some() && built_in(source))
    }

    fn places(&self, from: &str) -> Vec<Found> {
        let sources = self.source.values().filter(|source| source.replace_with.is_none());
        let sources = sources.flat_map(|source| source.registry.iter().chain(&source.git));
        let indexes = sources.chain(self.registries.values().map(|registry| &registry.index));
        let urls = indexes.filter_map(|index| Url::read(index));
        urls.map(|url| Found { url, kind: INDEX, from: from.to_owned(), configured: true }).collect()
    }
}

// === where the crates are ===

/// An index may name another host for the crates themselves. Only the index says so, and cargo keeps what it said.
///
/// A session that may write cargo's home could have written it too. So another host is taken only from the index's
/// own domain; any other is told, and left to the user.
fn add_crates(
    places: &mut Vec<Found>,
    notes: &mut Vec<String>,
    kept: &Path,
    outside: &Outside<'_>,
) -> Result<(), PresetError> {
    for index in places.clone() {
        let Some(config) = kept_config(kept, &index.url.host, outside)? else {
            notes.push(format!(
                "{} may name another host for its crates, which is known once cargo has used it",
                index.url.host
            ));
            continue;
        };
        let Some(url) = Url::read(&config.dl) else { continue };
        if url.host == index.url.host && url.port == index.url.port {
            continue;
        }
        match same_domain(&url.host, &index.url.host) {
            true => {
                let from = format!("what {} says", index.url.host);
                places.push(Found { url, kind: CRATES, from, configured: index.configured });
            }
            false => notes.push(format!(
                "{} is said to keep its crates at {}, another domain: allow it yourself if that is right",
                index.url.host, url.host
            )),
        }
    }
    Ok(())
}

/// `registry/index/HOST-0123456789abcdef/config.json`.
fn kept_config(kept: &Path, host: &Host, outside: &Outside<'_>) -> Result<Option<IndexConfig>, PresetError> {
    let Ok(folders) = kept.read_dir() else { return Ok(None) };
    let front = format!("{host}-");
    for folder in folders.flatten().filter(|folder| folder.file_name().to_string_lossy().starts_with(&front))
    {
        let text = outside.read(&folder.path().join("config.json"))?;
        if let Some(config) = text.and_then(|text| serde_json::from_str(&text).ok()) {
            return Ok(Some(config));
        }
    }
    Ok(None)
}

/// Whether two names differ in their first label alone, or one lies below the other.
fn same_domain(one: &Host, other: &Host) -> bool {
    let (Some(one), Some(other)) = (one.name(), other.name()) else { return one == other };
    let parent =
        other.as_str().split_once('.').map(|(_, parent)| parent).filter(|parent| parent.contains('.'));
    let parent = parent.and_then(|parent| parent.parse().ok());
    one == other
        || one.is_below(other)
        || parent.is_some_and(|parent| *one == parent || one.is_below(&parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> (bool, Vec<String>) {
        let settings: Settings = toml::from_str(text).unwrap();
        let hosts = settings.places("x").iter().map(|place| place.url.host.to_string()).collect();
        (settings.replaces_default(), hosts)
    }

    #[test]
    fn a_source_that_replaces_the_default_stands_in_for_it() {
        let replaced = "[source.built-in]\nreplace-with = \"mirror\"\n[source.mirror]\nregistry = \"sparse+https://mirror.example/index/\"\n";
        assert_eq!(hosts(replaced), (true, vec!["mirror.example".to_owned()]));
        let chained = "[source.built-in]\nreplace-with = \"a\"\n[source.a]\nregistry = \"https://a.example\"\nreplace-with = \"b\"\n[source.b]\ndirectory = \"/srv\"\n";
        assert_eq!(hosts(chained), (true, vec![]));
        let beside = "[registries.own]\nindex = \"sparse+https://own.example/\"\n[net]\noffline = false\n";
        assert_eq!(hosts(beside), (false, vec!["own.example".to_owned()]));
    }

    #[test]
    fn crates_are_on_the_indexs_domain_or_nowhere() {
        let same = |one: &str, other: &str| same_domain(&one.parse().unwrap(), &other.parse().unwrap());
        assert!(same("static.packages.example", "index.packages.example"));
        assert!(same("packages.example", "index.packages.example"));
        assert!(same("a.packages.example", "packages.example"));
        assert!(!same("evil.example", "packages.example"));
        assert!(!same("index.packages.example.evil.example", "index.packages.example"));
        assert!(!same("10.0.0.1", "index.packages.example"));
    }
}
