//! pip and uv.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::{Findings, Found, Outside, PresetError, Tool, Url, binary};

const INDEX: &str = "index";
const EXTRA: &str = "extra";
const FILES: &str = "files";

/// What pip is configured to use, else what its own module says.
pub(super) fn pip(tool: &Tool, outside: &Outside<'_>) -> Result<Findings, PresetError> {
    let program = outside.program_of(tool).or_else(|error| outside.program("pip3").ok_or(error))?;
    let answer = outside.run(&program, &["config", "list"], &tool.passes)?;
    let mut places = configured(&answer);
    if !places.iter().any(|place| place.kind == INDEX) {
        places.extend(pip_default(&program, tool, outside)?);
    }
    Ok(Findings { places, ..Findings::default() })
}

/// `global.index-url='https://…'`, one setting a line. Of several indexes the one that counts for `pip install` is
/// taken: a variable beats the command's section, that beats the global one.
fn configured(answer: &str) -> Vec<Found> {
    let settings: Vec<(&str, &str)> = answer.lines().filter_map(|line| line.split_once('=')).collect();
    let of = |key: &str| settings.iter().find(|(own, _)| *own == key).map(|(own, value)| (*own, *value));
    let found = |kind: &'static str, name: &str| {
        let sections = [":env:", "install", "global"];
        let setting = sections.iter().find_map(|section| of(&format!("{section}.{name}")));
        // Of several in a file, pip shows line breaks as Python would write them.
        let urls = setting.map(|(key, value)| (key, Url::all(&value.replace("\\n", " ")))).into_iter();
        urls.flat_map(move |(key, urls)| {
            let from = format!("pip's {key}");
            urls.into_iter().map(move |url| Found { url, kind, from: from.clone(), configured: true })
        })
    };
    found(INDEX, "index-url").take(1).chain(found(EXTRA, "extra-index-url")).collect()
}

/// `pip 23.0 from /usr/lib/python3/dist-packages/pip (python 3.11)`: the module holds its default, and the host that
/// the index's files are on.
fn pip_default(program: &Path, tool: &Tool, outside: &Outside<'_>) -> Result<Vec<Found>, PresetError> {
    let version = outside.run(program, &["--version"], &tool.passes)?;
    let folder =
        version.split_once(" from ").and_then(|(_, rest)| rest.rsplit_once(" (")).map(|(path, _)| path);
    let Some(folder) = folder else { return Ok(Vec::new()) };
    let module = PathBuf::from(folder).join("_internal/models/index.py");
    let text = outside.read(&module)?.unwrap_or_default();
    Ok(index_of_module(&text))
}

/// `PyPI = PackageIndex("https://…", file_storage_domain="…")`: the first index that the module defines.
fn index_of_module(text: &str) -> Vec<Found> {
    let Some((_, rest)) = text.split_once(" = PackageIndex(") else { return Vec::new() };
    let Some((call, _)) = rest.split_once(')') else { return Vec::new() };
    let storage = call.split_once("file_storage_domain=").and_then(|(_, value)| value.split('"').nth(1));
    let storage = storage.and_then(|host| Url::read(&format!("https://{host}/")));
    let place = |kind, url| Found { url, kind, from: "pip's own default".to_owned(), configured: false };
    let index = Url::all(call).into_iter().take(1).map(|url| place(INDEX, url));
    index.chain(storage.map(|url| place(FILES, url))).collect()
}

// === uv ===

/// The part of `uv.toml` that names indexes.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct UvSettings {
    index_url: Option<String>,
    extra_index_url: Vec<String>,
    index: Vec<UvIndex>,
    pip: Option<Box<UvSettings>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct UvIndex {
    url: String,
    default: bool,
}

/// What uv is configured to use, else the index in its program.
pub(super) fn uv(tool: &Tool, outside: &Outside<'_>) -> Result<Findings, PresetError> {
    let program = outside.program_of(tool)?;
    let mut places = uv_variables(outside);
    for file in [outside.user_file("~/.config/uv/uv.toml"), outside.root.join("etc/uv/uv.toml")] {
        let Some(text) = outside.read(&file)? else { continue };
        let settings: UvSettings = toml::from_str(&text).map_err(|error| PresetError::Unreadable {
            path: file.clone(),
            why: error.message().to_owned(),
        })?;
        settings.add_to(&mut places, &file.display().to_string());
    }
    // The first that is said counts: a variable before a file, the user's before the machine's.
    let mut indexes = 0;
    places.retain(|place| {
        indexes += usize::from(place.kind == INDEX);
        place.kind != INDEX || indexes == 1
    });
    let mut notes = Vec::new();
    if indexes == 0 {
        let defaults = binary::urls(&program, "https://", "/simple")?;
        let place = |url| Found { url, kind: INDEX, from: "uv's own default".to_owned(), configured: false };
        places.extend(defaults.into_iter().map(place));
        add_storage(&mut places, &mut notes, outside);
    }
    Ok(Findings { places, notes, ..Findings::default() })
}

