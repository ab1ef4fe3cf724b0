//! A resolved policy as text: a policy file that says where each rule came from.
//!
//! It can be read again: under the same surroundings it resolves to the same decisions, as long as exceptions
//! (`!glob`) of one layer name nothing that a glob of another denies; a single file has but one list.

use std::fmt::{self, Display, Formatter, Write};
use std::path::Path;

use crate::pattern::escape;
use crate::{
    Access, Action, Environment, Filesystem, Grant, Limits, Network, NetworkRule, Origin, PathPattern,
    PathRule, ResolvedPolicy, SecretPlace, SecretRule, SecretSource,
};

/// Where the comment beside an entry begins.
const COMMENT_COLUMN: usize = 56;

impl Display for ResolvedPolicy {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "# project {}", self.project.display())?;
        writeln!(f, "# profile {}", self.profile)?;
        if let Some(agent) = &self.agent {
            writeln!(f, "# agent {}", agent.name)?;
        }
        writeln!(f, "extends = \"empty\"\n")?;
        write_files(f, &self.filesystem)?;
        write_network(f, &self.network)?;
        self.secrets.iter().try_for_each(|secret| write_secret(f, secret))?;
        write_environment(f, &self.environment)?;
        write_limits(f, &self.limits)?;
        writeln!(f, "[kernel]\nnested_userns = {}\n", self.kernel.nested_userns)?;
        writeln!(f, "[audit]")?;
        if let Some(retention) = self.audit.retention {
            writeln!(f, "retention = \"{retention}\"")?;
        }
        writeln!(f, "record = \"{}\"", self.audit.record)
    }
}

// === files ===

fn write_files(f: &mut Formatter<'_>, files: &Filesystem) -> fmt::Result {
    writeln!(f, "[filesystem]")?;
    writeln!(f, "workspace = \"{}\"", files.workspace)?;
    writeln!(f, "undo = {}", files.undo)?;
    writeln!(f, "undo_max = \"{}\"", files.undo_max)?;
    let path = |path: &Path| quoted(&escape(path));
    let entries = |wanted: fn(&Grant) -> bool| {
        let grants = files.grants.iter().filter(move |grant| wanted(grant));
        grants.map(|grant| (path(&grant.path), grant.origin.to_string())).collect::<Vec<_>>()
    };
    let mut system = entries(|grant| grant.system);
    // A link is written like what it leads to, so that it is made again; one that leads to no grant grants nothing.
    let shown = files.aliases.iter().filter(|alias| files.grant_for(&alias.target).is_some());
    system.extend(shown.map(|alias| (path(&alias.link), format!("link to {}", alias.target.display()))));
    write_list(f, "system", &system)?;
    write_list(f, "read", &entries(|grant| !grant.system && grant.access == Access::Read))?;
    write_list(f, "write", &entries(|grant| !grant.system && grant.access == Access::Write))?;
    write_list(f, "deny", &rules(&files.deny))?;
    write_list(f, "protect", &rules(&files.protect))?;
    writeln!(f)
}

/// Rules, each once, and their exceptions after them.
fn rules(rules: &[PathRule]) -> Vec<(String, String)> {
    let mut entries = Vec::with_capacity(rules.len());
    let mut exceptions = Vec::new();
    for rule in rules {
        entries.push((quoted(&rule.pattern.to_string()), rule.origin.to_string()));
        if let PathPattern::Glob(glob) = &rule.pattern {
            let texts = glob.exceptions().iter().map(|exception| quoted(&format!("!{exception}")));
            exceptions.extend(texts.map(|text| (text, "exception".to_owned())));
        }
    }
    exceptions.sort();
    exceptions.dedup();
    entries.extend(exceptions);
    entries
}

// === network and secrets ===

