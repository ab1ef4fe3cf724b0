//! What has been there for too long, and what nobody has used for a while.

use std::time::Duration;

use serde::Serialize;

use crate::driver::{Driver, DriverError, Info, Label, Name, SandboxId, State};

/// A sandbox that is to go, or to stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Due {
    /// Which.
    pub id: SandboxId,
    /// Its name.
    pub name: Name,
    /// Why it, in words.
    pub why: String,
}

/// The sandboxes whose own time is over, and with `max_age` those that are older. `now` is in seconds since 1970.
#[must_use]
pub fn overdue(all: &[Info], max_age: Option<Duration>, now: i64) -> Vec<Due> {
    let why = |info: &Info| {
        let age = since(info.spec.created, now);
        let own = info.spec.amounts.time.filter(|time| age > time.0);
        let own = own.map(|_| "its time is over".to_owned());
        own.or_else(|| max_age.filter(|max| age > *max).map(|_| format!("it is {} s old", age.as_secs())))
    };
    due(all, why)
}

/// The sandboxes that run and in which no command began or ended for `max_idle`.
///
/// What serves others is used without any command: services, and what has a published port, are left out unless `serving`.
#[must_use]
pub fn idle(all: &[Info], max_idle: Duration, serving: bool, now: i64) -> Vec<Due> {
    let serves =
        |info: &Info| info.spec.labels.contains_key(&Label::Service) || !info.spec.publish.is_empty();
    let why = |info: &Info| {
        let idle = since(info.used, now);
        let is_due = info.state == State::Running && idle > max_idle && (serving || !serves(info));
        is_due.then(|| format!("it was not used for {} s", idle.as_secs()))
    };
    due(all, why)
}

fn due(all: &[Info], why: impl Fn(&Info) -> Option<String>) -> Vec<Due> {
    let due = |info: &Info| Some(Due { id: info.spec.id, name: info.spec.name.clone(), why: why(info)? });
    all.iter().filter_map(due).collect()
}

/// A clock that was set back makes nothing old.
fn since(then: i64, now: i64) -> Duration {
    Duration::from_secs(u64::try_from(now.saturating_sub(then)).unwrap_or(0))
}

/// Removes them all; what cannot be removed does not keep the others.
///
/// # Errors
/// The first [`DriverError`], when all were tried.
pub fn reap(driver: &dyn Driver, due: &[Due]) -> Result<(), DriverError> {
    due.iter().map(|due| driver.destroy(&due.id)).fold(Ok(()), Result::and)
}

/// Pauses them all. One that ended meanwhile is as good.
///
/// # Errors
/// The first [`DriverError`], when all were tried; [`DriverError::Unsupported`] for a driver that cannot.
pub fn pause(driver: &dyn Driver, due: &[Due]) -> Result<(), DriverError> {
    let pausing = driver.pausing().ok_or_else(|| DriverError::Unsupported {
        driver: driver.name(),
        what: "pause a sandbox".into(),
        hint: "redoma sandbox ls".into(),
    })?;
    let paused = due.iter().map(|due| match pausing.pause(&due.id) {
        Err(DriverError::NotRunning(_) | DriverError::NoSandbox(_)) => Ok(()),
        other => other,
    });
    paused.fold(Ok(()), Result::and)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use redoma_policy::TimeSpan;

    use super::*;
    use crate::attach;
    use crate::driver::{Amounts, Command, ImageName, Mock, Owner, Rules, Spec, User};
    use std::os::fd::AsFd;

    fn made(mock: &Mock, name: &str, created: i64, change: impl FnOnce(&mut Spec)) -> Info {
        let mut spec = Spec {
            id: SandboxId::random().unwrap(),
            name: name.parse().unwrap(),
            owner: Owner::default(),
            image: ImageName::Host,
            template: None,
            rules: Rules::default(),
            publish: Vec::new(),
            mounts: Vec::new(),
            env: Vec::new(),
            workdir: None,
            user: User::Root,
            amounts: Amounts::default(),
            labels: BTreeMap::new(),
            peers: BTreeMap::new(),
            created,
        };
        change(&mut spec);
        mock.create(&spec).unwrap()
    }

    fn names(due: &[Due]) -> Vec<&str> {
        due.iter().map(|due| due.name.as_str()).collect()
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn what_is_old_goes_and_what_is_not_stays() {
        let mock = Mock::new();
        made(&mock, "old", 0, |_| {});
        made(&mock, "young", 9000, |_| {});
        made(&mock, "short", 9000, |spec| spec.amounts.time = Some(TimeSpan(Duration::from_secs(10))));
        made(&mock, "future", 99_000, |_| {});
        let all = mock.list().unwrap();
        assert_eq!(names(&overdue(&all, None, 10_000)), ["short"]);
        let due = overdue(&all, Some(HOUR), 10_000);
        assert_eq!(names(&due), ["old", "short"]);
        reap(&mock, &due).unwrap();
        reap(&mock, &due).unwrap();
        assert_eq!(mock.list().unwrap().len(), 2);
    }

    #[test]
    fn only_what_runs_unused_and_serves_nobody_is_paused() {
        let mock = Mock::new();
        let idle_one = made(&mock, "idle", 0, |_| {});
        let web = made(&mock, "web", 0, |spec| spec.publish = vec!["8000".parse().unwrap()]);
        made(&mock, "stopped", 0, |_| {});
        let null = attach::nowhere().unwrap();
        let command =
            Command { argv: vec!["sleep".into(), "1000".into()], detached: true, ..Command::default() };
        for info in [&idle_one, &web] {
            drop(mock.exec(&info.spec.id, &command, &attach::on([null.as_fd(); 3])).unwrap());
        }
        let all = mock.list().unwrap();
        let later = all.iter().map(|info| info.used).max().unwrap() + 7200;
        assert!(idle(&all, HOUR, false, later - 7000).is_empty());
        assert_eq!(names(&idle(&all, HOUR, true, later)).len(), 2);
        let due = idle(&all, HOUR, false, later);
        assert_eq!(names(&due), ["idle"]);
        pause(&mock, &due).unwrap();
        assert_eq!(mock.info(&idle_one.spec.id).unwrap().state, State::Paused);
        assert_eq!(mock.info(&web.spec.id).unwrap().state, State::Running);
    }
}
