//! The network of a sandbox: a helper's container that holds the namespace, and a keeper on this machine that holds the gateway.
//!
//! The namespace has loopback and nothing else, ever. The helper is this program, in an image of its own; it may administer
//! that namespace and has no other right. It redirects all TCP and all questions for names to sockets of its making, and sends those
//! sockets to the keeper over a Unix socket that nobody else is shown. The sandbox's container shares the namespace and may change
//! nothing of it. Who ends the helper, or the keeper, ends the network: there is no route to fall back on.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Lines, Write};
use std::path::PathBuf;
use std::process::{ChildStdout, Command, Stdio};

use bollard::models::{ContainerCreateBody, HostConfig, Mount};
use bollard::query_parameters::{StartContainerOptions, StopContainerOptionsBuilder};
use redoma_policy::ResolvedPolicy;
use redoma_sandbox::driver::{DriverError, DriverName, SandboxId, Spec, State};
use redoma_sandbox::gatehouse::{self, Order, Said};
use rustix::fs::FlockOperation;

use crate::container::{self, bind};
use crate::driver::OciDriver;
use crate::error::{engine, status, unsupported};
use crate::labels::Kind;
use crate::tool::Tool;

/// The network of one sandbox.
pub(crate) struct Network<'a> {
    driver: &'a OciDriver,
    spec: &'a Spec,
}

/// Where the gate is in the helper.
const GATE: &str = "/gate";
/// What a helper may do: in its own namespace.
const OF_HELPER: [&str; 2] = ["NET_ADMIN", "NET_BIND_SERVICE"];
const VARIABLES: &str = "variables.json";

impl<'a> Network<'a> {
    /// None for a sandbox with loopback alone.
    pub(crate) fn of(driver: &'a OciDriver, spec: &'a Spec) -> Result<Option<Self>, DriverError> {
        let policy = gatehouse::policy(&driver.0.setup.homes, spec)?;
        Self::of_policy(driver, spec, &policy)
    }

    pub(crate) fn of_policy(
        driver: &'a OciDriver,
        spec: &'a Spec,
        policy: &ResolvedPolicy,
    ) -> Result<Option<Self>, DriverError> {
        if !policy.network.needs_gateway() {
            return Ok(None);
        }
        if driver.0.connection.socket.is_none() {
            return Err(unsupported(
                "give a sandbox of an engine elsewhere a network: its gateway is on this machine",
                "--net none",
            ));
        }
        Ok(Some(Self { driver, spec }))
    }

    fn folder(&self) -> PathBuf {
        self.driver.network_folder(&self.spec.id)
    }

    fn helper_name(&self) -> String {
        self.driver.0.realm.helper(&self.spec.id)
    }

