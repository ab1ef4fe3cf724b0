//! `redoma up`: from a plan to services that work.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use redoma_policy::Publish;

use super::down;
use super::error::ServicesError;
use super::health::works;
use super::logs::last_lines;
use super::model::{Condition, Health, Probe};
use super::plan::{Plan, Planned};
use super::started::Started;
use crate::driver::{Driver, Info, Label, Name, Restart, Spec};

/// Brings a group about. Doing it twice is doing it once: what is there as it should be is left alone. Whatever ends it
/// halfway, what was made carries the group's label, and `down` removes it.
pub struct Up<'u> {
    /// Where.
    pub driver: &'u dyn Driver,
    /// What.
    pub plan: &'u Plan,
    /// Whether sandboxes that are not as planned are made anew; else they are an error.
    pub recreate: bool,
    /// Told how far it is.
    pub tell: &'u mut dyn FnMut(Step<'_>),
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step<'s> {
    /// The sandbox of a service was made.
    Created(&'s Name),
    /// What it is was started.
    Started(&'s Name),
    /// It runs already.
    Runs(&'s Name),
    /// Nothing is to be started in it.
    Idle(&'s Name),
    /// It is waited for.
    Waiting(&'s Name),
    /// It works.
    Works(&'s Name),
    /// It ended well.
    Ended(&'s Name),
    /// It is there, and answers on none of its ports yet; nothing said that it has to.
    Silent(&'s Name),
    /// It is there, and the file says nothing of it.
    Surplus(&'s str),
}

/// Between two tries, at most.
const GLANCE: Duration = Duration::from_millis(250);
/// For a service that says nothing of its health.
const COURTESY: u32 = 20;
/// How much of a failed service's log is told.
const LAST_LINES: usize = 10;

impl Up<'_> {
    /// Does it, and returns what runs then.
    ///
    /// # Errors
    /// [`ServicesError`]; of a service that does not work, with the end of its log.
    pub fn run(mut self) -> Result<Vec<Info>, ServicesError> {
        let there = self.there()?;
        self.check(&there)?;
        let infos = self.create(there)?;
        let mut started: BTreeMap<&Name, Started<'_>> = BTreeMap::new();
        for (planned, info) in self.plan.services.iter().zip(infos) {
            for (before, condition) in &planned.service.after {
                if let Some(before) = started.get_mut(before) {
                    self.wait(before, *condition)?;
                }
            }
            started.insert(&planned.name, self.start(planned, info)?);
        }
        for started in started.values_mut() {
            self.settle(started)?;
        }
        let ids = self.plan.services.iter().filter_map(|one| Some(started.get(&one.name)?.info.spec.id));
        ids.map(|id| Ok(self.driver.info(&id)?)).collect()
    }

    /// The sandboxes of the group that are there, by service.
    fn there(&mut self) -> Result<BTreeMap<String, Info>, ServicesError> {
        let (group, file) = (Some(self.plan.group.clone()), Some(self.plan.file.clone()));
        let all = down::services_of(self.driver, &down::Which { group, file })?;
        let label = |info: &Info| info.spec.labels.get(&Label::Service).cloned().unwrap_or_default();
        let there: BTreeMap<String, Info> = all.into_iter().map(|info| (label(&info), info)).collect();
        for name in there.keys() {
            if !self.plan.services.iter().any(|planned| planned.name.as_str() == name) {
                (self.tell)(Step::Surplus(name));
            }
        }
        Ok(there)
    }

    /// Refuses before anything is done.
    fn check(&self, there: &BTreeMap<String, Info>) -> Result<(), ServicesError> {
        let foreign = self.driver.list()?;
        for planned in &self.plan.services {
            let Some(info) = there.get(planned.name.as_str()) else {
                if foreign.iter().any(|info| info.spec.name == planned.spec.name) {
                    let (name, group) = (planned.spec.name.clone(), self.plan.group.clone());
                    return Err(ServicesError::Foreign { name, group });
                }
                continue;
            };
            let what = differences(&info.spec, &planned.spec);
            if !what.is_empty() && !self.recreate {
                return Err(ServicesError::Differs { service: planned.name.clone(), what });
            }
        }
        Ok(())
    }

    /// All sandboxes before anything is started in one: each is known by name to those that want it.
    fn create(&mut self, mut there: BTreeMap<String, Info>) -> Result<Vec<Info>, ServicesError> {
        let mut infos = Vec::new();
        for planned in &self.plan.services {
            let known = there.remove(planned.name.as_str());
            let info = match known {
                Some(info) if differences(&info.spec, &planned.spec).is_empty() => info,
                known => {
                    if let Some(old) = known {
                        self.driver.destroy(&old.spec.id)?;
                    }
                    let info = self.driver.create(&planned.spec)?;
                    (self.tell)(Step::Created(&planned.name));
                    info
                }
            };
            infos.push(info);
        }
        Ok(infos)
    }

    fn start<'p>(&mut self, planned: &'p Planned, info: Info) -> Result<Started<'p>, ServicesError> {
        let id = info.spec.id;
        let started = Started::start(self.driver, planned, info).map_err(|error| ServicesError::Failed {
            service: planned.name.clone(),
            sandbox: planned.spec.name.clone(),
            why: format!("could not be started: {error}"),
            log: last_lines(self.driver, &id, LAST_LINES),
        })?;
        (self.tell)(match (started.has_command, started.was_running) {
            (false, _) => Step::Idle(&planned.name),
            (true, true) => Step::Runs(&planned.name),
            (true, false) => Step::Started(&planned.name),
        });
        Ok(started)
    }

    /// Waits for what somebody wants of a service.
    fn wait(&mut self, started: &mut Started<'_>, condition: Condition) -> Result<(), ServicesError> {
        match (condition, started.planned.service.health.clone()) {
            (Condition::Completed, _) => self.completed(started),
            (Condition::Healthy, Some(health)) => self.healthy(started, &health),
            (Condition::Healthy, None) => self.settle(started),
            (Condition::Started, _) => Ok(()),
        }
    }

    /// Waits as the service itself says, or else a little for its first port.
    fn settle(&mut self, started: &mut Started<'_>) -> Result<(), ServicesError> {
        if let Some(health) = started.planned.service.health.clone() {
            return self.healthy(started, &health);
        }
        if !started.has_command || started.was_running {
            return Ok(());
        }
        let Some(port) = started.planned.service.ports.first().map(|port: &Publish| port.inside.get()) else {
            started.pause(GLANCE);
            return self.still(started).map(drop);
        };
        let health = Health { retries: COURTESY, ..Health::new(Probe::Port(port)) };
        let name = &started.planned.name;
        if self.tried(started, &health)?.is_some() {
            (self.tell)(Step::Silent(name));
        }
        Ok(())
    }

    fn healthy(&mut self, started: &mut Started<'_>, health: &Health) -> Result<(), ServicesError> {
        match self.tried(started, health)? {
            None => Ok(()),
            Some(why) => {
                let span = health.patience().as_secs();
                Err(self.failed(started, format!("does not work after {span} s: {why}")))
            }
        }
    }

    /// Tries until it works or patience ends: why it did not, then.
    fn tried(&mut self, started: &mut Started<'_>, health: &Health) -> Result<Option<String>, ServicesError> {
        let deadline = Instant::now() + health.patience();
        let name = &started.planned.name;
        let mut waiting = false;
        loop {
            if !self.still(started)? {
                return Ok(None);
            }
            match works(self.driver, &started.info, health) {
                Ok(()) => {
                    (self.tell)(Step::Works(name));
                    return Ok(None);
                }
                Err(why) if Instant::now() >= deadline => return Ok(Some(why)),
                Err(_) if !waiting => (self.tell)(Step::Waiting(name)),
                Err(_) => {}
            }
            waiting = true;
            started.pause(health.interval.min(GLANCE));
        }
    }

    /// Whether it goes on. One that ended badly and is not started again has failed.
    fn still(&mut self, started: &Started<'_>) -> Result<bool, ServicesError> {
        match (started.ended, started.planned.service.restart) {
            (None, _) | (_, Restart::Always) => Ok(true),
            (Some(0), _) if started.planned.service.health.is_none() => {
                (self.tell)(Step::Ended(&started.planned.name));
                Ok(false)
            }
            (Some(code), Restart::OnFailure) if code != 0 => Ok(true),
            (Some(code), _) => Err(self.failed(started, format!("ended with {code}"))),
        }
    }

    fn completed(&mut self, started: &mut Started<'_>) -> Result<(), ServicesError> {
        (self.tell)(Step::Waiting(&started.planned.name));
        loop {
            match started.exit(self.driver) {
                Some(0) => return Ok(()),
                Some(code) => return Err(self.failed(started, format!("ended with {code}"))),
                None if !started.has_command => return Ok(()),
                None => started.pause(GLANCE),
            }
        }
    }

    fn failed(&self, started: &Started<'_>, why: String) -> ServicesError {
        let spec = &started.info.spec;
        ServicesError::Failed {
            service: started.planned.name.clone(),
            sandbox: spec.name.clone(),
            why,
            log: last_lines(self.driver, &spec.id, LAST_LINES),
        }
    }
}

/// In what a sandbox is not what it should be.
fn differences(is: &Spec, should: &Spec) -> Vec<String> {
    let told = [
        ("image", is.image != should.image),
        ("network", is.rules != should.rules),
        ("ports", is.publish != should.publish),
        ("mounts", is.mounts != should.mounts),
        ("env", is.env != should.env),
        ("workdir", is.workdir != should.workdir),
        ("user", is.user != should.user),
        ("limits", is.amounts != should.amounts),
        ("other services", is.peers != should.peers),
    ];
    let mut what: Vec<String> =
        told.into_iter().filter(|(_, differs)| *differs).map(|(what, _)| what.to_owned()).collect();
    if what.is_empty() && is.labels.get(&Label::Definition) != should.labels.get(&Label::Definition) {
        what.push("command, health or restart".to_owned());
    }
    what
}

#[cfg(test)]
mod tests;
