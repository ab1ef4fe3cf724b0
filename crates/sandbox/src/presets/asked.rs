//! Tools that say themselves where packages come from.

use serde::Deserialize;

use super::{Findings, Found, Outside, PresetError, Tool, Url};

/// How an answer is read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Format {
    /// A JSON object.
    Json,
    /// Anything; every URL in it counts.
    #[default]
    Text,
}

const REGISTRY: &str = "registry";
const SCOPED: &str = "scope";

pub(super) fn read(tool: &Tool, outside: &Outside<'_>) -> Result<Findings, PresetError> {
    let program = outside.program_of(tool)?;
    let mut findings = Findings::default();
    let mut refusal = None;
    for arguments in &tool.ask {
        // Versions of a tool differ in what they know; one answer is enough.
        match outside.run(&program, arguments, &tool.passes) {
            Ok(answer) => findings.places.extend(tool.places(&answer)),
            Err(error) => refusal = refusal.or(Some(error)),
        }
    }
    match refusal {
        Some(error) if findings.places.is_empty() => Err(error),
        _ => {
            note_scopes(&mut findings);
            Ok(findings)
        }
    }
}

/// No variable of a usual name tells a tool of these.
fn note_scopes(findings: &mut Findings) {
    let scopes = findings.places.iter().filter(|place| place.kind == SCOPED);
    let notes = scopes.map(|place| {
        format!("inside, {} is not known to be {}: its configuration is hidden", place.from, place.url.text)
    });
    findings.notes = notes.collect();
}

impl Tool {
    fn places(&self, answer: &str) -> Vec<Found> {
        let named = |kind, from: &str, url| Found { url, kind, from: from.to_owned(), configured: true };
        match self.format {
            Format::Text => {
                let from = format!("{}'s configuration", self.name);
                let urls = Url::all(answer).into_iter();
                urls.map(|url| named(REGISTRY, &from, url)).collect()
            }
            Format::Json => {
                let object: serde_json::Map<String, serde_json::Value> =
                    serde_json::from_str(answer).unwrap_or_default();
                let wanted =
                    |key: &String| self.keys.iter().any(|glob| fast_glob::glob_match(glob, key.as_bytes()));
                let values = object.iter().filter(|(key, _)| wanted(key));
                let urls = values.filter_map(|(key, value)| Some((key, Url::read(value.as_str()?)?)));
                urls.map(|(key, url)| {
                    let kind = if key == REGISTRY { REGISTRY } else { SCOPED };
                    named(kind, &format!("{}'s {key}", self.name), url)
                })
                .collect()
            }
        }
    }
}