    /// Makes the helper's container and what is mounted; how the sandbox's container is to name its network.
    pub(crate) fn make(&self, tool: &Tool) -> Result<String, DriverError> {
        let folder = self.folder();
        let (inside, gate) = (gatehouse::certificates(&folder), gatehouse::gate(&folder));
        let places = fs::create_dir_all(&inside)
            .and_then(|()| fs::create_dir_all(&gate))
            .and_then(|()| File::create(inside.join("resolv.conf")).map(drop));
        places.map_err(|source| DriverError::Store { what: "make", path: folder, source })?;
        let body = ContainerCreateBody {
            image: Some(tool.image()),
            hostname: Some(self.spec.name.to_string()),
            entrypoint: Some(Vec::new()),
            cmd: Some(tool.argv_in_image(&["network", &format!("{GATE}/socket")])),
            user: Some("0:0".into()),
            labels: Some(self.driver.0.realm.labels(Kind::Helper, self.spec, "")),
            host_config: Some(HostConfig {
                network_mode: Some("none".into()),
                cap_drop: Some(vec!["ALL".into()]),
                cap_add: Some(OF_HELPER.map(str::to_owned).to_vec()),
                security_opt: Some(vec!["no-new-privileges".into()]),
                readonly_rootfs: Some(true),
                pids_limit: Some(16),
                mounts: Some(vec![bind(&gate, GATE.as_ref())]),
                ulimits: self.driver.0.is_podman.then(container::own_limits),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let name = self.helper_name();
        let made = self.driver.wait(container::create(self.driver.docker(), &name, body)).map_err(engine)?;
        Ok(format!("container:{}", made.id))
    }

    /// What the sandbox's container is shown of it.
    pub(crate) fn mounts(&self) -> Vec<Mount> {
        let inside = gatehouse::certificates(&self.folder());
        vec![
            bind(&inside, "/run/redoma".as_ref()),
            bind(&inside.join("resolv.conf"), "/etc/resolv.conf".as_ref()),
        ]
    }

    /// Raises the network, before the sandbox's container starts.
    pub(crate) fn raise(&self) -> Result<(), DriverError> {
        let helper = self.helper_name();
        // One of an earlier life, if there is one, has its namespace with it.
        self.driver.stop_container(&helper)?;
        let mut keeper = Keeper::start(self)?;
        let Said::Ready(variables) = keeper.hear()? else { return Err(silent()) };
        let kept = serde_json::to_vec(&variables).unwrap_or_default();
        let path = self.folder().join(VARIABLES);
        fs::write(&path, kept).map_err(|source| DriverError::Store { what: "write", path, source })?;
        let started = self.driver.docker().start_container(&helper, None::<StartContainerOptions>);
        self.driver.wait(started).map_err(engine)?;
        match keeper.hear()? {
            Said::Up => Ok(()),
            _ => Err(silent()),
        }
    }

    /// What every command is told about it.
    pub(crate) fn variables(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let kept = fs::read(self.folder().join(VARIABLES)).unwrap_or_default();
        let variables: Vec<(String, String)> = serde_json::from_slice(&kept).unwrap_or_default();
        variables.into_iter().map(|(name, value)| (name.into_bytes(), value.into_bytes())).collect()
    }

    /// Keeps others from raising it meanwhile, as long as what is returned lives.
    pub(crate) fn lock(&self) -> Result<File, DriverError> {
        let path = self.folder().join("lock");
        let lock = || {
            let file = File::create(&path)?;
            rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        };
        lock().map_err(|source| DriverError::Store { what: "lock", path: path.clone(), source })
    }
}

impl OciDriver {
    pub(crate) fn network_folder(&self, id: &SandboxId) -> PathBuf {
        self.0.setup.homes.state().join("oci").join(id.as_str())
    }

    /// Ends a container at once; none that runs is no error.
    pub(crate) fn stop_container(&self, name: &str) -> Result<(), DriverError> {
        let at_once = StopContainerOptionsBuilder::default().t(0).build();
        match self.wait(self.docker().stop_container(name, Some(at_once))) {
            Ok(()) => Ok(()),
            Err(error) if matches!(status(&error), Some(304 | 404)) => Ok(()),
            Err(error) => Err(engine(error)),
        }
    }

    /// Ends the helper of a sandbox, and with it its keeper.
    pub(crate) fn stop_helper(&self, id: &SandboxId) -> Result<(), DriverError> {
        let helpers = self.containers(Kind::Helper, Some(id))?;
        let mut running = helpers.iter().filter(|helper| helper.state() != State::Stopped);
        running.try_for_each(|helper| self.stop_container(helper.id()))
    }

    /// Removes what there is of a sandbox's network.
    pub(crate) fn remove_network(&self, id: &SandboxId) -> Result<(), DriverError> {
        for helper in self.containers(Kind::Helper, Some(id))? {
            self.remove_container(helper.id())?;
        }
        let folder = self.network_folder(id);
        match fs::remove_dir_all(&folder) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(DriverError::Store { what: "remove", path: folder, source })
            }
            _ => Ok(()),
        }
    }
}

/// A keeper that was started.
struct Keeper {
    says: Lines<BufReader<ChildStdout>>,
}

impl Keeper {
    fn start(network: &Network<'_>) -> Result<Self, DriverError> {
        let setup = &network.driver.0.setup;
        let order = Order { spec: network.spec.clone(), driver: DriverName::Oci, folder: network.folder() };
        let (program, arguments) = setup.keeper.split_first().ok_or_else(silent)?;
        let failed = |source| DriverError::Store { what: "start", path: program.into(), source };
        let mut keeper = Command::new(program)
            .args(arguments)
            .env("HOME", setup.homes.home())
            .envs(setup.homes.root().map(|root| ("REDOMA_HOME", root)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let order = serde_json::to_vec(&order).unwrap_or_default();
        keeper.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(&order)).map_err(failed)?;
        let stdout = keeper.stdout.take().ok_or_else(silent)?;
        let says = BufReader::new(stdout).lines();
        // What was started leaves a child behind and ends at once.
        let waited = keeper.wait().map(drop).map_err(failed);
        waited.map(|()| Self { says })
    }

    fn hear(&mut self) -> Result<Said, DriverError> {
        let line = self.says.next().and_then(Result::ok).ok_or_else(silent)?;
        match serde_json::from_str(&line).map_err(|_| silent())? {
            Said::Failed { message, hint } => Err(DriverError::Told { message, hint, code: 125 }),
            said => Ok(said),
        }
    }
}

fn silent() -> DriverError {
    DriverError::Gone(Some("the keeper of its network ended before there was one".into()))
}