fn write_network(f: &mut Formatter<'_>, network: &Network) -> fmt::Result {
    writeln!(f, "[network]\ndefault = \"{}\"", network.default)?;
    writeln!(f, "ask_timeout = \"{}\"", network.ask_timeout)?;
    writeln!(f, "upstream_proxy = {}\n", quoted(&network.upstream_proxy.to_string()))?;
    writeln!(f, "[network.leaks]")?;
    for (class, action) in network.leaks.classes() {
        writeln!(f, "{class} = \"{action}\"")?;
    }
    writeln!(f)?;
    // Without a network rules say nothing, and a file that holds both is refused.
    if network.default == crate::NetworkDefault::None {
        return Ok(());
    }
    network.rules.iter().try_for_each(|rule| write_rule(f, rule))?;
    let entries =
        |texts: Vec<String>| texts.iter().map(|text| (quoted(text), String::new())).collect::<Vec<_>>();
    let publish = entries(network.local.publish.iter().map(ToString::to_string).collect());
    let reach = entries(network.local.reach.iter().map(ToString::to_string).collect());
    if publish.is_empty() && reach.is_empty() {
        return Ok(());
    }
    writeln!(f, "[network.local]")?;
    write_list(f, "publish", &publish)?;
    write_list(f, "reach", &reach)?;
    writeln!(f)
}

fn write_rule(f: &mut Formatter<'_>, rule: &NetworkRule) -> fmt::Result {
    writeln!(f, "[[network.rule]]")?;
    write_entry(f, "", &format!("host = {}", quoted(&rule.host.to_string())), &rule.origin.to_string())?;
    let ports: Vec<String> = rule.ports.iter().map(ToString::to_string).collect();
    if !ports.is_empty() {
        writeln!(f, "ports = [{}]", ports.join(", "))?;
    }
    writeln!(f, "action = \"{}\"", rule.action)?;
    if rule.protocol != crate::Protocol::Any {
        writeln!(f, "protocol = \"{}\"", rule.protocol)?;
    }
    if let Some(size) = rule.max_upload_session {
        writeln!(f, "max_upload_session = \"{size}\"")?;
    }
    if let Some(rate) = rule.rate {
        writeln!(f, "rate = \"{rate}\"")?;
    }
    if rule.private {
        writeln!(f, "private = true")?;
    }
    if rule.action == Action::Inspect {
        write_inspection(f, rule)?;
    }
    writeln!(f)
}

fn write_inspection(f: &mut Formatter<'_>, rule: &NetworkRule) -> fmt::Result {
    for (key, values) in [("methods", &rule.methods), ("paths", &rule.paths)] {
        if !values.is_empty() {
            writeln!(f, "{key} = [{}]", list(values))?;
        }
    }
    if let Some(size) = rule.max_upload {
        writeln!(f, "max_upload = \"{size}\"")?;
    }
    writeln!(f, "pinned = \"{}\"", rule.pinned)
}

fn write_secret(f: &mut Formatter<'_>, secret: &SecretRule) -> fmt::Result {
    writeln!(f, "[secrets.{}]", secret.name)?;
    match &secret.source {
        SecretSource::Env(name) => writeln!(f, "from = \"env\"\nvariable = {}", quoted(name))?,
        SecretSource::File(path) => writeln!(f, "from = \"file\"\npath = {}", quoted(&escape(path)))?,
        SecretSource::Keyring(entry) => writeln!(f, "from = \"keyring\"\nentry = {}", quoted(entry))?,
        SecretSource::Command(words) => writeln!(f, "from = \"command\"\ncommand = [{}]", list(words))?,
    }
    let hosts: Vec<String> = secret.hosts.iter().map(ToString::to_string).collect();
    writeln!(f, "hosts = [{}]", list(&hosts))?;
    match &secret.place {
        SecretPlace::Headers => {}
        SecretPlace::Header(name) => writeln!(f, "header = {}", quoted(name))?,
        SecretPlace::Query(key) => writeln!(f, "query = {}", quoted(key))?,
        SecretPlace::Basic(user) => writeln!(f, "basic = {}", quoted(user.as_deref().unwrap_or("*")))?,
        SecretPlace::Aws { access_key_id: id, session_token: token } => {
            writeln!(f, "aws = {{ access_key_id = {}, session_token = {} }}", quoted(id), quoted(token))?;
        }
    }
    writeln!(f)
}

