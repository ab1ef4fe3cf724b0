//! Agent presets: files under `data/agents/`, one for each agent. Only the one that is named is ever parsed.

use serde::Deserialize;
use toml::Spanned;

use crate::document::{Document, malformed};
use crate::file::{EnvironmentSection, FilesystemSection, NetworkSection, PolicyFile, RuleSection};
use crate::{Action, AgentName, AgentProfile, HostPattern, PolicyError, Purpose, nearest};

/// One preset, unparsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentPreset {
    /// Its name, as `--agent` takes it.
    pub name: &'static str,
    /// The programs whose name alone picks it.
    pub programs: &'static [&'static str],
    /// Its text.
    pub text: &'static str,
}

/// Names the presets, each with its programs: the file of the same name says the same, and a test compares them.
macro_rules! presets {
    ($($name:literal: [$($program:literal),*];)*) => {
        &[$(AgentPreset {
            name: $name,
            programs: &[$($program),*],
            text: include_str!(concat!("../data/agents/", $name, ".toml")),
        }),*]
    };
}

static PRESETS: &[AgentPreset] = presets! {
    "aider": ["aider"];
    "amp": ["amp"];
    "claude": ["claude"];
    "cline": ["cline"];
    "codex": ["codex"];
    "continue": ["cn"];
    "copilot": ["copilot"];
    "crush": ["crush"];
    "cursor-agent": ["cursor-agent"];
    "custom": [];
    "devin": ["devin"];
    "gemini": ["gemini"];
    "goose": ["goose"];
    "grok": ["grok"];
    "hermes": ["hermes"];
    "kimi": ["kimi"];
    "opencode": ["opencode"];
    "openhands": ["openhands"];
    "plandex": ["plandex", "pdx"];
    "qwen": ["qwen"];
};

/// A preset's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentFile {
    name: AgentName,
    title: String,
    #[cfg_attr(not(test), expect(dead_code, reason = "for the reader; a test compares it with the table"))]
    programs: Vec<String>,
    notes: String,
    #[serde(default)]
    filesystem: FilesystemSection,
    #[serde(default)]
    environment: EnvironmentSection,
    #[serde(default)]
    hosts: Hosts,
}

/// Hosts by what they are for, so that one may be allowed without the other.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Hosts {
    /// Model requests: looked into.
    api: Vec<Spanned<HostPattern>>,
    /// Signing in: let through unseen, since what passes there is the user's own credential.
    login: Vec<Spanned<HostPattern>>,
    /// New versions: let through unseen.
    update: Vec<Spanned<HostPattern>>,
    /// Reports about its use: only with `[agent] telemetry = true`.
    telemetry: Vec<Spanned<HostPattern>>,
}

/// All presets.
#[must_use]
pub fn agents() -> &'static [AgentPreset] {
    PRESETS
}

/// The agent that a program's file name picks, if any.
#[must_use]
pub fn agent_for_program(program: &str) -> Option<AgentName> {
    let preset = PRESETS.iter().find(|preset| preset.programs.contains(&program))?;
    preset.name.parse().ok()
}

impl AgentPreset {
    /// Title and notes, for lists.
    ///
    /// # Errors
    /// When the embedded file is malformed, which a test excludes.
    pub fn describe(&self) -> Result<AgentProfile, PolicyError> {
        parse(self).map(|file| file.profile())
    }
}

/// The preset as a document of the built-in layer, and what it says about itself.
pub(crate) fn document(name: &AgentName, telemetry: bool) -> Result<(Document, AgentProfile), PolicyError> {
    let found = PRESETS.iter().find(|preset| preset.name == name.as_str());
    let preset = found.ok_or_else(|| unknown(name))?;
    let file = parse(preset)?;
    let profile = file.profile();
    let document = Document::around(&label(preset), preset.text, file.into_policy(telemetry));
    Ok((document, profile))
}

fn label(preset: &AgentPreset) -> String {
    format!("agent {}", preset.name)
}

fn unknown(name: &AgentName) -> PolicyError {
    let hint = match nearest(name.as_str(), PRESETS.iter().map(|preset| preset.name)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "redoma policy agents".to_owned(),
    };
    PolicyError::Unknown { what: "agent", name: name.to_string(), hint }
}

fn parse(preset: &AgentPreset) -> Result<AgentFile, PolicyError> {
    toml::from_str(preset.text).map_err(|error| {
        PolicyError::Malformed(Box::new(malformed(label(preset).as_ref(), preset.text, &error)))
    })
}

impl AgentFile {
    fn profile(&self) -> AgentProfile {
        AgentProfile { name: self.name.clone(), title: self.title.clone(), notes: self.notes.clone() }
    }

    fn into_policy(self, telemetry: bool) -> PolicyFile {
        let Hosts { api, login, update, telemetry: reports } = self.hosts;
        let reports = if telemetry { reports } else { Vec::new() };
        let lists = [
            (api, Action::Inspect, Purpose::Api),
            (login, Action::Allow, Purpose::Login),
            (update, Action::Allow, Purpose::Update),
            (reports, Action::Allow, Purpose::Telemetry),
        ];
        let rules = lists.into_iter().flat_map(|(hosts, action, purpose)| {
            hosts.into_iter().map(move |host| rule(host, action, purpose))
        });
        let rule = rules.collect();
        PolicyFile {
            filesystem: self.filesystem,
            environment: self.environment,
            network: NetworkSection { rule, ..NetworkSection::default() },
            ..PolicyFile::default()
        }
    }
}

fn rule(host: Spanned<HostPattern>, action: Action, purpose: Purpose) -> Spanned<RuleSection> {
    let span = host.span();
    let section = RuleSection {
        host: host.into_inner(),
        ports: std::num::NonZeroU16::new(443).map(|port| vec![port]),
        action,
        protocol: None,
        methods: None,
        paths: None,
        max_upload: None,
        max_upload_session: None,
        rate: None,
        pinned: None,
        private: None,
        purpose: Some(purpose),
    };
    Spanned::new(span, section)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_well_formed_and_says_what_the_table_says() {
        for preset in agents() {
            let file = parse(preset).unwrap_or_else(|error| panic!("{}", error.render(false)));
            assert_eq!(file.name.as_str(), preset.name);
            assert_eq!(file.programs, preset.programs, "{}", preset.name);
            assert!(!file.title.is_empty() && !file.notes.is_empty(), "{}", preset.name);
            let (document, _) = document(&file.name, true).unwrap();
            crate::check::check(&document).unwrap_or_else(|error| panic!("{}", error.render(false)));
        }
    }

    #[test]
    fn a_program_picks_at_most_one_preset() {
        for preset in agents() {
            for program in preset.programs {
                assert_eq!(agent_for_program(program).unwrap().as_str(), preset.name);
            }
        }
        assert_eq!(agent_for_program("bash"), None);
    }
}
