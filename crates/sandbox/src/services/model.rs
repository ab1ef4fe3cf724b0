use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use redoma_policy::{NetworkDefault, Publish};
use serde::Serialize;

use crate::driver::{Amounts, ImageName, Name, Restart, User};

/// Services that belong together, as one file describes them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// What sandboxes of it are named after.
    pub name: Name,
    /// By what each is called by the others.
    pub services: BTreeMap<Name, Service>,
    /// What the file says and was narrowed.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// One of them: a sandbox, and what runs in it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Service {
    /// What its file system begins as.
    pub begins: Beginning,
    /// Instead of what the image says; then the image's own arguments do not count.
    pub entrypoint: Option<Vec<String>>,
    /// The arguments of it, instead of the image's.
    pub command: Option<Vec<String>>,
    /// Variables.
    pub env: BTreeMap<String, String>,
    /// Where it runs.
    pub workdir: Option<PathBuf>,
    /// Who it is.
    pub user: User,
    /// What it may reach where no rule decides.
    pub net: Option<NetworkDefault>,
    /// Hosts and presets it may reach.
    pub allow: Vec<String>,
    /// Ports of this machine's loopback that lead to it.
    pub ports: Vec<Publish>,
    /// What it sees of this machine.
    pub mounts: Vec<Bind>,
    /// What has to be there before it starts.
    pub after: BTreeMap<Name, Condition>,
    /// When it is taken to work.
    pub health: Option<Health>,
    /// What to do when it ends.
    pub restart: Restart,
    /// How much it may use.
    pub amounts: Amounts,
}

/// What a service's file system begins as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Beginning {
    /// An image.
    Image(ImageName),
    /// What a template says.
    Template(Name),
}

/// A file or folder of this machine, as the file says it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bind {
    /// Relative to the file's folder; a leading `~` is the user's home.
    pub from: String,
    /// Inside.
    pub to: PathBuf,
    /// Whether it can be written.
    pub writable: bool,
    /// Whether changes are kept aside.
    pub overlay: bool,
}

/// What of a service another one waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Condition {
    /// That it was started.
    Started,
    /// That it is taken to work; of one that says nothing about that, that it was started.
    Healthy,
    /// That it ended well.
    Completed,
}

/// When a service is taken to work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    /// What is tried.
    pub probe: Probe,
    /// Between two tries.
    pub interval: Duration,
    /// For one try.
    pub timeout: Duration,
    /// Tries that may fail.
    pub retries: u32,
    /// Time before failures count.
    pub start: Duration,
}

/// What is tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Probe {
    /// A command inside that succeeds.
    Command(Vec<String>),
    /// A port inside that accepts connections.
    Port(u16),
    /// A port inside that answers a GET of the path with less than 400.
    Http {
        /// The port.
        port: u16,
        /// The path, with its slash.
        path: String,
    },
}

// === impl Service ===

impl Service {
    /// A service that begins so, with nothing else said about it.
    #[must_use]
    pub fn new(begins: Beginning) -> Self {
        Self {
            begins,
            entrypoint: None,
            command: None,
            env: BTreeMap::new(),
            workdir: None,
            user: User::default(),
            net: None,
            allow: Vec::new(),
            ports: Vec::new(),
            mounts: Vec::new(),
            after: BTreeMap::new(),
            health: None,
            restart: Restart::No,
            amounts: Amounts::default(),
        }
    }

    /// What to start, given what the image says. Nothing where nobody says anything.
    ///
    /// An entrypoint that is said takes the place of both of the image's parts, as in
    /// [the image specification's](https://github.com/opencontainers/image-spec/blob/main/config.md) usual reading.
    #[must_use]
    pub fn argv(&self, entrypoint: &[String], cmd: &[String]) -> Vec<String> {
        let (first, rest) = match (&self.entrypoint, &self.command) {
            (Some(own), command) => (own.as_slice(), command.as_deref().unwrap_or_default()),
            (None, Some(command)) => (entrypoint, command.as_slice()),
            (None, None) => (entrypoint, cmd),
        };
        first.iter().chain(rest).cloned().collect()
    }
}

// === impl Health ===

impl Health {
    /// Longer than anybody waits.
    const LONGEST: Duration = Duration::from_secs(3600);

    /// A probe, tried for a minute.
    #[must_use]
    pub fn new(probe: Probe) -> Self {
        let (interval, timeout) = (Duration::from_secs(1), Duration::from_secs(5));
        Self { probe, interval, timeout, retries: 60, start: Duration::ZERO }
    }

    /// How long it may take until the service works.
    #[must_use]
    pub fn patience(&self) -> Duration {
        let tries = self.interval.max(Duration::from_millis(100)).saturating_mul(self.retries.max(1));
        self.start.saturating_add(tries).min(Self::LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_said_takes_the_place_of_what_the_image_says() {
        let (entrypoint, cmd) = (words("/init.sh"), words("postgres"));
        let mut service = Service::new(Beginning::Image(ImageName::Host));
        assert_eq!(service.argv(&entrypoint, &cmd), ["/init.sh", "postgres"]);
        service.command = Some(words("postgres -d 5"));
        assert_eq!(service.argv(&entrypoint, &cmd), ["/init.sh", "postgres", "-d", "5"]);
        service.entrypoint = Some(words("/own"));
        assert_eq!(service.argv(&entrypoint, &cmd), ["/own", "postgres", "-d", "5"]);
        service.command = None;
        assert_eq!(
            service.argv(&entrypoint, &cmd),
            ["/own"],
            "the image's arguments are for its own entrypoint"
        );
    }

    #[test]
    fn patience_is_bounded() {
        let mut health = Health::new(Probe::Port(1));
        assert_eq!(health.patience(), Duration::from_secs(60));
        health.retries = u32::MAX;
        assert_eq!(health.patience(), Health::LONGEST);
    }
}
