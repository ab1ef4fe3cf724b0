//! What a group file says. Each kind has its parser, and all come to a [`Group`]; what would be passed over in silence is
//! refused by name.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use redoma_policy::Publish;

use super::{native, peapod};
use crate::driver::{Amounts, ImageName, Mount, Name, Restart, Rules, User};
use crate::shell;
use crate::small_file::{Links, SmallFile};
use crate::trust::TrustStore;

/// The names that are looked for, in this order.
pub const NAMES: [&str; 2] = ["redoma-services.toml", "peapod.json"];
/// Larger files are no group's.
const MOST: usize = 1 << 20;

/// Services that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: Name,
    /// The file, canonical.
    pub file: PathBuf,
    /// Each after those that it depends on.
    pub services: Vec<Service>,
    content: String,
}

/// One service.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Service {
    /// Its name, by which the others reach it.
    pub name: String,
    /// What its file system begins as; none where a template says it.
    pub image: Option<ImageName>,
    /// The template it begins from.
    pub template: Option<String>,
    /// In place of the image's.
    pub entrypoint: Option<Vec<String>>,
    /// In place of the image's.
    pub command: Option<Vec<String>>,
    /// Variables.
    pub env: BTreeMap<String, String>,
    /// Where it starts.
    pub workdir: Option<PathBuf>,
    /// Who its commands are.
    pub user: User,
    /// What it may reach besides the others.
    pub rules: Rules,
    /// Ports on this machine's loopback that lead to it.
    pub ports: Vec<Publish>,
    /// What of the host it sees.
    pub mounts: Vec<Mount>,
    /// What comes before it.
    pub depends_on: Vec<String>,
    /// How to tell that it does its work.
    pub health: Health,
    /// Whether it is started again when it ends.
    pub restart: Restart,
    /// How much it may use.
    pub amounts: Amounts,
}

/// How to tell that a service does its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// A command that succeeds then; none is a published port that answers, or, without one, that it has started.
    pub command: Option<Vec<String>>,
    /// Between two tries.
    pub interval: Duration,
    /// How long it may take until it does.
    pub timeout: Duration,
}

impl Default for Health {
    fn default() -> Self {
        Self { command: None, interval: Duration::from_millis(200), timeout: Duration::from_secs(60) }
    }
}

/// Why a group file cannot be used.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ServicesError {
    #[error("there is no group file here: none of {} in {}", NAMES.join(", "), .folder.display())]
    NoFile { folder: PathBuf },
    #[error("cannot read {}: {why}", .path.display())]
    Read { path: PathBuf, why: String },
    #[error("{}: {why}", .path.display())]
    Invalid { path: PathBuf, why: String, hint: String },
    #[error("{}: service {service} mounts {}, which is outside the file's folder", .path.display(), .mount.display())]
    Outside { path: PathBuf, service: String, mount: PathBuf },
    #[error("{0}")]
    Trust(#[from] crate::trust::TrustError),
}

impl ServicesError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NoFile { .. } => "redoma up -f FILE".into(),
            Self::Read { path, .. } => format!("ls -l {}", shell::word(path)),
            Self::Invalid { hint, .. } => hint.clone(),
            Self::Outside { path, .. } => {
                format!("look at it, then say so: redoma up --trust -f {}", shell::word(path))
            }
            Self::Trust(error) => error.hint(),
        }
    }
}

/// What a parser has to tell: the group's name if the file has one, and the services in any order.
pub(super) struct Parsed {
    pub(super) name: Option<String>,
    pub(super) services: Vec<Service>,
}

/// An error of a parser: what is wrong, and what to write instead.
pub(super) struct Wrong {
    pub(super) why: String,
    pub(super) hint: String,
}

impl Wrong {
    pub(super) fn new(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { why: why.into(), hint: hint.into() }
    }
}

impl Group {
    /// The group file of a folder.
    ///
    /// # Errors
    /// [`ServicesError::NoFile`].
    pub fn find(folder: &Path) -> Result<PathBuf, ServicesError> {
        let there = NAMES.map(|name| folder.join(name)).into_iter().find(|path| path.is_file());
        there.ok_or_else(|| ServicesError::NoFile { folder: folder.to_owned() })
    }