fn uv_variables(outside: &Outside<'_>) -> Vec<Found> {
    let kinds = [
        ("UV_DEFAULT_INDEX", INDEX),
        ("UV_INDEX_URL", INDEX),
        ("UV_INDEX", EXTRA),
        ("UV_EXTRA_INDEX_URL", EXTRA),
    ];
    let found = kinds.into_iter().filter_map(|(name, kind)| Some((name, kind, outside.text_var(name)?)));
    found.flat_map(|(name, kind, value)| places(value, kind, name)).collect()
}

/// Several URLs of one kind; each may have a name, as in `internal=https://…`.
fn places(value: &str, kind: &'static str, from: &str) -> Vec<Found> {
    let bare = |text: &str| text.split_once('=').map_or_else(|| text.to_owned(), |(_, url)| url.to_owned());
    let urls = value.split_whitespace().filter_map(|text| Url::read(text).or_else(|| Url::read(&bare(text))));
    urls.map(|url| Found { url, kind, from: from.to_owned(), configured: true }).collect()
}

impl UvSettings {
    fn add_to(&self, found: &mut Vec<Found>, from: &str) {
        for index in &self.index {
            found.extend(places(&index.url, if index.default { INDEX } else { EXTRA }, from));
        }
        found.extend(self.index_url.iter().flat_map(|url| places(url, INDEX, from)));
        found.extend(self.extra_index_url.iter().flat_map(|url| places(url, EXTRA, from)));
        if let Some(pip) = &self.pip {
            pip.add_to(found, from);
        }
    }
}

/// uv does not know which host the files of its default index are on; pip's module does, for the same index.
fn add_storage(places: &mut Vec<Found>, notes: &mut Vec<String>, outside: &Outside<'_>) {
    let tool = &super::TOOLS["pip"];
    let program = outside.program("pip").or_else(|| outside.program("pip3"));
    let pip = program.and_then(|program| pip_default(&program, tool, outside).ok()).unwrap_or_default();
    let same = pip.iter().any(|index| places.iter().any(|place| place.url.host == index.url.host));
    let storage = pip.into_iter().find(|place| same && place.kind == FILES);
    if storage.is_none() {
        notes.push("the index names another host for its files, which is not known here".to_owned());
    }
    places.extend(storage);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(places: &[Found]) -> Vec<(&'static str, String)> {
        places.iter().map(|place| (place.kind, place.url.host.to_string())).collect()
    }

    #[test]
    fn of_several_indexes_the_one_that_counts_is_taken() {
        let answer = ":env:.timeout='9'\nglobal.index-url='https://g.example/simple'\n\
            install.index-url='https://i.example/simple'\nglobal.extra-index-url='\\nhttps://x.example/a\\nhttp://y.example/b'\n\
            search.index-url='https://s.example'\n";
        let places = configured(answer);
        let wanted = [(INDEX, "i.example"), (EXTRA, "x.example"), (EXTRA, "y.example")];
        assert_eq!(hosts(&places), wanted.map(|(kind, host)| (kind, host.to_owned())));
        assert_eq!(places[0].from, "pip's install.index-url");
        let places = configured(&format!("{answer}:env:.index-url='https://e.example/'\n"));
        assert_eq!(hosts(&places)[0], (INDEX, "e.example".to_owned()));
    }

    #[test]
    fn the_module_says_its_index_and_where_the_files_are() {
        let module = "class PackageIndex:\n    pass\n\nMain = PackageIndex(\"https://a.example/\", file_storage_domain=\"f.example\")\n\
            Test = PackageIndex(\n    \"https://t.example/\"\n)\n";
        let places = index_of_module(module);
        assert_eq!(hosts(&places), [(INDEX, "a.example".to_owned()), (FILES, "f.example".to_owned())]);
        assert!(places.iter().all(|place| !place.configured));
        assert_eq!(index_of_module("nothing"), []);
    }

    #[test]
    fn indexes_of_uv_are_read_from_its_settings() {
        let text = "index-url = \"https://old.example\"\n[pip]\nextra-index-url = [\"https://p.example\"]\n\
            [[index]]\nname = \"a\"\nurl = \"https://a.example/simple\"\ndefault = true\n[[index]]\nurl = \"https://b.example\"\n";
        let settings: UvSettings = toml::from_str(text).unwrap();
        let mut found = Vec::new();
        settings.add_to(&mut found, "uv.toml");
        let wanted =
            [(INDEX, "a.example"), (EXTRA, "b.example"), (INDEX, "old.example"), (EXTRA, "p.example")];
        assert_eq!(hosts(&found), wanted.map(|(kind, host)| (kind, host.to_owned())));
        assert_eq!(hosts(&places("a=https://n.example b https://m.example", EXTRA, "x")).len(), 2);
    }
}
