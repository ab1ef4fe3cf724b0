//! What a group comes to on this machine: its sandboxes, to the last detail.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use redoma_policy::CommandLine;

use super::error::ServicesError;
use super::load::Loaded;
use super::model::{Beginning, Bind, Group, Service};
use super::order::order;
use crate::driver::{ImageName, Label, Mount, Name, Owner, Rules, SandboxId, Spec};
use crate::presets;
use crate::settings::Settings;
use crate::templates;

/// The sandboxes of a group, in the order in which they start.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the group is called.
    pub group: Name,
    /// The file that describes it, as labels say it.
    pub file: String,
    /// Each service.
    pub services: Vec<Planned>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// One service, ready to be made.
#[derive(Clone, Debug)]
pub struct Planned {
    /// What the others call it.
    pub name: Name,
    /// What it is, with its template's part.
    pub service: Service,
    /// The sandbox, under an id of its own.
    pub spec: Spec,
}

/// With what a plan is made.
pub struct Ready<'r> {
    /// The file, and what it may show.
    pub loaded: &'r Loaded,
    /// The machine and the user.
    pub settings: &'r Settings,
    /// Seconds since 1970.
    pub now: i64,
    /// What else sandboxes are sorted by.
    pub labels: BTreeMap<Label, String>,
}

impl Ready<'_> {
    /// Makes the plan. Nothing has happened yet.
    ///
    /// # Errors
    /// [`ServicesError`], such as for a mount that the user has to trust first.
    pub fn plan(&self) -> Result<Plan, ServicesError> {
        let group = &self.loaded.group;
        self.check_trust()?;
        let mut notes = group.notes.clone();
        let services = order(group)?.into_iter().map(|name| self.planned(name, &mut notes));
        let services = services.collect::<Result<Vec<_>, ServicesError>>()?;
        Ok(Plan { group: group.name.clone(), file: self.loaded.place(), services, notes })
    }

    fn planned(&self, name: Name, notes: &mut Vec<String>) -> Result<Planned, ServicesError> {
        let said = &self.loaded.group.services[&name];
        let (service, image, template) = match &said.begins {
            Beginning::Image(image) => (said.clone(), image.clone(), None),
            Beginning::Template(name) => {
                let template = templates::named(name.as_str())?;
                (template.fill(said), template.image.clone(), Some(name.clone()))
            }
        };
        let rules = self.allowed(said, &service, notes)?;
        let spec = Spec { image, template, ..self.spec(&name, &service, rules)? };
        Ok(Planned { name, service, spec })
    }

    fn spec(
        &self,
        name: &Name,
        service: &Service,
        (allow, mut env): (Vec<String>, BTreeMap<String, String>),
    ) -> Result<Spec, ServicesError> {
        let group = &self.loaded.group;
        env.extend(service.env.clone());
        let mut labels = self.labels.clone();
        labels.insert(Label::Group, group.name.to_string());
        labels.insert(Label::Service, name.to_string());
        labels.insert(Label::File, self.loaded.place());
        labels.insert(Label::Definition, definition(service));
        let mounts = service.mounts.iter().map(|bind| self.mount(name, bind));
        Ok(Spec {
            id: SandboxId::random()?,
            name: sandbox_name(&group.name, name)?,
            owner: Owner::default(),
            image: ImageName::Host,
            template: None,
            rules: Rules { net: service.net, allow, policy: None },
            publish: service.ports.clone(),
            mounts: mounts.collect::<Result<_, _>>()?,
            env: env.into_iter().collect(),
            workdir: service.workdir.clone(),
            user: service.user,
            amounts: service.amounts.clone(),
            labels,
            peers: peers(group, name)?,
            created: self.now,
        })
    }

    /// Hosts, with presets resolved, and the variables that go with those. What only the template wants and this machine
    /// cannot say is left out.
    fn allowed(
        &self,
        said: &Service,
        service: &Service,
        notes: &mut Vec<String>,
    ) -> Result<(Vec<String>, BTreeMap<String, String>), ServicesError> {
        let (mut hosts, mut env) = (Vec::new(), BTreeMap::new());
        for wanted in &service.allow {
            let typed = CommandLine { allow: vec![wanted.clone()], ..CommandLine::default() };
            let expanded = match presets::expand(&typed, &self.settings.outside()) {
                Ok(expanded) => expanded,
                Err(error) if !said.allow.contains(wanted) => {
                    notes.push(format!("{wanted} is not allowed: {error}"));
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            hosts.extend(expanded.allow);
            for preset in expanded.presets {
                let all = preset.endpoints.iter();
                hosts.extend(
                    all.flat_map(|one| one.ports.iter().map(move |port| format!("{}:{port}", one.host))),
                );
                env.extend(preset.variables);
            }
        }
        let mut seen = BTreeSet::new();
        hosts.retain(|host| seen.insert(host.clone()));
        Ok((hosts, env))
    }

    fn mount(&self, service: &Name, bind: &Bind) -> Result<Mount, ServicesError> {
        let folder = self.loaded.path.parent().unwrap_or(Path::new("/"));
        let from = self.settings.expand(&bind.from, folder);
        let from = from.canonicalize().map_err(|error| ServicesError::Mount {
            service: service.clone(),
            from: from.display().to_string(),
            why: error.to_string(),
        })?;
        Ok(Mount { from, to: bind.to.clone(), writable: bind.writable, overlay: bind.overlay })
    }

    /// Refuses everything at once that an untrusted file may not show.
    fn check_trust(&self) -> Result<(), ServicesError> {
        if self.loaded.trusted {
            return Ok(());
        }
        let is_own = |path: &Path| self.loaded.own.as_ref().is_some_and(|own| path.starts_with(own));
        let mut places = BTreeSet::new();
        for (name, service) in &self.loaded.group.services {
            for bind in &service.mounts {
                let mount = self.mount(name, bind)?;
                if !is_own(&mount.from) {
                    places.insert(mount.from);
                }
            }
            if let Beginning::Image(ImageName::Folder(root)) = &service.begins
                && !is_own(&root.canonicalize().unwrap_or_else(|_| root.clone()))
            {
                places.insert(root.clone());
            }
        }
        if places.is_empty() {
            return Ok(());
        }
        let places = places.iter().map(|place| place.display().to_string()).collect();
        Err(ServicesError::Untrusted { path: self.loaded.path.clone(), places })
    }
}

/// What the sandbox of a service is called.
pub(super) fn sandbox_name(group: &Name, service: &Name) -> Result<Name, ServicesError> {
    let what = format!("{group}-{service}");
    what.parse()
        .map_err(|error: crate::driver::InvalidName| ServicesError::Name { what, why: error.to_string() })
}

/// Every other service of the group.
fn peers(group: &Group, name: &Name) -> Result<BTreeMap<Name, Name>, ServicesError> {
    let others = group.services.keys().filter(|other| *other != name);
    others.map(|other| Ok((other.clone(), sandbox_name(&group.name, other)?))).collect()
}

/// What tells one description of a service from another.
fn definition(service: &Service) -> String {
    let text = serde_json::to_vec(service).unwrap_or_default();
    blake3::hash(&text).to_hex()[..16].to_owned()
}
