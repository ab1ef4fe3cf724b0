//! What a sandbox is drawn from, and what is started in it.

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::Path;

use redoma_jail::limits::Limits;
use redoma_jail::{Blueprint, Exec, Identity, Privileges, Root, Wire};
use redoma_policy::{Effect, Question, Tier};

use super::Run;
use crate::canary;
use crate::error::RunError;
use crate::gateway::Prepared;
use crate::streams::Streams;
use crate::view::View;

impl Run<'_> {
    /// None without a network.
    pub(super) fn prepare_gateway(&self, view: &mut View) -> Result<Option<Prepared>, RunError> {
        let policy = &self.request.policy;
        if !policy.network.needs_gateway() {
            return Ok(None);
        }
        let given = &self.request.variables;
        let prepared = Prepared::new(policy, self.tier, self.session.as_str(), given, &view.canaries)?;
        if self.tier == Tier::Full {
            view.layout.extend(prepared.pieces());
        }
        let capture = self.request.capture.then(|| self.store.begin_capture(self.session)).transpose()?;
        Ok(Some(prepared.capture_into(capture)))
    }

    /// The landlock tier has its certificates among its temporary files.
    pub(super) fn network_variables(
        &self,
        prepared: Option<&Prepared>,
    ) -> Result<Vec<(String, OsString)>, RunError> {
        let Some(prepared) = prepared else { return Ok(Vec::new()) };
        if self.tier == Tier::Full {
            return Ok(prepared.variables(None));
        }
        let folder = self.temporary();
        let what = "the certificates";
        prepared.write_into(&folder).map_err(|source| RunError::Prepare {
            what,
            path: folder.clone(),
            source,
        })?;
        Ok(prepared.variables(Some(&folder)))
    }

    pub(super) fn blueprint(
        &self,
        view: &View,
        limits: &Limits,
        wire: Option<Wire>,
    ) -> Result<(Blueprint, TcpListener), RunError> {
        let (canary, listener) = canary::set_out(self.homes)?;
        let policy = &self.request.policy;
        let blueprint = Blueprint {
            tier: self.tier,
            identity: Identity::of_caller(false),
            privileges: Privileges::None,
            hostname: None,
            root: Root::Private,
            layout: view.layout.clone(),
            access: view.access.clone(),
            nested_userns: policy.kernel.nested_userns,
            private_bytes: policy.limits.disk.map_or_else(default_private_bytes, |disk| disk.0),
            wire,
            rlimits: limits.rlimits().to_vec(),
            canary,
        };
        Ok((blueprint, listener))
    }

    fn can_read(&self, path: &Path) -> bool {
        let verdict = self.request.policy.decide(&Question::Read(path), self.tier);
        verdict.effect == Effect::Allow
    }

    pub(super) fn exec(&self, streams: Streams, network: &[(String, OsString)]) -> Exec {
        let variables = self.request.variables.iter().cloned();
        let mut environment = self.request.policy.environment.build(variables);
        // Also where nothing stands in for them, since there is no network.
        let secrets = &self.request.policy.secrets;
        environment.retain(|(name, _)| !secrets.iter().any(|secret| secret.is_in(name)));
        let mut set = |name: &str, value: &std::ffi::OsStr| {
            environment.retain(|(known, _)| known != name);
            environment.push((name.into(), value.into()));
        };
        set("REDOMA_SESSION", self.session.as_str().as_ref());
        network.iter().for_each(|(name, value)| set(name, value));
        if self.tier == Tier::Landlock {
            set("TMPDIR", self.temporary().as_os_str());
            // zsh's here-documents go by another name.
            set("TMPPREFIX", self.temporary().join("zsh").as_os_str());
            // What is not granted is there and closed in this tier, which git takes for a broken machine.
            if !self.can_read(&self.homes.home().join(".gitconfig")) {
                set("GIT_CONFIG_GLOBAL", "/dev/null".as_ref());
            }
        }
        Exec {
            argv: self.request.argv.clone(),
            environment,
            folder: self.request.cwd.clone(),
            terminal: streams.terminal(),
            ..Exec::default()
        }
    }
}

/// A quarter of the machine's memory for each private file system: room for a build, not for the whole machine.
pub(crate) fn default_private_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram * u64::from(info.mem_unit) / 4
}
