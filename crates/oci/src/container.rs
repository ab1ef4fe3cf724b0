//! A sandbox's container: what is asked of the engine, all of it in one place.

use std::fs;
use std::path::{Path, PathBuf};

use bollard::Docker;
use bollard::errors::Error;
use bollard::models::{
    ContainerCreateBody, ContainerCreateResponse, HostConfig, HostConfigCgroupnsModeEnum,
    HostConfigLogConfig, Mount, MountType, ResourcesUlimits,
};
use bollard::query_parameters::CreateContainerOptionsBuilder;
use redoma_policy::ResolvedPolicy;
use redoma_sandbox::driver::{DriverError, Mount as Wish, Spec, User};
use redoma_sandbox::gatehouse;
use rustix::process::Resource;

use crate::driver::OciDriver;
use crate::error::unsupported;
use crate::images::Image;
use crate::labels::Kind;
use crate::network::Network;
use crate::profile;
use crate::tool::Tool;

/// What user 0 needs for packages and services: over files and users of the container's own, and nothing of the machine's.
const OF_ROOT: [&str; 8] =
    ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "NET_BIND_SERVICE"];

/// A container to be made.
pub(crate) struct Wanted<'a> {
    pub(crate) driver: &'a OciDriver,
    pub(crate) spec: &'a Spec,
    pub(crate) image: &'a Image,
    pub(crate) tool: &'a Tool,
    pub(crate) network: Option<&'a Network<'a>>,
    pub(crate) policy: &'a ResolvedPolicy,
}

impl Wanted<'_> {
    pub(crate) fn body(&self) -> Result<ContainerCreateBody, DriverError> {
        let Self { driver, spec, image, tool, .. } = self;
        let time = self.policy.limits.time.map(|time| time.0.as_secs().max(1).to_string());
        let idle: Vec<&str> = ["idle"].into_iter().chain(time.as_deref()).collect();
        Ok(ContainerCreateBody {
            image: Some(image.id.clone()),
            // With a network it is the helper's.
            hostname: self.network.is_none().then(|| spec.name.to_string()),
            // What an image starts by itself is for whoever starts it as a command.
            entrypoint: Some(Vec::new()),
            cmd: Some(tool.argv(&idle)),
            env: Some(spec.env.iter().map(|(name, value)| format!("{name}={value}")).collect()),
            user: Some(user(spec)),
            working_dir: spec.workdir.as_ref().map(|folder| folder.display().to_string()),
            labels: Some(driver.0.realm.with_tool(
                Kind::Sandbox,
                spec,
                &image.digest,
                &tool.argv(&[]),
                &image.starts,
            )),
            host_config: Some(self.host_config()?),
            ..ContainerCreateBody::default()
        })
    }

    fn host_config(&self) -> Result<HostConfig, DriverError> {
        let Self { driver, spec, tool, policy, .. } = self;
        let mut mounts = vec![tool.mount()];
        mounts.extend(self.network.iter().flat_map(|network| network.mounts()));
        for wish in &spec.mounts {
            mounts.push(mount(driver, wish)?);
        }
        if !spec.mounts.is_empty() {
            mounts.extend(self.covers()?);
        }
        let memory = policy.limits.memory.map(|memory| i64::try_from(memory.0).unwrap_or(i64::MAX));
        let security = vec!["no-new-privileges".to_owned(), format!("seccomp={}", self.profile()?)];
        Ok(HostConfig {
            network_mode: Some(match self.network {
                Some(network) => network.make(tool)?,
                None => "none".into(),
            }),
            cap_drop: Some(vec!["ALL".into()]),
            cap_add: (spec.user == User::Root).then(|| OF_ROOT.map(str::to_owned).to_vec()),
            security_opt: Some(security),
            privileged: Some(false),
            publish_all_ports: Some(false),
            ipc_mode: Some("private".into()),
            cgroupns_mode: (!driver.0.is_podman).then_some(HostConfigCgroupnsModeEnum::PRIVATE),
            memory,
            // Swap included: what is over the limit is over it.
            memory_swap: memory,
            nano_cpus: policy.limits.cpus.map(|cpus| (cpus.get() * 1e9) as i64),
            pids_limit: policy.limits.pids.map(i64::from),
            mounts: Some(mounts),
            ulimits: driver.0.is_podman.then(own_limits),
            // Commands are attached to; the first process says nothing.
            log_config: (!driver.0.is_podman)
                .then(|| HostConfigLogConfig { typ: Some("none".into()), config: None }),
            ..HostConfig::default()
        })
    }

    /// What the policy denies or protects in mounts: hidden behind something empty, or mounted again read-only.
    fn covers(&self) -> Result<Vec<Mount>, DriverError> {
        let homes = &self.driver.0.setup.homes;
        let held = gatehouse::held(homes, self.policy)?;
        let empty = homes.state().join("oci/empty");
        let made = fs::create_dir_all(homes.state().join("oci")).and_then(|()| fs::write(&empty, []));
        made.map_err(|source| DriverError::Store { what: "write", path: empty.clone(), source })?;
        let mut covers = Vec::new();
        for wish in &self.spec.mounts {
            for (path, is_folder) in &held.denied {
                let Some(target) = seen_as(wish, path)? else { continue };
                covers.push(match is_folder {
                    true => Mount { typ: Some(MountType::TMPFS), source: None, ..bind(&empty, &target) },
                    false => bind(&empty, &target),
                });
            }
            for path in held.protected.iter().filter(|_| wish.writable) {
                covers.extend(seen_as(wish, path)?.map(|target| bind(path, &target)));
            }
        }
        Ok(covers)
    }

    /// Docker takes the profile itself, Podman the name of a file that it reads.
    fn profile(&self) -> Result<String, DriverError> {
        let profile = profile::seccomp();
        if !self.driver.0.is_podman {
            return Ok(profile);
        }
        let folder = self.driver.0.setup.homes.state().join("oci");
        let path = folder.join("seccomp.json");
        let failed = |source| DriverError::Store { what: "write", path: path.clone(), source };
        fs::create_dir_all(&folder).map_err(failed)?;
        let mut new = tempfile::NamedTempFile::new_in(&folder).map_err(failed)?;
        std::io::Write::write_all(&mut new, profile.as_bytes()).map_err(failed)?;
        new.persist(&path).map_err(|error| failed(error.error))?;
        Ok(path.display().to_string())
    }
}

