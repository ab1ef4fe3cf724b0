//! The driver itself: what is asked of it, in the engine's words.

use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use bollard::Docker;
use bollard::models::{ContainerCreateBody, ContainerSummary, ContainerSummaryStateEnum};
use bollard::query_parameters::{
    ListContainersOptionsBuilder, RemoveContainerOptionsBuilder, StartContainerOptions,
};
use redoma_sandbox::driver::{
    Checkpoints, Command, Driver, DriverError, DriverName, Files, Info, Logging, Pausing, Process, Restart,
    SandboxId, Snapshots, Spec, State, Statistics, Streams,
};
use redoma_sandbox::gatehouse;
use redoma_sandbox::homes::Homes;
use tokio::runtime::Runtime;

use crate::container::{self, Wanted};
use crate::engine::{Connection, Engine};
use crate::error::{engine, status, unsupported};
use crate::files::ContainerFiles;
use crate::images::Image;
use crate::labels::{self, Kind, Realm};
use crate::network::Network;
use crate::process::Remote;
use crate::tool::Tool;

/// What the driver has to know of this machine.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Where Redoma keeps its own things.
    pub homes: Homes,
    /// The program that is called inside: Redoma's own.
    pub program: PathBuf,
    /// Its arguments before those of [`crate::guest`].
    pub guest: Vec<String>,
    /// The command that does [`gatehouse::keep`](redoma_sandbox::gatehouse::keep): the keeper of a network.
    pub keeper: Vec<OsString>,
    /// Where the certificates for an engine behind TLS are.
    pub certificates: PathBuf,
}

/// Sandboxes that are containers. Clones share the connection.
#[derive(Clone)]
pub struct OciDriver(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) runtime: Runtime,
    pub(crate) connection: Connection,
    pub(crate) engine: Engine,
    pub(crate) realm: Realm,
    pub(crate) setup: Setup,
    pub(crate) is_podman: bool,
    tool: OnceLock<Tool>,
}

impl OciDriver {
    /// Connects to an engine.
    ///
    /// # Errors
    /// [`DriverError::Engine`] when it does not answer.
    pub fn connect(engine: &Engine, setup: Setup) -> Result<Self, DriverError> {
        let failed = |error: std::io::Error| engine.unreachable(&error.to_string());
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().map_err(failed)?;
        let _inside = runtime.enter();
        let mut connection = engine.connect(&setup.certificates)?;
        let asked = async {
            let docker = connection.docker.clone().negotiate_version().await?;
            let version = docker.version().await?;
            Ok::<_, bollard::errors::Error>((docker, version))
        };
        let (docker, version) =
            runtime.block_on(asked).map_err(|error| engine.unreachable(&error.to_string()))?;
        connection.docker = docker;
        let mut components = version.components.into_iter().flatten();
        let is_podman = components.any(|component| component.name.contains("Podman"));
        let realm = Realm::of(setup.homes.state());
        let engine = engine.clone();
        drop(_inside);
        let tool = OnceLock::new();
        Ok(Self(Arc::new(Inner { runtime, connection, engine, realm, setup, is_podman, tool })))
    }

