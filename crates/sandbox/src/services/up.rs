//! Bringing a group up and down.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::AsFd;
use std::time::SystemTime;

use super::file::{Group, Service};
use super::health::{self, Waited};
use crate::attach;
use crate::driver::{Command, Driver, DriverError, Info, Label, Name, Owner, SandboxId, Spec, State};

/// The log of a service's own command.
const LOG: &str = "service";

/// A service that is up or was.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Member {
    /// What the group calls it.
    pub service: String,
    /// Its sandbox.
    pub sandbox: Info,
}

/// What is told while a group comes up.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// It is there already, as the file says.
    Kept(&'a str),
    /// Its sandbox was made.
    Made(&'a str),
    /// It does its work.
    Healthy(&'a str),
}

/// What a group needs to come up.
pub struct Ups<'a> {
    /// What makes its sandboxes.
    pub driver: &'a dyn Driver,
    /// Adds to a service what its template says.
    pub template: &'a dyn Fn(&Service) -> Result<Service, DriverError>,
    /// Has an image here, fetched if it has to be.
    pub need: &'a dyn Fn(&crate::driver::ImageName) -> Result<(), DriverError>,
    /// Is told what happens.
    pub tell: &'a dyn Fn(Progress<'_>),
}

/// Brings every service up, each when those before it do their work. What is up already, as the file says, stays.
///
/// # Errors
/// [`DriverError`] with the service that does not come up, and the end of its log; what came up before stays up.
pub fn up(group: &Group, ups: &Ups<'_>) -> Result<Vec<Member>, DriverError> {
    let there = members(group, ups.driver)?;
    let mut up = Vec::new();
    for service in &group.services {
        let service = &(ups.template)(service)?;
        let known = there.iter().find(|member| member.service == service.name);
        let info = match known {
            Some(member) => kept(group, service, &member.sandbox)?,
            None => {
                if let Some(image) = &service.image {
                    (ups.need)(image)?;
                }
                let info = ups.driver.create(&spec(group, service)?)?;
                (ups.tell)(Progress::Made(&service.name));
                info
            }
        };
        if runs(ups.driver, &info)? {
            (ups.tell)(Progress::Kept(&service.name));
        } else {
            start(ups.driver, service, &info)?;
        }
        wait(ups.driver, service, &info)?;
        (ups.tell)(Progress::Healthy(&service.name));
        let sandbox = ups.driver.info(&info.spec.id)?;
        up.push(Member { service: service.name.clone(), sandbox });
    }
    Ok(up)
}

/// The members of a group that there are, oldest first.
///
/// # Errors
/// [`DriverError`].
pub fn members(group: &Group, driver: &dyn Driver) -> Result<Vec<Member>, DriverError> {
    let place = place(group);
    let of_group = |info: &Info| {
        let labels = &info.spec.labels;
        labels.get(&Label::Group).map(String::as_str) == Some(group.name.as_str())
            && labels.get(&Label::Repository) == Some(&place)
    };
    let all = driver.list()?.into_iter().filter(of_group);
    Ok(all
        .filter_map(|sandbox| {
            let service = sandbox.spec.labels.get(&Label::Service)?.clone();
            Some(Member { service, sandbox })
        })
        .collect())
}

/// Ends a group, the last that came up first; who was ended.
///
/// # Errors
/// The first [`DriverError`], when all were tried.
pub fn down(group: &Group, driver: &dyn Driver) -> Result<Vec<String>, DriverError> {
    let order = |member: &Member| group.services.iter().position(|service| service.name == member.service);
    let mut all = members(group, driver)?;
    // What the file does not know any more depends on nothing that it does.
    all.sort_by_key(|member| std::cmp::Reverse(order(member).unwrap_or(usize::MAX)));
    let mut first = Ok(());
    let mut ended = Vec::new();
    for member in all {
        match driver.destroy(&member.sandbox.spec.id) {
            Ok(()) => ended.push(member.service),
            Err(error) => first = first.and(Err(error)),
        }
    }
    first.map(|()| ended)
}

/// Two groups of one name in two folders are two groups.
fn place(group: &Group) -> String {
    group.file.parent().map(|folder| folder.display().to_string()).unwrap_or_default()
}

fn sandbox_name(group: &Group, service: &str) -> Result<Name, DriverError> {
    let invalid = |why: String| DriverError::Invalid {
        what: format!("the name of service {service}"),
        why,
        hint: "choose a shorter one".into(),
    };
    format!("{}-{service}", group.name)
        .parse()
        .map_err(|error: crate::driver::InvalidName| invalid(error.to_string()))
}

