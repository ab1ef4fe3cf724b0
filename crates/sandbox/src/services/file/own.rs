//! `redoma-services.toml`.

use std::collections::BTreeMap;

use redoma_policy::NetworkDefault;
use serde::Deserialize;

use super::Text;
use super::words::by_shell;
use crate::driver::{Amounts, ImageName, Restart, User};
use crate::services::error::ServicesError;
use crate::services::model::{Beginning, Condition, Group, Health, Probe, Service};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: Option<String>,
    #[serde(default)]
    service: BTreeMap<String, Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Entry {
    image: Option<String>,
    template: Option<String>,
    entrypoint: Option<Line>,
    command: Option<Line>,
    env: BTreeMap<String, Scalar>,
    workdir: Option<String>,
    user: User,
    net: Option<NetworkDefault>,
    allow: Vec<String>,
    ports: Vec<Scalar>,
    mounts: Vec<String>,
    depends_on: Vec<String>,
    health: Option<Check>,
    restart: Restart,
    limits: Amounts,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Check {
    cmd: Option<Line>,
    port: Option<u16>,
    /// `8000/health`.
    http: Option<String>,
    interval: Option<String>,
    timeout: Option<String>,
    start: Option<String>,
    retries: Option<u32>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a list of words, or one line")]
enum Line {
    Words(Vec<String>),
    Whole(String),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a text, a number or a boolean")]
enum Scalar {
    Text(String),
    Whole(i64),
    Decimal(f64),
    Truth(bool),
}

pub(super) fn read(text: &Text<'_>) -> Result<Group, ServicesError> {
    let file: File = toml::from_str(text.text).map_err(|error| {
        let line = error.span().and_then(|span| text.line_of(span.start));
        text.wrong(line, error.message(), "redoma man up")
    })?;
    let mut services = BTreeMap::new();
    for (name, entry) in file.service {
        services.insert(text.name(&name, None)?, entry.read(text, &name)?);
    }
    Ok(Group { name: text.group_name(file.name.as_deref())?, services, notes: Vec::new() })
}

impl Entry {
    fn read(self, text: &Text<'_>, name: &str) -> Result<Service, ServicesError> {
        let all = |typed: &[String]| -> Result<Vec<String>, ServicesError> {
            typed.iter().map(|one| text.expand(one, None)).collect()
        };
        let mut service = Service::new(self.begins(text, name)?);
        service.entrypoint = self.entrypoint.map(|line| line.words(text)).transpose()?;
        service.command = self.command.map(|line| line.words(text)).transpose()?;
        for (name, value) in self.env {
            service.env.insert(name, text.expand(&value.text(), None)?);
        }
        service.workdir = self.workdir.map(Into::into);
        (service.user, service.net, service.restart) = (self.user, self.net, self.restart);
        service.allow = all(&self.allow)?;
        for port in self.ports {
            service.ports.push(text.port(&text.expand(&port.text(), None)?, None)?);
        }
        for mount in all(&self.mounts)? {
            service.mounts.push(text.bind(&mount, None)?);
        }
        for after in &self.depends_on {
            service.after.insert(text.name(after, None)?, Condition::Healthy);
        }
        service.health = self.health.map(|check| check.read(text, name)).transpose()?;
        service.amounts = self.limits;
        Ok(service)
    }

    fn begins(&self, text: &Text<'_>, name: &str) -> Result<Beginning, ServicesError> {
        match (&self.image, &self.template) {
            (Some(image), None) => Ok(Beginning::Image(ImageName::from(text.expand(image, None)?))),
            (None, Some(template)) => Ok(Beginning::Template(text.name(template, None)?)),
            (Some(_), Some(_)) => {
                let what = format!("service {name} has an image and a template");
                Err(text.wrong(None, what, "take one of them out"))
            }
            (None, None) => {
                let what = format!("service {name} has neither an image nor a template");
                Err(text.wrong(None, what, "add `template = \"python\"`, or `image = \"host\"`"))
            }
        }
    }
}

impl Check {
    fn read(self, text: &Text<'_>, name: &str) -> Result<Health, ServicesError> {
        let wrong = |what: &str| {
            let what = format!("health of service {name} {what}");
            text.wrong(None, what, "write one of `cmd`, `port = 5432` and `http = \"8000/health\"`")
        };
        let probe = match (self.cmd, self.port, self.http) {
            (Some(Line::Words(words)), None, None) if !words.is_empty() => Probe::Command(words),
            (Some(Line::Whole(line)), None, None) => Probe::Command(by_shell(line)),
            (None, Some(port @ 1..), None) => Probe::Port(port),
            (None, None, Some(http)) => {
                let (port, path) = http.trim_start_matches(':').split_once('/').unwrap_or((&http, ""));
                let port =
                    port.parse().ok().filter(|port| *port > 0).ok_or_else(|| wrong("names no port"))?;
                if path.contains(|c: char| c.is_control() || c == ' ') {
                    return Err(wrong("has a path with spaces"));
                }
                Probe::Http { port, path: format!("/{path}") }
            }
            _ => return Err(wrong("says not one thing to try")),
        };
        let times = [&self.interval, &self.timeout, &self.start].map(Option::as_deref);
        text.health(probe, times, self.retries, None)
    }
}

impl Line {
    fn words(self, text: &Text<'_>) -> Result<Vec<String>, ServicesError> {
        let words = match self {
            Self::Words(words) => words,
            Self::Whole(line) => text.split(&line, None)?,
        };
        words.iter().map(|word| text.expand(word, None)).collect()
    }
}

impl Scalar {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Whole(number) => number.to_string(),
            Self::Decimal(number) => number.to_string(),
            Self::Truth(truth) => truth.to_string(),
        }
    }
}