    /// Reads a group file.
    ///
    /// # Errors
    /// [`ServicesError`].
    pub fn read(path: &Path) -> Result<Self, ServicesError> {
        let failed = |why: String| ServicesError::Read { path: path.to_owned(), why };
        let file = path.canonicalize().map_err(|error| failed(error.to_string()))?;
        let read = SmallFile::read(&file, MOST, Links::Refuse).map_err(|error| failed(error.to_string()))?;
        let bytes = read.ok_or_else(|| failed("it is gone".into()))?.bytes;
        let text = std::str::from_utf8(&bytes).map_err(|_| failed("it is no text".into()))?;
        Self::parse(&file, text)
    }

    /// Refuses mounts beyond the file's folder unless the user trusts this very content: a sandbox may have written it.
    ///
    /// # Errors
    /// [`ServicesError::Outside`].
    pub fn require_trust(&self, trusted: &Path) -> Result<(), ServicesError> {
        let Some((service, mount)) = self.outside() else { return Ok(()) };
        if TrustStore::load(trusted)?.trusts(&self.file, self.content.as_bytes()) {
            return Ok(());
        }
        Err(ServicesError::Outside { path: self.file.clone(), service, mount })
    }

    /// The user says that this content, as it was read, may mount what it does.
    ///
    /// # Errors
    /// [`ServicesError::Trust`].
    pub fn trust(&self, trusted: &Path) -> Result<(), ServicesError> {
        TrustStore::trust(trusted, &self.file, self.content.as_bytes())?;
        Ok(())
    }

    fn parse(file: &Path, text: &str) -> Result<Self, ServicesError> {
        let invalid = |Wrong { why, hint }| ServicesError::Invalid { path: file.to_owned(), why, hint };
        let folder = file.parent().unwrap_or(Path::new("/"));
        let Parsed { name, services } = match file.extension().and_then(|end| end.to_str()) {
            Some("json") => peapod::parse(text, folder),
            _ => native::parse(text, folder),
        }
        .map_err(invalid)?;
        let of_folder = || folder.file_name().map(|name| plain(&name.to_string_lossy()));
        let name = name.or_else(of_folder).unwrap_or_else(|| "group".into());
        let name = name.parse::<Name>();
        let name = name.map_err(|error| invalid(Wrong::new(error.to_string(), "name = \"my-group\"")))?;
        check(&name, &services).map_err(invalid)?;
        let services = in_order(services).map_err(invalid)?;
        Ok(Self { name, file: file.to_owned(), services, content: text.to_owned() })
    }

    fn outside(&self) -> Option<(String, PathBuf)> {
        let folder = self.file.parent()?;
        let all = self.services.iter().flat_map(|service| {
            service.mounts.iter().map(move |mount| (service.name.clone(), mount.from.clone()))
        });
        all.into_iter().find(|(_, from)| !from.starts_with(folder))
    }
}

fn check(group: &Name, services: &[Service]) -> Result<(), Wrong> {
    if services.is_empty() {
        return Err(Wrong::new("it has no services", "[service.web]"));
    }
    for (at, service) in services.iter().enumerate() {
        let name = &service.name;
        if format!("{group}-{name}").parse::<Name>().is_err() || name.parse::<Name>().is_err() {
            return Err(Wrong::new(format!("{name:?} is no name for a service"), "[service.web]"));
        }
        if services[..at].iter().any(|other| other.name.eq_ignore_ascii_case(name)) {
            return Err(Wrong::new(format!("there are two services {name}"), "give one another name"));
        }
        if service.image.is_some() == service.template.is_some() {
            return Err(Wrong::new(
                format!("service {name} needs an image or a template"),
                "image = \"debian:12\"",
            ));
        }
        let taken = |port: &Publish| {
            let others = services[..at].iter().flat_map(|other| other.ports.iter());
            others.into_iter().any(|other| other.outside == port.outside)
        };
        if let Some(port) = service.ports.iter().find(|port| taken(port)) {
            let why =
                format!("port {} of this machine would lead to {name} and to another service", port.outside);
            return Err(Wrong::new(why, "publish one of them on another port"));
        }
    }
    Ok(())
}

