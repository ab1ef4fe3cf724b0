//! The part of a [Compose file](https://docs.docker.com/reference/compose-file/) that means the same here.

use std::collections::BTreeMap;

use redoma_policy::NetworkDefault;

use super::Text;
use super::words::by_shell;
use super::yaml::{self, Node, Value};
use crate::driver::{ImageName, Name, Restart, User};
use crate::services::error::ServicesError;
use crate::services::model::{Beginning, Bind, Condition, Group, Health, Probe, Service};

type Result<T> = std::result::Result<T, ServicesError>;

pub(super) fn read(text: &Text<'_>) -> Result<Group> {
    let file = Compose { text };
    let (mut name, mut services) = (None, BTreeMap::new());
    for (key, node) in file.map(&yaml::read(text)?, "the file")? {
        match key.as_str() {
            "name" => name = Some(file.text_of(node, "name")?),
            "services" => {
                for (name, node) in file.map(node, "services")? {
                    services.insert(text.name(name, Some(node.line))?, file.service(name, node)?);
                }
            }
            "version" => {}
            own if own.starts_with("x-") => {}
            other => return Err(file.unknown(node, "the file", other)),
        }
    }
    let published = services.values().any(|service| !service.ports.is_empty());
    let notes = published.then(|| "ports are published on this machine's loopback only".to_owned());
    Ok(Group { name: text.group_name(name.as_deref())?, services, notes: notes.into_iter().collect() })
}

struct Compose<'c> {
    text: &'c Text<'c>,
}