// === the rest ===

fn write_environment(f: &mut Formatter<'_>, environment: &Environment) -> fmt::Result {
    writeln!(f, "[environment]")?;
    let entries = |rules: &[crate::EnvRule]| {
        let entry = |rule: &crate::EnvRule| (quoted(rule.name.as_str()), rule.origin.to_string());
        rules.iter().map(entry).collect::<Vec<_>>()
    };
    write_list(f, "pass", &entries(&environment.pass))?;
    write_list(f, "deny", &entries(&environment.deny))?;
    for (at, set) in environment.set.iter().enumerate() {
        if !environment.set[at + 1..].iter().any(|later| later.name == set.name) {
            let text = format!("set.{} = {}", set.name, quoted(&set.value));
            write_entry(f, "", &text, &set.origin.to_string())?;
        }
    }
    writeln!(f)
}

fn write_limits(f: &mut Formatter<'_>, limits: &Limits) -> fmt::Result {
    writeln!(f, "[limits]")?;
    let entries = [
        ("cpus", limits.cpus.map(|cpus| format!("{:?}", cpus.get()))),
        ("memory", limits.memory.map(|size| quoted(&size.to_string()))),
        ("pids", limits.pids.map(|pids| pids.to_string())),
        ("disk", limits.disk.map(|size| quoted(&size.to_string()))),
        ("time", limits.time.map(|time| quoted(&time.to_string()))),
        ("strict", Some(limits.strict.to_string())),
    ];
    for (key, value) in entries {
        if let Some(value) = value {
            writeln!(f, "{key} = {value}")?;
        }
    }
    writeln!(f)
}

// === text ===

fn write_list(f: &mut Formatter<'_>, key: &str, entries: &[(String, String)]) -> fmt::Result {
    if entries.is_empty() {
        return Ok(());
    }
    writeln!(f, "{key} = [")?;
    entries.iter().try_for_each(|(text, origin)| write_entry(f, "    ", &format!("{text},"), origin))?;
    writeln!(f, "]")
}

fn write_entry(f: &mut Formatter<'_>, indent: &str, text: &str, origin: &str) -> fmt::Result {
    if origin.is_empty() {
        return writeln!(f, "{indent}{text}");
    }
    let width = COMMENT_COLUMN.saturating_sub(indent.len());
    writeln!(f, "{indent}{text:<width$} # {}", one_line(origin))
}

/// A file name with a line break in it must not end a comment.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn list(values: &[String]) -> String {
    values.iter().map(|value| quoted(value)).collect::<Vec<_>>().join(", ")
}

/// A TOML basic string (toml.io, "String"), which never spans lines.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            // Writing to a String cannot fail.
            c if c.is_control() => drop(write!(out, "\\U{:08X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

impl Display for crate::Record {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Decisions => "decisions",
            Self::Everything => "everything",
        })
    }
}

impl Display for crate::Pinned {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Block => "block",
            Self::Opaque => "opaque",
        })
    }
}

