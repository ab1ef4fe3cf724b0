//! What changes from one resolved policy to another, and whether it widens: what a person reads before trusting.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Action, Environment, Filesystem, Network, Origin, PathGlob, PathPattern, ResolvedPolicy, show};

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The section it belongs to, such as `filesystem`.
    pub area: &'static str,
    /// What was there and is gone, or has another value.
    pub before: Option<String>,
    /// What is there now.
    pub after: Option<String>,
    /// Whether the new policy lets more happen because of it.
    pub widens: bool,
    /// Where the rule that came or went was written.
    pub origin: Option<String>,
}

/// What having a rule does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sense {
    Opens,
    Closes,
    /// Neither, or it depends: counted as opening in both directions.
    Either,
}

type Facts = BTreeMap<(&'static str, String), (Sense, Option<String>)>;

/// The differences from `old` to `new`, by section, what went before what came.
#[must_use]
pub fn diff(old: &ResolvedPolicy, new: &ResolvedPolicy) -> Vec<Difference> {
    let (before, after) = (facts(old), facts(new));
    let gone =
        before.iter().filter(|(key, _)| !after.contains_key(*key)).map(|((area, text), (sense, origin))| {
            let widens = *sense != Sense::Opens;
            Difference { area, before: Some(text.clone()), after: None, widens, origin: origin.clone() }
        });
    let come =
        after.iter().filter(|(key, _)| !before.contains_key(*key)).map(|((area, text), (sense, origin))| {
            let widens = *sense != Sense::Closes;
            Difference { area, before: None, after: Some(text.clone()), widens, origin: origin.clone() }
        });
    let mut all: Vec<Difference> = gone.chain(come).chain(values(old, new)).collect();
    all.sort_by_key(|difference| difference.area);
    all
}

fn facts(policy: &ResolvedPolicy) -> Facts {
    let mut facts = Facts::new();
    file_facts(&mut facts, &policy.filesystem);
    network_facts(&mut facts, &policy.network);
    variable_facts(&mut facts, &policy.environment);
    for secret in &policy.secrets {
        let hosts: Vec<String> = secret.hosts.iter().map(ToString::to_string).collect();
        let (name, source, place) = (&secret.name, &secret.source, &secret.place);
        let text = format!("{name} for {}, from {source}, in {place}", hosts.join(" "));
        add(&mut facts, "secrets", text, Sense::Opens, Some(&secret.origin));
    }
    facts
}

fn add(facts: &mut Facts, area: &'static str, text: String, sense: Sense, origin: Option<&Origin>) {
    facts.entry((area, text)).or_insert((sense, origin.map(show::about)));
}

fn file_facts(facts: &mut Facts, files: &Filesystem) {
    for grant in &files.grants {
        let text = format!("{} {}", grant.access, grant.path.display());
        add(facts, "filesystem", text, Sense::Opens, Some(&grant.origin));
    }
    for (word, rules) in [("deny", &files.deny), ("protect", &files.protect)] {
        for rule in rules {
            if let PathPattern::Glob(glob) = &rule.pattern {
                for exception in glob.exceptions() {
                    add(facts, "filesystem", format!("{word} !{}", free_text(exception)), Sense::Opens, None);
                }
            }
            let text = format!("{word} {}", pattern_text(&rule.pattern));
            add(facts, "filesystem", text, Sense::Closes, Some(&rule.origin));
        }
    }
}

fn network_facts(facts: &mut Facts, network: &Network) {
    for rule in &network.rules {
        let sense = match rule.action {
            Action::Deny => Sense::Closes,
            Action::Ask => Sense::Either,
            Action::Allow | Action::Inspect => Sense::Opens,
        };
        add(facts, "network", rule_text(rule), sense, Some(&rule.origin));
    }
    for publish in &network.local.publish {
        add(facts, "network", format!("publish {publish}"), Sense::Opens, None);
    }
    for reach in &network.local.reach {
        add(facts, "network", format!("reach {reach}"), Sense::Opens, None);
    }
}

fn variable_facts(facts: &mut Facts, environment: &Environment) {
    for rule in &environment.pass {
        add(facts, "environment", format!("pass {}", rule.name.as_str()), Sense::Opens, Some(&rule.origin));
    }
    for rule in &environment.deny {
        add(facts, "environment", format!("deny {}", rule.name.as_str()), Sense::Closes, Some(&rule.origin));
    }
    for set in &environment.set {
        let text = format!("set {}={}", set.name, set.value.escape_debug());
        add(facts, "environment", text, Sense::Either, Some(&set.origin));
    }
}

fn pattern_text(pattern: &PathPattern) -> String {
    match pattern {
        PathPattern::Glob(glob) => free_text(glob),
        PathPattern::Exact { .. } => pattern.to_string(),
    }
}

/// A glob that holds in every folder a person grants is one rule: another such folder does not make it another.
fn free_text(glob: &PathGlob) -> String {
    if glob.glob().starts_with("**/") { glob.glob().to_owned() } else { glob.to_string() }
}

fn rule_text(rule: &crate::NetworkRule) -> String {
    let ports: Vec<String> = rule.ports.iter().map(ToString::to_string).collect();
    let mut text = format!("{} {}", rule.action, rule.host);
    let upload = rule.max_upload.map(|size| size.to_string()).unwrap_or_default();
    let pinned = if rule.pinned == crate::Pinned::Opaque { "opaque".to_owned() } else { String::new() };
    let details = [
        ("ports", ports.join(" ")),
        (
            "protocol",
            if rule.protocol == crate::Protocol::Any { String::new() } else { rule.protocol.to_string() },
        ),
        ("methods", rule.methods.join(" ")),
        ("paths", rule.paths.join(" ")),
        ("max_upload", upload),
        ("max_upload_session", rule.max_upload_session.map(|size| size.to_string()).unwrap_or_default()),
        ("rate", rule.rate.map(|rate| rate.to_string()).unwrap_or_default()),
        ("pinned", pinned),
        ("private", if rule.private { "yes".to_owned() } else { String::new() }),
    ];
    for (key, value) in details.into_iter().filter(|(_, value)| !value.is_empty()) {
        text.push_str(&format!(", {key} {value}"));
    }
    text
}

/// Settings that have one value.
fn values(old: &ResolvedPolicy, new: &ResolvedPolicy) -> Vec<Difference> {
    let looser =
        |old: &Option<u128>, new: &Option<u128>| new.is_none() || old.is_some_and(|old| *new > Some(old));
    let mut all = Vec::new();
    let mut compare = |area, key: &str, before: String, after: String, widens: bool| {
        if before != after {
            let (before, after) = (Some(format!("{key} = {before}")), Some(format!("{key} = {after}")));
            all.push(Difference { area, before, after, widens, origin: None });
        }
    };
    let text = |value: Option<String>| value.unwrap_or_else(|| "no limit".to_owned());
    let (one, other) = (&old.network.default, &new.network.default);
    compare("network", "default", one.to_string(), other.to_string(), other > one);
    let (one, other) = (old.network.ask_timeout, new.network.ask_timeout);
    compare("network", "ask_timeout", one.to_string(), other.to_string(), other > one);
    let (one, other) = (&old.network.upstream_proxy, &new.network.upstream_proxy);
    compare("network", "upstream_proxy", one.to_string(), other.to_string(), true);
    let classes = old.network.leaks.classes().into_iter().zip(new.network.leaks.classes());
    for ((class, one), (_, other)) in classes {
        compare("network", &format!("leaks.{class}"), one.to_string(), other.to_string(), other < one);
    }
    for (key, one, other) in amounts(old, new) {
        let widens = looser(&one.0, &other.0);
        compare("limits", key, text(one.1), text(other.1), widens);
    }
    let (one, other) = (old.kernel.nested_userns, new.kernel.nested_userns);
    compare("kernel", "nested_userns", one.to_string(), other.to_string(), other);
    let (one, other) = (&old.filesystem, &new.filesystem);
    let direct = other.workspace == crate::Workspace::Direct;
    compare("filesystem", "workspace", one.workspace.to_string(), other.workspace.to_string(), direct);
    compare("filesystem", "undo", one.undo.to_string(), other.undo.to_string(), !other.undo);
    compare(
        "limits",
        "strict",
        old.limits.strict.to_string(),
        new.limits.strict.to_string(),
        !new.limits.strict,
    );
    all
}

/// A limit as a number that can be compared, and as text.
type Amount = (Option<u128>, Option<String>);

fn amounts(old: &ResolvedPolicy, new: &ResolvedPolicy) -> Vec<(&'static str, Amount, Amount)> {
    let of = |limits: &crate::Limits| {
        // A thousandth of a processor is finer than the kernel's quota, so nothing is lost.
        let cpus = limits.cpus.map(|cpus| ((cpus.get() * 1000.0) as u128, cpus.get().to_string()));
        let size = |size: Option<crate::ByteSize>| size.map(|size| (u128::from(size.0), size.to_string()));
        let pids = limits.pids.map(|pids| (u128::from(pids), pids.to_string()));
        let time = limits.time.map(|time| (time.0.as_millis(), time.to_string()));
        [
            ("cpus", cpus),
            ("memory", size(limits.memory)),
            ("pids", pids),
            ("disk", size(limits.disk)),
            ("time", time),
        ]
    };
    let pairs = of(&old.limits).into_iter().zip(of(&new.limits));
    pairs.map(|((key, one), (_, other))| (key, one.unzip(), other.unzip())).collect()
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mark = if self.widens { " (widens)" } else { "" };
        let (before, after) = (self.before.as_deref(), self.after.as_deref());
        match (before, after) {
            (Some(before), Some(after)) => write!(f, "~ [{}] {before} -> {after}{mark}", self.area),
            (Some(before), None) => write!(f, "- [{}] {before}{mark}", self.area),
            (_, after) => write!(f, "+ [{}] {}{mark}", self.area, after.unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CommandLine;
    use crate::testbed::{Machine, user};

    fn lines(old: &str, new: &str) -> Vec<String> {
        let machine = Machine::with(&["/srv/a/"]);
        let resolved = |text: &str| machine.resolve(&[user(text)], &CommandLine::default());
        diff(&resolved(old), &resolved(new)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_policy_does_not_differ_from_itself() {
        assert_eq!(lines("", "\n\n"), [""; 0]);
    }

    #[test]
    fn what_opens_is_marked_and_what_closes_is_not() {
        let old = "[limits]\npids = 9\n[filesystem]\ndeny = [\"x\"]";
        let new = "[limits]\npids = 10\nmemory = \"1GiB\"\n[filesystem]\nread = [\"/srv/a\"]\ndeny = [\"y\"]\n[network]\ndefault = \"ask\"";
        assert_eq!(
            lines(old, new),
            [
                "- [filesystem] deny /home/u/p/x (widens)",
                "+ [filesystem] deny /home/u/p/y",
                "+ [filesystem] read /srv/a (widens)",
                "~ [limits] memory = no limit -> memory = 1GiB",
                "~ [limits] pids = 9 -> pids = 10 (widens)",
                "~ [network] default = deny -> default = ask (widens)",
            ]
        );
    }
}
