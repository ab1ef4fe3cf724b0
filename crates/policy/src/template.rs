//! The policy that `redoma policy init` writes: what most people change first, as comments.

use crate::AgentName;

const TEMPLATE: &str = include_str!("../data/template.toml");

/// A policy file to start from. It resolves as it is, and means its profile and agent.
#[must_use]
pub fn template(profile: &str, agent: Option<&AgentName>) -> String {
    let agent = match agent {
        Some(name) => format!("[agent]\nname = \"{name}\""),
        None => "# [agent]\n# name = \"claude\"".to_owned(),
    };
    TEMPLATE.replace("@PROFILE@", profile).replace("@AGENT@", &agent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommandLine;
    use crate::testbed::{Machine, project};

    #[test]
    fn the_template_means_its_profile() {
        let policy =
            Machine::with(&[]).resolve(&[project(true, &template("strict", None))], &CommandLine::default());
        assert_eq!(policy.profile, "strict");
        assert_eq!(policy.filesystem.grants.iter().filter(|grant| !grant.system).count(), 1);
    }

    #[test]
    fn what_it_suggests_is_well_formed() {
        let uncommented: String = template("default", None)
            .lines()
            .map(|line| {
                line.strip_prefix("# ")
                    .filter(|line| line.contains(" = ") || line.starts_with('['))
                    .unwrap_or(line)
            })
            .filter(|line| !line.starts_with('#'))
            .map(|line| format!("{line}\n"))
            .collect();
        let policy = Machine::with(&[]).resolve(&[project(true, &uncommented)], &CommandLine::default());
        assert!(policy.agent.is_some() && policy.network.needs_gateway(), "{uncommented}");
    }
}
