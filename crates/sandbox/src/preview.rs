//! One set of sandboxes per branch of a repository.
//!
//! Which branch a sandbox belongs to is what its labels say; names are only for people. A preview of a branch that is gone is
//! found by its labels like every other. Nothing here runs git: what lies in a repository may have been written by a sandbox.

mod branch;
mod naming;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, TcpListener};
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::driver::{Driver, DriverError, ImageName, Info, Label, Mount, Name, Spec};
use crate::project::Project;
use crate::services::{Beginning, Group, Loaded, Plan, Ready, Service, ServicesError, load};
use crate::settings::Settings;

pub use branch::{Branch, BranchError, Checkout};
pub use naming::name;

/// Where the tree is seen where the services file says nothing of it.
pub const TREE: &str = "/workspace";
/// What the only sandbox is called where there is no services file.
const SHELL: &str = "box";

/// Why there is no preview.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PreviewError {
    #[error(transparent)]
    Branch(#[from] BranchError),
    #[error(transparent)]
    Services(#[from] ServicesError),
    #[error("there is no free port: {0}")]
    NoPort(std::io::Error),
    #[error("there is no preview of {0:?}")]
    NoPreview(String),
}

impl From<DriverError> for PreviewError {
    fn from(error: DriverError) -> Self {
        Self::Services(error.into())
    }
}

impl PreviewError {
    /// What the user can do, as one command or change that works.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Branch(error) => error.hint(),
            Self::Services(error) => error.hint(),
            Self::NoPort(_) => "redoma preview ls".into(),
            Self::NoPreview(_) => "redoma preview ls".into(),
        }
    }
}

/// A preview, as its sandboxes' labels tell it.
#[derive(Clone, Debug, Serialize)]
pub struct Preview {
    /// What it is called.
    pub name: String,
    /// The repository's folder.
    pub repository: String,
    /// The branch, or the beginning of a commit's id after `detached:`.
    pub branch: String,
    /// Its sandboxes.
    pub sandboxes: Vec<Info>,
}

/// Every preview of a driver, of one repository or of all.
///
/// # Errors
/// [`DriverError`].
pub fn previews(driver: &dyn Driver, repository: Option<&Path>) -> Result<Vec<Preview>, DriverError> {
    let mut all: BTreeMap<(String, String), Preview> = BTreeMap::new();
    for info in driver.list()? {
        let label = |label| info.spec.labels.get(&label).cloned();
        let (Some(of), Some(branch)) = (label(Label::Repository), label(Label::Branch)) else { continue };
        if repository.is_some_and(|wanted| wanted.to_string_lossy() != of) {
            continue;
        }
        let name = label(Label::Group).unwrap_or_else(|| info.spec.name.to_string());
        let preview = all.entry((of.clone(), branch.clone()));
        let empty = || Preview { name, repository: of, branch, sandboxes: Vec::new() };
        preview.or_insert_with(empty).sandboxes.push(info);
    }
    Ok(all.into_values().collect())
}

/// With what a preview is made.
pub struct Wanted<'w> {
    /// The branch and its tree.
    pub checkout: &'w Checkout,
    /// The machine and the user.
    pub settings: &'w Settings,
    /// Variables that the services file may use.
    pub vars: &'w dyn Fn(&str) -> Option<String>,
    /// Whether what services do to the tree happens to it; otherwise it is kept aside.
    pub direct: bool,
    /// Seconds since 1970.
    pub now: i64,
}