/// One line about a rule, for lists of differences.
pub(crate) fn about(origin: &Origin) -> String {
    one_line(&origin.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::{Machine, user};
    use crate::{CommandLine, Question, Tier};
    use proptest::prelude::*;

    const WRITTEN: &str = r#"
        [filesystem]
        read = ["/srv/a\\*b", "/srv/b"]
        deny = ["/srv/b/x[12]", "~/p/k\u0007y"]
        [network]
        ask_timeout = "90s"
        upstream_proxy = "http://me@proxy.example:3128"
        [[network.rule]]
        host = "*.example.com"
        action = "inspect"
        methods = ["GET"]
        paths = ["/v1/**"]
        max_upload = "8MiB"
        max_upload_session = "1GiB"
        rate = "600/m"
        protocol = "http"
        pinned = "opaque"
        [[network.rule]]
        host = "192.0.2.7"
        ports = [22]
        action = "ask"
        private = true
        [network.leaks]
        personal = "alert"
        [network.local]
        publish = ["8080:3000"]
        reach = ["localhost:5432"]
        [secrets.API_KEY]
        from = "command"
        command = ["pass", "api \"key\""]
        hosts = ["example.com"]
        header = "x-api-key"
        [secrets.QUERY_KEY]
        from = "env"
        hosts = ["*.example.com"]
        query = "api_key"
        [secrets.GIT_TOKEN]
        from = "file"
        path = "~/token"
        hosts = ["git.example.com"]
        basic = "*"
        [secrets.AWS_SECRET_ACCESS_KEY]
        from = "keyring"
        entry = "aws"
        hosts = ["aws.example.com,*.aws.example.com"]
        aws = {}
        [environment]
        set = { A = "1\n2" }
        deny = ["FOO_*"]
        [limits]
        cpus = 2.0
        memory = "1GiB"
        time = "90m"
        [audit]
        retention = "90d"
    "#;

    fn machine() -> Machine {
        Machine::with(&["/srv/a*b/", "/srv/b/x1", "/srv/b/y", "/home/u/.cargo/", "/home/u/p/.env"])
    }

    fn paths() -> impl Strategy<Value = String> {
        proptest::sample::select(
            &[
                "/bin/sh",
                "/etc/shadow",
                "/etc/passwd",
                "/usr/bin/x",
                "/srv/a*b/c",
                "/srv/b/x1/y",
                "/srv/b/y",
                "/srv/c",
                "/home/u/.cargo/bin/x",
                "/home/u/.ssh/id",
                "/home/u/p/.env",
                "/home/u/p/.env.example",
                "/home/u/p/k\u{7}y",
                "/home/u/p/.git/config",
                "/home/u/p/.git/modules/m/hooks/x",
                "/home/u/p/a",
                "/tmp/x",
                "/home/u/.netrc",
            ][..],
        )
        .prop_map(str::to_owned)
    }

    proptest! {
        #[test]
        fn what_is_shown_decides_as_what_it_shows(path in paths(), which in 0..3_usize) {
            let policy = machine().resolve(&[user(WRITTEN)], &CommandLine::default());
            let again = machine().resolve(&[user(&policy.to_string())], &CommandLine::default());
            let path = Path::new(&path);
            let below = path.parent().unwrap();
            let question =
                [Question::Read(path), Question::Write(path), Question::Create { path, below }][which];
            for tier in [Tier::Full, Tier::Landlock] {
                let (one, other) = (policy.decide(&question, tier), again.decide(&question, tier));
                prop_assert_eq!((one.effect, one.place), (other.effect, other.place), "{:?}", question);
            }
        }
    }

    #[test]
    fn what_is_shown_resolves_to_the_same_text() {
        let shown = machine().resolve(&[user(WRITTEN)], &CommandLine::default());
        let again = machine().resolve(&[user(&shown.to_string())], &CommandLine::default());
        let bare = |policy: &ResolvedPolicy| {
            let text = policy.to_string();
            text.lines()
                .map(|line| line.split(" # ").next().unwrap().trim_end().to_owned())
                .skip(2)
                .collect::<Vec<_>>()
        };
        let mut one = bare(&shown);
        let mut other = bare(&again);
        one.sort();
        one.dedup();
        other.sort();
        other.dedup();
        assert_eq!(one, other);
        assert_eq!(again.limits, shown.limits);
        assert_eq!(again.network.local, shown.network.local);
        assert_eq!(again.network.leaks, shown.network.leaks);
        assert_eq!(again.network.upstream_proxy, shown.network.upstream_proxy);
        let places = |policy: &ResolvedPolicy| {
            let mut all: Vec<_> = policy.secrets.iter().map(|one| format!("{one:?}")).collect();
            all.iter_mut().for_each(|text| text.truncate(text.find("origin").unwrap_or(0)));
            all.sort();
            all
        };
        assert_eq!(places(&again), places(&shown));
    }
}