    pub(crate) fn docker(&self) -> &Docker {
        &self.0.connection.docker
    }

    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.0.runtime.block_on(work)
    }

    /// This program, installed in the engine.
    pub(crate) fn tool(&self) -> Result<&Tool, DriverError> {
        if let Some(tool) = self.0.tool.get() {
            return Ok(tool);
        }
        let tool = Tool::of(&self.0.setup.program, &self.0.setup.guest)?;
        self.wait(tool.install(self.docker()))?;
        Ok(self.0.tool.get_or_init(|| tool))
    }

    /// The container of a sandbox of ours.
    pub(crate) fn find(&self, id: &SandboxId) -> Result<Found, DriverError> {
        let found = self.containers(Kind::Sandbox, Some(id))?.into_iter().next();
        found.ok_or_else(|| DriverError::NoSandbox(id.to_string()))
    }

    pub(crate) fn containers(&self, kind: Kind, id: Option<&SandboxId>) -> Result<Vec<Found>, DriverError> {
        let (realm, id) = (&self.0.realm, id.map(SandboxId::as_str));
        let filters = realm.filter();
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let all = self.wait(self.docker().list_containers(Some(options))).map_err(engine)?;
        let ours =
            |one: &ContainerSummary| one.labels.as_ref().is_some_and(|labels| realm.owns(labels, kind, id));
        Ok(all.into_iter().filter(ours).map(Found).collect())
    }

    pub(crate) fn make(&self, spec: &Spec, image: &Image) -> Result<Info, DriverError> {
        let policy = gatehouse::policy(&self.0.setup.homes, spec)?;
        container::refuse_what_engines_cannot(spec, &policy)?;
        let tool = self.tool()?;
        let network = Network::of_policy(self, spec, &policy)?;
        let wanted = Wanted { driver: self, spec, image, tool, network: network.as_ref(), policy: &policy };
        let made = wanted.body().and_then(|body| self.create_container(spec, body));
        if let Err(error) = made {
            // Nothing is left of what was not made whole.
            let _ = self.remove_network(&spec.id);
            return Err(error);
        }
        self.info(&spec.id)
    }

    fn create_container(&self, spec: &Spec, body: ContainerCreateBody) -> Result<(), DriverError> {
        let name = self.0.realm.container(&spec.name);
        self.wait(container::create(self.docker(), &name, body)).map_err(|error| match status(&error) {
            Some(409) => DriverError::NameTaken(spec.name.clone()),
            // Podman's answer for the same.
            _ if error.to_string().contains("already in use") => DriverError::NameTaken(spec.name.clone()),
            _ => engine(error),
        })?;
        Ok(())
    }

    /// Starts what is not started, and lets go on what is paused.
    fn wake(&self, found: &Found, network: Option<&Network<'_>>) -> Result<(), DriverError> {
        match found.state() {
            State::Running => return Ok(()),
            State::Paused => return self.wait(self.docker().unpause_container(found.id())).map_err(engine),
            State::Stopped | State::Broken => {}
        }
        if let Some(network) = network {
            let _alone = network.lock()?;
            // Somebody else may have been at it meanwhile.
            let is_up = self.wait(self.docker().inspect_container(found.id(), None)).map_err(engine)?;
            if is_up.state.and_then(|state| state.running) == Some(true) {
                return Ok(());
            }
            network.raise()?;
            return self.start_container(found.id());
        }
        self.start_container(found.id())
    }

    fn start_container(&self, id: &str) -> Result<(), DriverError> {
        self.wait(self.docker().start_container(id, None::<StartContainerOptions>)).map_err(engine)
    }

    pub(crate) fn remove_container(&self, name: &str) -> Result<(), DriverError> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        match self.wait(self.docker().remove_container(name, Some(options))) {
            Ok(()) => Ok(()),
            // Gone, or somebody else is at it.
            Err(error) if matches!(status(&error), Some(404 | 409)) => Ok(()),
            Err(error) => Err(engine(error)),
        }
    }
}

impl Driver for OciDriver {
    fn name(&self) -> DriverName {
        DriverName::Oci
    }

    fn create(&self, spec: &Spec) -> Result<Info, DriverError> {
        let image = Image::resolve(self, &spec.image)?;
        self.make(spec, &image)
    }

    fn exec(
        &self,
        id: &SandboxId,
        command: &Command,
        streams: &Streams<'_>,
    ) -> Result<Box<dyn Process>, DriverError> {
        let found = self.find(id)?;
        let spec = found.spec()?;
        if command.restart != Restart::No {
            return Err(unsupported(
                "start a command again when it ends",
                "leave `restart` out, or use `--driver native`",
            ));
        }
        let network = Network::of(self, &spec)?;
        self.wake(&found, network.as_ref())?;
        let process = Remote::start(self, &found, &spec, network.as_ref(), command, streams)?;
        Ok(Box::new(process))
    }

    fn files(&self, id: &SandboxId) -> Result<Box<dyn Files>, DriverError> {
        let found = self.find(id)?;
        Ok(Box::new(ContainerFiles::new(self.clone(), &found)?))
    }

    fn stop(&self, id: &SandboxId) -> Result<(), DriverError> {
        let found = self.find(id)?;
        if found.state() == State::Paused {
            self.wait(self.docker().unpause_container(found.id())).map_err(engine)?;
        }
        self.stop_container(found.id())?;
        self.stop_helper(id)
    }

    fn destroy(&self, id: &SandboxId) -> Result<(), DriverError> {
        let sandbox = self.containers(Kind::Sandbox, Some(id))?;
        for found in &sandbox {
            self.remove_container(found.id())?;
            self.forget_image(found);
        }
        self.remove_network(id)
    }

