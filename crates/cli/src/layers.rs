//! From what was typed to a resolved policy.

use std::ffi::OsString;
use std::path::Path;

use anyhow::Context;
use redoma_policy::{AgentName, CommandLine, NetworkDefault, ResolvedPolicy, Source, Tier, Workspace};
use redoma_sandbox::settings::Settings;

use crate::args::{LayerArgs, NetArg, TierArg, WorkspaceArg};

/// A policy and all it was made from.
pub(crate) struct Resolved {
    /// The machine, the caller and the folder.
    pub(crate) settings: Settings,
    /// The files, in the order of their layers.
    pub(crate) sources: Vec<Source>,
    /// What they come to.
    pub(crate) policy: ResolvedPolicy,
}

/// Loads and resolves the policy for a command in the current folder.
pub(crate) fn resolve(
    layers: &LayerArgs,
    tier: Option<TierArg>,
    command: &[OsString],
) -> anyhow::Result<Resolved> {
    let settings = Settings::of_process()?;
    let sources = settings.sources(layers.policy.as_deref())?;
    let typed =
        CommandLine { tier: tier.map(Tier::from), agent: agent(layers, command)?, ..command_line(layers)? };
    let policy = settings.resolve(&sources, &typed)?;
    Ok(Resolved { settings, sources, policy })
}

/// What was typed as the last layer of the policy, without the agent and the tier.
pub(crate) fn command_line(layers: &LayerArgs) -> anyhow::Result<CommandLine> {
    Ok(CommandLine {
        profile: layers.profile.clone(),
        net: layers.net.map(NetworkDefault::from),
        allow: layers.allow.clone(),
        read: layers.read.clone(),
        write: layers.write.clone(),
        deny: layers.deny.clone(),
        env: layers.env.iter().map(|typed| variable(typed)).collect(),
        workspace: layers.workspace.map(Workspace::from),
        undo: layers.undo(),
        memory: amount("--memory", layers.memory.as_deref())?,
        cpus: amount("--cpus", layers.cpus.as_deref())?,
        pids: amount("--pids", layers.pids.as_deref())?,
        time: amount("--time", layers.time.as_deref())?,
        ..CommandLine::default()
    })
}

/// The agent that was named, or the one whose program is run.
fn agent(layers: &LayerArgs, command: &[OsString]) -> anyhow::Result<Option<AgentName>> {
    if let Some(name) = &layers.agent {
        return name.parse().map(Some).with_context(|| format!("--agent {name} has no meaning"));
    }
    let program = command.first().map(Path::new).and_then(Path::file_name).and_then(|name| name.to_str());
    Ok(program.and_then(redoma_policy::agent_for_program))
}

/// `NAME` passes a variable, `NAME=VALUE` sets it.
pub(crate) fn variable(typed: &str) -> (String, Option<String>) {
    match typed.split_once('=') {
        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
        None => (typed.to_owned(), None),
    }
}

pub(crate) fn amount<T>(flag: &'static str, typed: Option<&str>) -> anyhow::Result<Option<T>>
where
    T: std::str::FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    let parse = |text: &str| text.parse().with_context(|| format!("{flag} {text} has no meaning"));
    typed.map(parse).transpose()
}

// === what clap parsed → what the policy means ===

impl From<NetArg> for NetworkDefault {
    fn from(typed: NetArg) -> Self {
        match typed {
            NetArg::None => Self::None,
            NetArg::Deny => Self::Deny,
            NetArg::Ask => Self::Ask,
            NetArg::Allow => Self::Allow,
        }
    }
}

impl From<WorkspaceArg> for Workspace {
    fn from(typed: WorkspaceArg) -> Self {
        match typed {
            WorkspaceArg::Direct => Self::Direct,
            WorkspaceArg::Overlay => Self::Overlay,
        }
    }
}

impl From<TierArg> for Tier {
    fn from(typed: TierArg) -> Self {
        match typed {
            TierArg::Full => Self::Full,
            TierArg::Landlock => Self::Landlock,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_with_a_value_is_set_and_one_without_passes() {
        assert_eq!(variable("LANG"), ("LANG".into(), None));
        assert_eq!(variable("A=b=c"), ("A".into(), Some("b=c".into())));
        assert_eq!(variable("A="), ("A".into(), Some(String::new())));
    }

    #[test]
    fn a_bad_amount_names_its_flag() {
        let layers = LayerArgs { memory: Some("much".into()), ..LayerArgs::default() };
        let error = command_line(&layers).unwrap_err();
        assert_eq!(error.to_string(), "--memory much has no meaning");
    }
}