/// Each service after those that it depends on, otherwise as they were written.
fn in_order(services: Vec<Service>) -> Result<Vec<Service>, Wrong> {
    let mut waiting = services;
    let mut ordered: Vec<Service> = Vec::with_capacity(waiting.len());
    while !waiting.is_empty() {
        let known = |name: &String| ordered.iter().any(|done| done.name == *name);
        match waiting.iter().position(|service| service.depends_on.iter().all(known)) {
            Some(at) => ordered.push(waiting.remove(at)),
            None => return Err(stuck(&waiting, &ordered)),
        }
    }
    Ok(ordered)
}

fn stuck(waiting: &[Service], ordered: &[Service]) -> Wrong {
    let exists = |name: &String| waiting.iter().chain(ordered).any(|service| service.name == *name);
    for service in waiting {
        if let Some(missing) = service.depends_on.iter().find(|name| !exists(name)) {
            let why = format!("service {} depends on {missing}, which there is not", service.name);
            return Wrong::new(why, "depends_on = []");
        }
    }
    // Each of these waits for another: following them comes round.
    let mut round = vec![waiting[0].name.clone()];
    while let Some(service) = waiting.iter().find(|service| Some(&service.name) == round.last()) {
        let is_waiting = |name: &&String| waiting.iter().any(|other| other.name == **name);
        let Some(next) = service.depends_on.iter().find(is_waiting) else { break };
        let again = round.iter().position(|name| name == next);
        round.push(next.clone());
        if let Some(at) = again {
            round.drain(..at);
            break;
        }
    }
    Wrong::new(format!("services depend on each other in a circle: {}", round.join(" → ")), "depends_on = []")
}

// === what all three formats write alike ===

/// `HOST:INSIDE` or one port for both; on loopback, whatever is written in front.
pub(super) fn port(text: &str) -> Result<Publish, Wrong> {
    let wrong = || Wrong::new(format!("{text:?} is no port to publish"), "\"8000:8000\"");
    let text_of_ports = match text.rsplitn(3, ':').collect::<Vec<_>>().as_slice() {
        [inside, outside, address] => {
            if !matches!(*address, "127.0.0.1" | "localhost" | "[::1]") {
                let why = format!("{text:?} publishes on {address}; ports are published on loopback only");
                return Err(Wrong::new(why, format!("\"{outside}:{inside}\"")));
            }
            format!("{outside}:{inside}")
        }
        _ => text.to_owned(),
    };
    text_of_ports.strip_suffix("/tcp").unwrap_or(&text_of_ports).parse().map_err(|_| wrong())
}

/// `HOST:INSIDE[:ro|:rw|:overlay]`, the host's relative to the file's folder.
pub(super) fn mount(text: &str, folder: &Path) -> Result<Mount, Wrong> {
    let wrong = |why: &str| Wrong::new(format!("mount {text:?}: {why}"), "\"./data:/data:ro\"");
    let (paths, kind) = match text.rsplit_once(':') {
        Some((paths, kind @ ("ro" | "rw" | "overlay"))) => (paths, kind),
        _ => (text, "rw"),
    };
    let (from, to) = paths.split_once(':').ok_or_else(|| wrong("it does not say where inside"))?;
    if from.is_empty() || from.starts_with('~') {
        return Err(wrong("it has to begin with a path of this machine: absolute, or relative to the file"));
    }
    let from = folder.join(from);
    let from = from.canonicalize().map_err(|error| wrong(&format!("{}: {error}", from.display())))?;
    let to = PathBuf::from(to);
    let plain = to.is_absolute() && to.components().all(|part| !matches!(part, Component::ParentDir));
    if !plain {
        return Err(wrong("its place inside has to be absolute"));
    }
    Ok(Mount { from, to, writable: kind != "ro", overlay: kind == "overlay" })
}