/// Who commands are, as the engine takes it.
pub(crate) fn user(spec: &Spec) -> String {
    match spec.user {
        User::Root => "0:0".into(),
        User::Me => {
            let (user, group) = (rustix::process::getuid(), rustix::process::getgid());
            format!("{}:{}", user.as_raw(), group.as_raw())
        }
    }
}

pub(crate) async fn create(
    docker: &Docker,
    name: &str,
    body: ContainerCreateBody,
) -> Result<ContainerCreateResponse, Error> {
    let options = CreateContainerOptionsBuilder::default().name(name).build();
    docker.create_container(Some(options), body).await
}

/// What this driver has no means for is refused, and never left out.
pub(crate) fn refuse_what_engines_cannot(spec: &Spec, policy: &ResolvedPolicy) -> Result<(), DriverError> {
    let native = "use the native driver: `--driver native`";
    if policy.limits.disk.is_some() {
        return Err(unsupported("limit the disk: engines count no bytes on most file systems", native));
    }
    if !spec.peers.is_empty() {
        return Err(unsupported("lead from one sandbox to another yet", native));
    }
    Ok(())
}

/// Where a path of this machine is seen by a mount, if it is below it.
fn seen_as(wish: &Wish, path: &Path) -> Result<Option<PathBuf>, DriverError> {
    match path.strip_prefix(&wish.from) {
        Err(_) => Ok(None),
        Ok(rest) if rest.as_os_str().is_empty() => Err(DriverError::Invalid {
            what: format!("the mount {}:{}", wish.from.display(), wish.to.display()),
            why: "the policy denies or protects it".into(),
            hint: format!("redoma why read {}", wish.from.display()),
        }),
        Ok(rest) => Ok(Some(wish.to.join(rest))),
    }
}

/// Something of this machine, to be read inside.
pub(crate) fn bind(from: &Path, to: &Path) -> Mount {
    Mount {
        source: Some(from.display().to_string()),
        target: Some(to.display().to_string()),
        typ: Some(MountType::BIND),
        read_only: Some(true),
        ..Mount::default()
    }
}

fn mount(driver: &OciDriver, wish: &Wish) -> Result<Mount, DriverError> {
    let what = format!("the mount {}:{}", wish.from.display(), wish.to.display());
    if driver.0.engine.is_remote() {
        return Err(unsupported(
            format!("mount {}: the engine is another machine's", wish.from.display()),
            "copy what is needed in: `redoma sandbox cp`",
        ));
    }
    if wish.overlay {
        return Err(unsupported(
            "keep changes to a mount aside",
            "add `:ro` to it, or use `--driver native`",
        ));
    }
    let refuse = |why: &str| DriverError::Invalid {
        what: what.clone(),
        why: why.to_owned(),
        hint: "mount a folder below it instead".into(),
    };
    let from = fs::canonicalize(&wish.from).map_err(|error| refuse(&error.to_string()))?;
    if driver.0.connection.socket.as_deref().is_some_and(|socket| holds(&from, socket)) {
        return Err(refuse(
            "it holds the engine's socket, by which everything on this machine could be reached",
        ));
    }
    let homes = &driver.0.setup.homes;
    if [homes.config(), homes.state(), homes.run()]
        .into_iter()
        .any(|own| holds(&from, own) || from.starts_with(own))
    {
        return Err(refuse("it holds what Redoma keeps: keys, the record, sandboxes"));
    }
    Ok(Mount {
        target: Some(wish.to.display().to_string()),
        source: Some(from.display().to_string()),
        typ: Some(MountType::BIND),
        read_only: Some(!wish.writable),
        ..Mount::default()
    })
}

fn holds(folder: &Path, path: &Path) -> bool {
    let real = fs::canonicalize(path);
    path.starts_with(folder) || real.is_ok_and(|real| real.starts_with(folder))
}

/// An engine without rights over limits sets more than it may, and nothing starts: no more than this process has.
pub(crate) fn own_limits() -> Vec<ResourcesUlimits> {
    let own = |name: &str, resource| {
        let hard = rustix::process::getrlimit(resource).maximum.and_then(|most| i64::try_from(most).ok());
        ResourcesUlimits {
            name: Some(name.to_owned()),
            soft: Some(hard.unwrap_or(-1)),
            hard: Some(hard.unwrap_or(-1)),
        }
    };
    vec![own("nofile", Resource::Nofile), own("nproc", Resource::Nproc)]
}