impl Wanted<'_> {
    /// What the preview comes to. Ports of this machine are those that it has already, or else free ones.
    ///
    /// # Errors
    /// [`PreviewError`].
    pub fn plan(&self, driver: &dyn Driver) -> Result<Plan, PreviewError> {
        let there = previews(driver, Some(&self.checkout.repository))?;
        let there = there.into_iter().find(|preview| preview.branch == self.checkout.branch.to_string());
        let mut loaded = self.loaded()?;
        loaded.group.name = match &there {
            Some(preview) => {
                preview.name.parse().map_err(|_| PreviewError::NoPreview(preview.name.clone()))?
            }
            None => self.free_name(driver)?,
        };
        let labels = BTreeMap::from([
            (Label::Repository, self.checkout.repository.to_string_lossy().into_owned()),
            (Label::Branch, self.checkout.branch.to_string()),
        ]);
        let ready = Ready { loaded: &loaded, settings: self.settings, now: self.now, labels };
        let mut plan = ready.plan()?;
        self.show_tree(&mut plan);
        let known: Vec<Info> = there.into_iter().flat_map(|preview| preview.sandboxes).collect();
        self.place_ports(&mut plan, &known)?;
        Ok(plan)
    }

    /// The services file, or one sandbox in which nothing is started.
    fn loaded(&self) -> Result<Loaded, PreviewError> {
        let tree = &self.checkout.tree;
        match load(None, tree, self.settings, self.vars) {
            Err(ServicesError::NoFile { .. }) => {
                let service = Service::new(Beginning::Image(ImageName::Host));
                let name =
                    |text: &str| text.parse::<Name>().map_err(|_| PreviewError::NoPreview(text.to_owned()));
                let services = BTreeMap::from([(name(SHELL)?, service)]);
                let group = Group { name: name(SHELL)?, services, notes: Vec::new() };
                Ok(Loaded::of(tree.join("redoma-services.toml"), group))
            }
            loaded => Ok(loaded?),
        }
    }

    fn free_name(&self, driver: &dyn Driver) -> Result<Name, PreviewError> {
        let all = driver.list()?;
        let groups: BTreeSet<&str> = all
            .iter()
            .flat_map(|info| {
                [Some(info.spec.name.as_str()), info.spec.labels.get(&Label::Group).map(String::as_str)]
            })
            .flatten()
            .collect();
        let taken = |name: &Name| groups.contains(name.as_str());
        let (repository, branch) = (&self.checkout.repository, &self.checkout.branch);
        let short = name(repository, branch, false);
        Ok(if taken(&short) { name(repository, branch, true) } else { short })
    }

    /// What of the tree is mounted has its changes kept aside; where nothing of it is, all of it is seen by every service.
    fn show_tree(&self, plan: &mut Plan) {
        let tree = &self.checkout.tree;
        let mounts = plan.services.iter_mut().flat_map(|planned| &mut planned.spec.mounts);
        let mut shown = false;
        for mount in mounts.filter(|mount| mount.from.starts_with(tree)) {
            mount.overlay |= mount.writable && !self.direct;
            shown = true;
        }
        if shown {
            return;
        }
        for planned in &mut plan.services {
            let (from, to) = (tree.clone(), PathBuf::from(TREE));
            planned.spec.mounts.push(Mount { from, to, writable: true, overlay: !self.direct });
        }
    }

    /// Branches run beside each other, so each has ports of its own.
    fn place_ports(&self, plan: &mut Plan, known: &[Info]) -> Result<(), PreviewError> {
        let mut free = Free::default();
        for planned in &mut plan.services {
            let Spec { name, publish, .. } = &mut planned.spec;
            let old = known.iter().find(|info| info.spec.name == *name);
            for port in publish {
                let same =
                    old.and_then(|info| info.spec.publish.iter().find(|old| old.inside == port.inside));
                port.outside = match same {
                    Some(old) => old.outside,
                    None => free.port().map_err(PreviewError::NoPort)?,
                };
            }
        }
        Ok(())
    }
}

/// Free ports of loopback. All are held until all are found, so that none is found twice.
#[derive(Default)]
struct Free(Vec<TcpListener>);

impl Free {
    fn port(&mut self) -> std::io::Result<NonZeroU16> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = NonZeroU16::new(listener.local_addr()?.port());
        self.0.push(listener);
        port.ok_or(std::io::ErrorKind::AddrNotAvailable.into())
    }
}

/// The preview that is meant: by its branch, by its name, or that of the branch that is checked out.
///
/// # Errors
/// [`PreviewError::NoPreview`].
pub fn find(driver: &dyn Driver, project: &Project, named: Option<&str>) -> Result<Preview, PreviewError> {
    let named = match named {
        Some(named) => named.to_owned(),
        None => Checkout::of(project)?.branch.to_string(),
    };
    let here = branch::repository(project).ok();
    let mut all = previews(driver, None)?;
    let of_here =
        |preview: &Preview| here.as_ref().is_some_and(|here| here.to_string_lossy() == preview.repository);
    let found = all.iter().position(|preview| of_here(preview) && preview.branch == named);
    let found = found.or_else(|| all.iter().position(|preview| preview.name == named));
    found.map(|at| all.swap_remove(at)).ok_or(PreviewError::NoPreview(named))
}

/// Removes a preview: all its sandboxes, last first.
///
/// # Errors
/// The first [`DriverError`], when all were tried.
pub fn remove(driver: &dyn Driver, preview: &Preview) -> Result<(), DriverError> {
    let gone = preview.sandboxes.iter().rev().map(|info| driver.destroy(&info.spec.id));
    gone.fold(Ok(()), Result::and)
}

#[cfg(test)]
mod tests;