fn spec(group: &Group, service: &Service) -> Result<Spec, DriverError> {
    let mut peers = BTreeMap::new();
    for other in group.services.iter().filter(|other| other.name != service.name) {
        let called =
            other.name.parse().map_err(|error: crate::driver::InvalidName| DriverError::Invalid {
                what: format!("the name of service {}", other.name),
                why: error.to_string(),
                hint: "choose another one".into(),
            })?;
        peers.insert(called, sandbox_name(group, &other.name)?);
    }
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let image = service.image.clone().ok_or_else(|| DriverError::Invalid {
        what: format!("service {}", service.name),
        why: "its template says no image".into(),
        hint: "redoma templates".into(),
    })?;
    Ok(Spec {
        id: SandboxId::random().map_err(|error| DriverError::Start(error.into()))?,
        name: sandbox_name(group, &service.name)?,
        owner: Owner::default(),
        image,
        template: service.template.as_ref().and_then(|name| name.parse().ok()),
        rules: service.rules.clone(),
        publish: service.ports.clone(),
        mounts: service.mounts.clone(),
        env: service.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        workdir: service.workdir.clone(),
        user: service.user,
        amounts: service.amounts.clone(),
        labels: BTreeMap::from([
            (Label::Group, group.name.to_string()),
            (Label::Service, service.name.clone()),
            (Label::Repository, place(group)),
        ]),
        peers,
        created: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
    })
}

/// A sandbox that is there has to be what the file says now.
fn kept(group: &Group, service: &Service, info: &Info) -> Result<Info, DriverError> {
    let wanted = spec(group, service)?;
    let same =
        Spec { id: info.spec.id, created: info.spec.created, owner: info.spec.owner.clone(), ..wanted };
    if same == info.spec {
        return Ok(info.clone());
    }
    Err(DriverError::Invalid {
        what: format!("service {}", service.name),
        why: "it is up, but not as the file says now".into(),
        hint: "redoma down && redoma up".into(),
    })
}

/// Whether its own command runs; that its sandbox lives does not say so.
fn runs(driver: &dyn Driver, info: &Info) -> Result<bool, DriverError> {
    if driver.info(&info.spec.id)?.state == State::Stopped {
        return Ok(false);
    }
    Ok(health::last(driver, &info.spec.id)?.is_some_and(|last| last.exit.is_none()))
}

fn start(driver: &dyn Driver, service: &Service, info: &Info) -> Result<(), DriverError> {
    let entrypoint = service.entrypoint.as_ref().unwrap_or(&info.entrypoint);
    // An entrypoint of one's own makes the image's arguments meaningless, as everywhere.
    let image_cmd = if service.entrypoint.is_some() { &Vec::new() } else { &info.cmd };
    let cmd = service.command.as_ref().unwrap_or(image_cmd);
    let argv: Vec<OsString> = entrypoint.iter().chain(cmd).map(Into::into).collect();
    if argv.is_empty() {
        return Err(DriverError::Invalid {
            what: format!("service {}", service.name),
            why: "neither it nor its image says what to start".into(),
            hint: "command = [\"sleep\", \"infinity\"]".into(),
        });
    }
    let command = Command {
        argv,
        detached: true,
        restart: service.restart,
        log: LOG.parse().ok(),
        ..Command::default()
    };
    let null = attach::nowhere()?;
    driver.exec(&info.spec.id, &command, &attach::on([null.as_fd(); 3])).map(drop)
}

fn wait(driver: &dyn Driver, service: &Service, info: &Info) -> Result<(), DriverError> {
    let id = &info.spec.id;
    let why = match health::wait(driver, id, service)? {
        Waited::Healthy => return Ok(()),
        Waited::Ended(Some(code)) => format!("its command ended with code {code}"),
        Waited::Ended(None) => "its sandbox ended".to_owned(),
        Waited::TooLate => format!("it did not answer within {} s", service.health.timeout.as_secs()),
    };
    let said = last_lines(driver, id);
    let why = if said.is_empty() { why } else { format!("{why}; it said last:\n{said}") };
    Err(DriverError::Told {
        message: format!("service {} did not come up: {why}", service.name),
        hint: format!("redoma sandbox logs {}", info.spec.name),
        code: 1,
    })
}

fn last_lines(driver: &dyn Driver, id: &SandboxId) -> String {
    const LINES: usize = 5;
    const BYTES: u64 = 64 << 10;
    let Some(Ok(log)) = driver.logging().map(|logging| logging.logs(id, false)) else { return String::new() };
    let mut text = Vec::new();
    let _ = std::io::Read::read_to_end(&mut std::io::Read::take(log, BYTES), &mut text);
    let text = String::from_utf8_lossy(&text).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