impl Compose<'_> {
    fn service(&self, name: &str, node: &Node) -> Result<Service> {
        let what = format!("service {name}");
        let entries = self.map(node, &what)?;
        let Some((_, image)) = entries.iter().find(|(key, _)| key == "image") else {
            let said = format!("{what} has no image");
            return Err(self.text.wrong(Some(node.line), said, "add `image:`; images are not built here"));
        };
        let image = ImageName::from(self.text_of(image, "image")?);
        let mut service = Service::new(Beginning::Image(image));
        service.net = Some(NetworkDefault::Allow);
        for (key, node) in entries.iter().filter(|(_, node)| !node.is_null()) {
            self.entry(&mut service, &what, key, node)?;
        }
        Ok(service)
    }

    fn entry(&self, service: &mut Service, what: &str, key: &str, node: &Node) -> Result<()> {
        match key {
            "entrypoint" => service.entrypoint = Some(self.line_of(node, key)?),
            "command" => service.command = Some(self.line_of(node, key)?),
            "environment" => service.env = self.environment(node)?,
            "ports" => service.ports = self.each(node, key, |node| self.published(node))?,
            "volumes" => service.mounts = self.each(node, key, |node| self.volume(node))?,
            "depends_on" => service.after = self.after(node)?,
            "healthcheck" => service.health = self.check(node)?,
            "restart" => service.restart = self.restart(node)?,
            "working_dir" => service.workdir = Some(self.text_of(node, key)?.into()),
            "user" => service.user = self.user(node)?,
            "network_mode" if self.text_of(node, key)? == "none" => service.net = Some(NetworkDefault::None),
            // It says what the image's author thinks of; nothing follows from it.
            "image" | "expose" => {}
            own if own.starts_with("x-") => {}
            other => return Err(self.unknown(node, what, other)),
        }
        Ok(())
    }

    fn environment(&self, node: &Node) -> Result<BTreeMap<String, String>> {
        let passed = |name: &str, line| self.text.expand(&format!("${{{name}}}"), Some(line));
        if let Value::List(_) = node.value {
            let all = self.each(node, "environment", |node| {
                let text = self.text_of(node, "environment")?;
                match text.split_once('=') {
                    Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
                    None => Ok((text.clone(), passed(&text, node.line)?)),
                }
            });
            return Ok(all?.into_iter().collect());
        }
        let all = self.map(node, "environment")?.iter().map(|(name, node)| {
            let value = if node.is_null() { passed(name, node.line)? } else { self.text_of(node, name)? };
            Ok((name.clone(), value))
        });
        all.collect()
    }

    fn published(&self, node: &Node) -> Result<redoma_policy::Publish> {
        let typed = match &node.value {
            Value::Map(_) => {
                self.long(node, "a port", &["target", "published", "protocol", "host_ip", "mode"])?
            }
            _ => return self.text.port(&self.text_of(node, "ports")?, Some(node.line)),
        };
        let part =
            |key: &str, otherwise: &str| typed.get(key).cloned().unwrap_or_else(|| otherwise.to_owned());
        let (target, protocol) = (part("target", ""), part("protocol", "tcp"));
        let published = part("published", &target);
        let address = typed.get("host_ip").map(|address| format!("{address}:")).unwrap_or_default();
        self.text.port(&format!("{address}{published}:{target}/{protocol}"), Some(node.line))
    }

    fn volume(&self, node: &Node) -> Result<Bind> {
        let line = Some(node.line);
        let bind = match &node.value {
            Value::Map(_) => {
                let long = self.long(node, "a volume", &["type", "source", "target", "read_only"])?;
                let part = |key: &str| long.get(key).cloned().unwrap_or_default();
                if part("type") != "bind" {
                    let what = format!("a volume of type {:?}: only bind is known", part("type"));
                    return Err(self.text.wrong(line, what, "write `- ./data:/data`"));
                }
                let kind = if part("read_only") == "true" { ":ro" } else { "" };
                self.text.bind(&format!("{}:{}{kind}", part("source"), part("target")), line)?
            }
            _ => self.text.bind(&self.text_of(node, "volumes")?, line)?,
        };
        // Anything else is the name of a volume in Compose.
        if !bind.from.starts_with(['.', '/', '~']) {
            let what = format!("volume {} is a named one: only folders of this machine are known", bind.from);
            return Err(self.text.wrong(
                line,
                what,
                format!("write `- ./{}:{}`", bind.from, bind.to.display()),
            ));
        }
        Ok(bind)
    }

    fn after(&self, node: &Node) -> Result<BTreeMap<Name, Condition>> {
        if let Value::List(_) = node.value {
            let names = self.each(node, "depends_on", |node| {
                self.text.name(&self.text_of(node, "depends_on")?, Some(node.line))
            });
            return Ok(names?.into_iter().map(|name| (name, Condition::Started)).collect());
        }
        let all = self.map(node, "depends_on")?.iter().map(|(name, node)| {
            let name = self.text.name(name, Some(node.line))?;
            let long = self.long(node, "depends_on", &["condition"])?;
            let condition = match long.get("condition").map_or("service_started", String::as_str) {
                "service_started" => Condition::Started,
                "service_healthy" => Condition::Healthy,
                "service_completed_successfully" => Condition::Completed,
                other => {
                    let what = format!("the condition {other:?} is not known");
                    return Err(self.text.wrong(Some(node.line), what, "write `condition: service_healthy`"));
                }
            };
            Ok((name, condition))
        });
        all.collect()
    }

    fn check(&self, node: &Node) -> Result<Option<Health>> {
        let entries = self.map(node, "healthcheck")?;
        let (mut test, mut times) = (None, BTreeMap::new());
        for (key, node) in entries {
            match key.as_str() {
                "test" => test = Some(node),
                "interval" | "timeout" | "retries" | "start_period" | "disable" => {
                    times.insert(key.as_str(), self.text_of(node, key)?);
                }
                other => return Err(self.unknown(node, "healthcheck", other)),
            }
        }
        let test = test.filter(|_| times.get("disable").is_none_or(|disable| disable != "true"));
        let Some(probe) = test.map(|test| self.test(test)).transpose()?.flatten() else { return Ok(None) };
        let said = ["interval", "timeout", "start_period"].map(|key| times.get(key).map(String::as_str));
        let line = Some(node.line);
        let retries = times.get("retries").map(|retries| {
            retries.parse().map_err(|_| self.text.wrong(line, "`retries` is no number", "write `retries: 3`"))
        });
        let mut health = self.text.health(probe, said, retries.transpose()?, line)?;
        // What Compose takes where nothing is said: three tries, half a minute apart.
        if said[0].is_none() && !times.contains_key("retries") {
            health.retries = 90;
        }
        Ok(Some(health))
    }

    /// None is no check at all.
    fn test(&self, node: &Node) -> Result<Option<Probe>> {
        let Value::List(_) = node.value else {
            return Ok(Some(Probe::Command(by_shell(self.text_of(node, "test")?))));
        };
        let words = self.each(node, "test", |node| self.text_of(node, "test"))?;
        match words.split_first() {
            Some((kind, [])) if kind == "NONE" => Ok(None),
            Some((kind, [line])) if kind == "CMD-SHELL" => Ok(Some(Probe::Command(by_shell(line.clone())))),
            Some((kind, rest @ [_, ..])) if kind == "CMD" => Ok(Some(Probe::Command(rest.to_vec()))),
            _ => Err(self.text.wrong(
                Some(node.line),
                "`test` has no meaning",
                "write `test: [\"CMD\", \"true\"]`",
            )),
        }
    }

    fn restart(&self, node: &Node) -> Result<Restart> {
        match self.text_of(node, "restart")?.as_str() {
            "no" | "false" => Ok(Restart::No),
            "on-failure" => Ok(Restart::OnFailure),
            // A group that was taken down is gone, so both are the same.
            "always" | "unless-stopped" => Ok(Restart::Always),
            other => {
                let what = format!("restart {other:?} is not known");
                Err(self.text.wrong(Some(node.line), what, "write `restart: on-failure`"))
            }
        }
    }

    fn user(&self, node: &Node) -> Result<User> {
        match self.text_of(node, "user")?.as_str() {
            "root" | "0" | "0:0" | "root:root" => Ok(User::Root),
            other => {
                let what = format!("user {other:?}: only root and who the image says are known");
                Err(self.text.wrong(Some(node.line), what, "take it out"))
            }
        }
    }

    // --- parts of all these ---

    fn map<'n>(&self, node: &'n Node, what: &str) -> Result<&'n [(String, Node)]> {
        match &node.value {
            Value::Map(entries) => Ok(entries),
            _ => Err(self.text.wrong(Some(node.line), format!("{what} is no mapping"), "write `key: value`")),
        }
    }

    fn each<T>(&self, node: &Node, what: &str, read: impl Fn(&Node) -> Result<T>) -> Result<Vec<T>> {
        match &node.value {
            Value::List(all) => all.iter().map(read).collect(),
            _ => Err(self.text.wrong(Some(node.line), format!("`{what}` is no list"), "write `- …`")),
        }
    }

    /// A mapping of texts with these keys and no others.
    fn long(&self, node: &Node, what: &str, known: &[&str]) -> Result<BTreeMap<String, String>> {
        let entries = self.map(node, what)?.iter();
        let read = entries.map(|(key, node)| match known.contains(&key.as_str()) {
            true => Ok((key.clone(), self.text_of(node, key)?)),
            false => Err(self.unknown(node, what, key)),
        });
        read.collect()
    }

    fn text_of(&self, node: &Node, what: &str) -> Result<String> {
        match &node.value {
            Value::Scalar { text, .. } => self.text.expand(text, Some(node.line)),
            _ => Err(self.text.wrong(Some(node.line), format!("`{what}` is no text"), "write one value")),
        }
    }

    fn line_of(&self, node: &Node, what: &str) -> Result<Vec<String>> {
        match node.value {
            Value::List(_) => self.each(node, what, |node| self.text_of(node, what)),
            _ => self.text.split(&self.text_of(node, what)?, Some(node.line)),
        }
    }

    fn unknown(&self, node: &Node, what: &str, key: &str) -> ServicesError {
        let hint = match key {
            "build" => "build the image elsewhere and name it as `image:`",
            "volumes" => "mount folders instead: `- ./data:/data`",
            "networks" | "links" => "take it out: services of a group reach each other by name",
            "env_file" | "secrets" | "configs" => {
                "pass variables with `redoma up --env NAME` and write `${NAME}`"
            }
            "deploy" | "mem_limit" | "cpus" | "pids_limit" => "describe limits in redoma-services.toml",
            "<<" => "write out what is merged",
            _ => "take it out, or describe the group in redoma-services.toml",
        };
        self.text.wrong(Some(node.line), format!("`{key}` of {what} is not known"), hint)
    }
}