    fn list(&self) -> Result<Vec<Info>, DriverError> {
        let all = self.containers(Kind::Sandbox, None)?;
        // One whose label makes no sense is nobody's to name.
        let mut all: Vec<Info> = all.iter().filter_map(|found| found.info().ok()).collect();
        all.sort_by_key(|info| info.spec.created);
        Ok(all)
    }

    fn info(&self, id: &SandboxId) -> Result<Info, DriverError> {
        let found = self.find(id)?;
        let inspected = self.wait(self.docker().inspect_container(found.id(), None)).map_err(engine)?;
        let mut info = found.info()?;
        let at = |time: Option<String>| time.and_then(|time| time.parse::<jiff::Timestamp>().ok());
        let state = inspected.state.unwrap_or_default();
        let times = [at(state.started_at), at(state.finished_at)].into_iter().flatten();
        info.used = times.map(jiff::Timestamp::as_second).fold(info.used, i64::max);
        Ok(info)
    }

    fn pausing(&self) -> Option<&dyn Pausing> {
        Some(self)
    }

    fn snapshots(&self) -> Option<&dyn Snapshots> {
        Some(self)
    }

    fn checkpoints(&self) -> Option<&dyn Checkpoints> {
        Some(self)
    }

    fn statistics(&self) -> Option<&dyn Statistics> {
        Some(self)
    }

    fn logging(&self) -> Option<&dyn Logging> {
        Some(self)
    }
}

impl Pausing for OciDriver {
    fn pause(&self, id: &SandboxId) -> Result<(), DriverError> {
        let found = self.find(id)?;
        match found.state() {
            State::Paused => Ok(()),
            State::Running => self.wait(self.docker().pause_container(found.id())).map_err(engine),
            State::Stopped | State::Broken => Err(DriverError::NotRunning(id.to_string())),
        }
    }

    fn resume(&self, id: &SandboxId) -> Result<(), DriverError> {
        let found = self.find(id)?;
        match found.state() {
            State::Paused => self.wait(self.docker().unpause_container(found.id())).map_err(engine),
            _ => Ok(()),
        }
    }
}

/// A container of ours, as the engine lists it.
pub(crate) struct Found(ContainerSummary);

impl Found {
    pub(crate) fn id(&self) -> &str {
        self.0.id.as_deref().unwrap_or_default()
    }

    pub(crate) fn image_id(&self) -> Option<&str> {
        self.0.image_id.as_deref()
    }

    pub(crate) fn spec(&self) -> Result<Spec, DriverError> {
        labels::spec(self.0.labels.as_ref().unwrap_or(&Default::default()))
    }

    pub(crate) fn starts(&self) -> labels::Starts {
        self.0.labels.as_ref().and_then(labels::starts).unwrap_or_default()
    }

    pub(crate) fn digest(&self) -> Option<String> {
        labels::digest(self.0.labels.as_ref()?)
    }

    /// The command line of this program inside.
    pub(crate) fn tool(&self, arguments: &[&str]) -> Result<Vec<String>, DriverError> {
        let argv = self.0.labels.as_ref().and_then(labels::tool);
        let mut argv = argv.ok_or_else(|| DriverError::Unreadable {
            what: "the label",
            path: "redoma.tool".into(),
            why: "it is not there".into(),
        })?;
        argv.extend(arguments.iter().map(|word| (*word).to_owned()));
        Ok(argv)
    }

    pub(crate) fn state(&self) -> State {
        match self.0.state {
            Some(ContainerSummaryStateEnum::RUNNING | ContainerSummaryStateEnum::RESTARTING) => {
                State::Running
            }
            Some(ContainerSummaryStateEnum::PAUSED) => State::Paused,
            Some(ContainerSummaryStateEnum::REMOVING | ContainerSummaryStateEnum::DEAD) => State::Broken,
            _ => State::Stopped,
        }
    }

    fn info(&self) -> Result<Info, DriverError> {
        let (spec, (entrypoint, cmd)) = (self.spec()?, self.starts());
        Ok(Info {
            driver: DriverName::Oci,
            state: self.state(),
            digest: self.digest(),
            entrypoint,
            cmd,
            used: spec.created,
            notes: Vec::new(),
            spec,
        })
    }
}
