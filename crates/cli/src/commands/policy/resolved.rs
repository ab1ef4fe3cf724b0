//! What `policy show --resolved` prints: every rule that holds, with where it comes from.

use clap::builder::styling::Style;
use redoma_audit::escape::printable;
use redoma_policy::{
    Access, Action, Environment, Filesystem, Limits, Network, Origin, PathRule, ResolvedPolicy, SecretRule,
};

use crate::printer::{BAD, BOLD, DIM, GOOD, Table, WARN, paint};

/// The whole policy, a section after the other.
pub(super) fn render(policy: &ResolvedPolicy) -> String {
    let head = format!("profile {}, project {}", policy.profile, printable(&policy.project));
    let agent = policy.agent.as_ref().map(|agent| format!(", agent {}", agent.name)).unwrap_or_default();
    let mut sections = vec![paint(BOLD, head + &agent)];
    section(&mut sections, "filesystem", &filesystem(&policy.filesystem));
    section(&mut sections, "network", &network(&policy.network));
    section(&mut sections, "environment", &environment(&policy.environment));
    section(&mut sections, "secrets", &secrets(&policy.secrets));
    section(&mut sections, "limits", &limits(&policy.limits));
    sections.join("\n")
}

fn section(sections: &mut Vec<String>, name: &str, table: &Table) {
    if !table.is_empty() {
        let body: Vec<_> = table.render().lines().map(|line| format!("  {line}")).collect();
        sections.push(format!("\n{}\n{}", paint(BOLD, format_args!("[{name}]")), body.join("\n")));
    }
}

/// What is done, who said so, and to what: the longest comes last.
fn rule(table: &mut Table, style: Style, verb: &str, what: &str, origin: &Origin) {
    let origin = printable(&origin.to_string()).into_owned();
    table.row([(style, verb.to_owned()), (DIM, origin), (Style::new(), printable(what).into_owned())]);
}

fn setting(table: &mut Table, name: &str, value: &dyn std::fmt::Display) {
    table.row([(DIM, name.to_owned()), (Style::new(), value.to_string())]);
}

fn filesystem(files: &Filesystem) -> Table {
    let mut table = Table::default();
    for grant in &files.grants {
        let style = if grant.access == Access::Write { WARN } else { GOOD };
        rule(&mut table, style, &grant.access.to_string(), &grant.path.to_string_lossy(), &grant.origin);
    }
    path_rules(&mut table, "deny", &files.deny);
    path_rules(&mut table, "protect", &files.protect);
    setting(&mut table, "workspace", &files.workspace);
    setting(&mut table, "undo", &files.undo);
    table
}

fn path_rules(table: &mut Table, verb: &str, rules: &[PathRule]) {
    let style = if verb == "deny" { BAD } else { WARN };
    for one in rules {
        rule(table, style, verb, &one.pattern.to_string(), &one.origin);
    }
}

fn network(network: &Network) -> Table {
    let mut table = Table::default();
    setting(&mut table, "default", &network.default);
    for one in &network.rules {
        let style = match one.action {
            Action::Allow | Action::Inspect => GOOD,
            Action::Ask => WARN,
            Action::Deny => BAD,
        };
        let ports: Vec<_> = one.ports.iter().map(ToString::to_string).collect();
        let ports = if ports.is_empty() { String::new() } else { format!(":{}", ports.join(",")) };
        rule(&mut table, style, &one.action.to_string(), &format!("{}{ports}", one.host), &one.origin);
    }
    network.local.publish.iter().for_each(|port| setting(&mut table, "publish", port));
    network.local.reach.iter().for_each(|port| setting(&mut table, "reach", port));
    table
}

fn environment(environment: &Environment) -> Table {
    let mut table = Table::default();
    for one in &environment.pass {
        rule(&mut table, GOOD, "pass", one.name.as_str(), &one.origin);
    }
    for one in &environment.deny {
        rule(&mut table, BAD, "deny", one.name.as_str(), &one.origin);
    }
    for one in &environment.set {
        rule(&mut table, WARN, "set", &format!("{}={}", one.name, one.value), &one.origin);
    }
    table
}

fn secrets(secrets: &[SecretRule]) -> Table {
    let mut table = Table::default();
    for secret in secrets {
        let hosts: Vec<_> = secret.hosts.iter().map(ToString::to_string).collect();
        rule(&mut table, WARN, &secret.name, &format!("only to {}", hosts.join(", ")), &secret.origin);
    }
    table
}

fn limits(limits: &Limits) -> Table {
    let mut table = Table::default();
    let amounts = [
        ("cpus", limits.cpus.map(|cpus| cpus.get().to_string())),
        ("memory", limits.memory.map(|bytes| bytes.to_string())),
        ("pids", limits.pids.map(|pids| pids.to_string())),
        ("disk", limits.disk.map(|bytes| bytes.to_string())),
        ("time", limits.time.map(|time| time.to_string())),
    ];
    for (name, amount) in amounts {
        amount.into_iter().for_each(|amount| setting(&mut table, name, &amount));
    }
    if limits.strict {
        setting(&mut table, "strict", &true);
    }
    table
}
