//! Where packages come from, asked of the tools that fetch them: `--allow npm`, `--allow cargo`.
//!
//! The answer is what the user or the machine's administrator configured, a company's mirror included, else the tool's
//! own default, read from the tool. There is no list of ours. What lies in the project has no say: a session could
//! have written it. So tools run in `/`, with few variables, only if they lie outside the project, and the user's
//! configuration is refused when it leads into the project.

mod apt;
mod asked;
mod binary;
mod cargo;
mod error;
mod go;
mod jar;
mod maven;
mod outside;
mod python;
mod url;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use redoma_policy::{CommandLine, Endpoint, HostPattern, Preset};
use serde::Deserialize;

pub use error::PresetError;
pub use outside::Outside;
use url::Url;

/// A tool of `data/presets.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Tool {
    #[serde(skip)]
    name: String,
    reader: Reader,
    program: String,
    ask: Vec<Vec<String>>,
    format: asked::Format,
    keys: Vec<String>,
    passes: Vec<String>,
    files: Vec<String>,
    inside: BTreeMap<String, String>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Reader {
    #[default]
    Asked,
    Pip,
    Uv,
    Cargo,
    Go,
    Maven,
    Apt,
}

static TOOLS: LazyLock<BTreeMap<String, Tool>> = LazyLock::new(|| {
    let mut tools: BTreeMap<String, Tool> =
        toml::from_str(include_str!("../data/presets.toml")).expect("the embedded table is tested");
    tools.iter_mut().for_each(|(name, tool)| tool.name.clone_from(name));
    tools
});

/// One place that packages come from.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    url: Url,
    /// What it is for the tool: `registry`, `index`. See `inside` in the table.
    kind: &'static str,
    /// Where it was found.
    from: String,
    /// Somebody configured it; otherwise it is the tool's default.
    configured: bool,
}

/// What a reader found.
#[derive(Debug, Default)]
struct Findings {
    places: Vec<Found>,
    notes: Vec<String>,
    /// Variables for inside, beside those of the table.
    variables: Vec<(String, String)>,
}

/// Takes the presets out of what was typed as `--allow` and puts in what they come to.
///
/// # Errors
/// When a tool is not there, does not answer, or is configured in the project.
pub fn expand(typed: &CommandLine, outside: &Outside<'_>) -> Result<CommandLine, PresetError> {
    let mut expanded = typed.clone();
    expanded.allow.clear();
    for list in &typed.allow {
        let (presets, hosts): (Vec<_>, Vec<_>) = list.split(',').partition(|item| is_preset(item));
        // A list without presets stays as it was typed, so that what is wrong with it is said in those words.
        match hosts.is_empty() {
            true => {}
            false if presets.is_empty() => expanded.allow.push(list.clone()),
            false => expanded.allow.push(hosts.join(",")),
        }
        for name in presets {
            expanded.presets.extend(resolve(name, outside)?);
        }
    }
    Ok(expanded)
}

/// Whether a name is a preset's, and no host's.
#[must_use]
pub fn is_preset(name: &str) -> bool {
    TOOLS.contains_key(name) || redoma_policy::git_services().any(|service| service == name)
}

/// All presets' names.
pub fn names() -> impl Iterator<Item = &'static str> {
    redoma_policy::git_services().chain(TOOLS.keys().map(String::as_str))
}

/// What a preset comes to on this machine; `None` if there is none of that name.
///
/// # Errors
/// When its tool is not there, does not answer, or is configured in the project.
pub fn resolve(name: &str, outside: &Outside<'_>) -> Result<Option<Preset>, PresetError> {
    if let Some(service) = redoma_policy::git_service(name) {
        return Ok(Some(service));
    }
    let Some(tool) = TOOLS.get(name) else { return Ok(None) };
    tool.check_files(outside)?;
    let findings = match tool.reader {
        Reader::Asked => asked::read(tool, outside)?,
        Reader::Pip => python::pip(tool, outside)?,
        Reader::Uv => python::uv(tool, outside)?,
        Reader::Cargo => cargo::read(tool, outside)?,
        Reader::Go => go::read(tool, outside)?,
        Reader::Maven => maven::read(tool, outside)?,
        Reader::Apt => apt::read(outside)?,
    };
    if findings.places.is_empty() {
        return Err(PresetError::NoHosts { preset: name.to_owned() });
    }
    Ok(Some(tool.preset(findings)))
}

// === impl Tool ===

impl Tool {
    /// The user's configuration of the tool must not lie in the project, links followed.
    fn check_files(&self, outside: &Outside<'_>) -> Result<(), PresetError> {
        for file in &self.files {
            let path = outside.user_file(file);
            if path.canonicalize().is_ok_and(|real| outside.in_project(&real)) {
                return Err(PresetError::InProject { preset: self.name.clone(), path });
            }
        }
        Ok(())
    }

    fn preset(&self, findings: Findings) -> Preset {
        let Findings { places, mut notes, variables } = findings;
        let mut preset = Preset { name: self.name.clone(), ..Preset::default() };
        for place in &places {
            add_endpoint(&mut preset.endpoints, place);
            if place.url.signed_in {
                let url = &place.url.text;
                notes.push(format!("the password for {url} stays outside; [secrets] can put it in"));
            }
        }
        preset.variables = variables.into_iter().chain(self.variables(&places)).collect();
        preset.notes = notes;
        preset
    }

    /// What was configured, by the variable that says so inside. Several of a kind are one value.
    fn variables(&self, places: &[Found]) -> Vec<(String, String)> {
        let told = self.inside.iter().filter_map(|(kind, variable)| {
            let own = places.iter().filter(|place| place.configured && place.kind == kind);
            let urls: Vec<&str> = own.map(|place| place.url.text.as_str()).collect();
            (!urls.is_empty()).then(|| (variable.clone(), urls.join(" ")))
        });
        told.collect()
    }
}

fn add_endpoint(endpoints: &mut Vec<Endpoint>, place: &Found) {
    let host = HostPattern::from(place.url.host.clone());
    match endpoints.iter_mut().find(|endpoint| endpoint.host == host) {
        Some(endpoint) if endpoint.ports.contains(&place.url.port) => {}
        Some(endpoint) => endpoint.ports.push(place.url.port),
        None => endpoints.push(Endpoint {
            host,
            ports: vec![place.url.port],
            from: place.from.clone(),
            private: place.configured,
        }),
    }
}

#[cfg(test)]
mod tests;