/// What of a folder's name can be a group's.
fn plain(name: &str) -> String {
    let plain: String =
        name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).take(40).collect();
    let plain = plain.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
    if plain.is_empty() { "group".to_owned() } else { plain.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, text: &str) -> Result<Group, ServicesError> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("data")).unwrap();
        std::fs::write(folder.path().join(name), text).unwrap();
        Group::read(&folder.path().join(name))
    }

    fn refused(name: &str, text: &str) -> String {
        group(name, text).unwrap_err().to_string()
    }

    const PEAPOD: &str = r#"{"name": "shop", "services": {
        "web": {"image": "python:3", "ports": ["8000:80"], "mounts": ["data:/data"], "env": {"A": "1"}, "workdir": "/data"},
        "db": {"image": "postgres:15", "network": "none"}}}"#;

    #[test]
    fn a_peapod_file_is_read_as_it_is() {
        let group = group("peapod.json", PEAPOD).unwrap();
        assert_eq!(group.name.as_str(), "shop");
        let web = group.services.iter().find(|service| service.name == "web").unwrap();
        assert_eq!(web.rules.net, Some(redoma_policy::NetworkDefault::Allow));
        assert_eq!(web.ports[0].to_string(), "8000:80");
        assert_eq!(web.mounts[0].to, Path::new("/data"));
        let db = group.services.iter().find(|service| service.name == "db").unwrap();
        assert_eq!(db.rules.net, Some(redoma_policy::NetworkDefault::None));
    }

    #[test]
    fn what_would_be_passed_over_is_refused_by_name() {
        let unknown = r#"{"name": "x", "services": {"a": {"image": "b", "privileged": true}}}"#;
        assert!(refused("peapod.json", unknown).contains("privileged"));
        let open = r#"{"services": {"a": {"image": "b", "ports": ["0.0.0.0:80:80"]}}}"#;
        assert!(refused("peapod.json", open).contains("loopback only"));
        let network = r#"{"services": {"a": {"image": "b", "network": "host"}}}"#;
        assert!(refused("peapod.json", network).contains("host"));
        assert!(
            refused("redoma-services.toml", "[service.a]\nimage = \"b\"\nprivileged = true\n")
                .contains("privileged")
        );
    }

    #[test]
    fn services_come_after_what_they_depend_on_and_circles_are_shown() {
        let toml = "[service.web]\nimage = \"w\"\ndepends_on = [\"db\"]\n[service.db]\nimage = \"d\"\n";
        let names: Vec<_> =
            group("redoma-services.toml", toml).unwrap().services.into_iter().map(|s| s.name).collect();
        assert_eq!(names, ["db", "web"]);
        let circle = "[service.a]\nimage = \"x\"\ndepends_on = [\"b\"]\n[service.b]\nimage = \"x\"\ndepends_on = [\"a\"]\n";
        assert!(refused("redoma-services.toml", circle).contains("a → b → a"));
        let missing = "[service.a]\nimage = \"x\"\ndepends_on = [\"b\"]\n";
        assert!(refused("redoma-services.toml", missing).contains("which there is not"));
    }

    #[test]
    fn mounts_outside_the_folder_wait_for_trust_of_this_content() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let text = format!(
            r#"{{"services": {{"a": {{"image": "b", "mounts": ["{}:/x"]}}}}}}"#,
            outside.path().display()
        );
        let (file, trust) = (folder.path().join("peapod.json"), folder.path().join("trust.json"));
        std::fs::write(&file, &text).unwrap();
        let trusted = || Group::read(&file).unwrap().require_trust(&trust);
        assert!(matches!(trusted(), Err(ServicesError::Outside { .. })));
        Group::read(&file).unwrap().trust(&trust).unwrap();
        assert!(trusted().is_ok());
        std::fs::write(&file, text.replace("/x", "/y")).unwrap();
        assert!(matches!(trusted(), Err(ServicesError::Outside { .. })));
        // A link out of the folder is outside, whatever it is called.
        std::os::unix::fs::symlink(outside.path(), folder.path().join("link")).unwrap();
        std::fs::write(&file, r#"{"services": {"a": {"image": "b", "mounts": ["link:/x"]}}}"#).unwrap();
        assert!(matches!(trusted(), Err(ServicesError::Outside { .. })));
    }
}
