//! Raising a disposable sandbox: from its record to a boundary that stands, and has been tried.

use std::ffi::OsString;

use redoma_audit::SessionId;
use redoma_jail::limits::{Limits, Wanted};
use redoma_jail::{Blueprint, Jail};
use redoma_policy::{ResolvedPolicy, Tier};

use super::drawing::{self, Folders};
use super::gauge::{self, Gauge};
use super::guard::Guard;
use super::peers::Peers;
use super::store::{Record, Store, failed};
use crate::canary;
use crate::driver::DriverError;
use crate::error::RunError;
use crate::gateway::{Prepared, Serving};
use crate::homes::Homes;
use crate::machine;
use crate::native;
use crate::record::RunRecord;

/// What stands.
pub(super) struct Raised {
    pub(super) jail: Jail,
    pub(super) limits: Limits,
    pub(super) gateway: Option<Serving>,
    pub(super) gauge: Option<Gauge>,
    pub(super) guard: Option<Guard>,
    /// What programs are told about the network.
    pub(super) variables: Vec<(String, OsString)>,
}

pub(super) fn raise(
    homes: &Homes,
    store: &Store,
    record: &Record,
    policy: &ResolvedPolicy,
    session: SessionId,
    log: &mut RunRecord,
) -> Result<Raised, DriverError> {
    let probes = machine::probes(homes);
    let tier = machine::choose_tier(&probes, Some(Tier::Full)).map_err(DriverError::Start)?;
    if let Some(missing) = machine::missing_overlay(&probes) {
        return Err(DriverError::Start(RunError::NoBoundary { missing }));
    }
    let spec = &record.spec;
    let folders = Folders { store, folder: store.folder(&spec.id) };
    let mut view = folders.draw(homes, spec, policy)?;
    let needed = policy.network.needs_gateway() || !spec.peers.is_empty();
    let prepared = prepare_gateway(policy, session, &view.canaries, needed)?;
    let guard = Guard::set_up(spec, &view, &folders.folder).map_err(DriverError::Start)?;
    let prepared = prepared.map(|prepared| prepared.with_peers(Peers::of(spec, store)));
    if let Some(prepared) = &prepared {
        view.layout.extend(folders.network_pieces(spec, prepared)?);
    }
    let variables = prepared.as_ref().map(|prepared| prepared.variables(None)).unwrap_or_default();
    let limits = Limits::prepare(&wanted(policy), tier, session.as_str(), None, None).map_err(start)?;
    let (canary, _listener) = canary::set_out(homes).map_err(DriverError::Start)?;
    let (identity, _) = drawing::identity(spec);
    let blueprint = Blueprint {
        tier,
        identity,
        privileges: drawing::privileges(spec),
        hostname: Some(spec.name.to_string()),
        root: folders.root(&record.base)?,
        layout: view.layout,
        access: view.access,
        nested_userns: false,
        private_bytes: native::default_private_bytes(),
        wire: prepared.as_ref().map(Prepared::wire),
        rlimits: limits.rlimits().to_vec(),
        canary,
    };
    let (mut jail, enforced) =
        Jail::start(&blueprint).and_then(redoma_jail::Raising::ready).map_err(start)?;
    limits.enter(jail.pid()).map_err(start)?;
    let gateway = prepared
        .map(|prepared| prepared.start(session, &mut jail, policy, tier))
        .transpose()
        .map_err(DriverError::Start)?;
    log.built(enforced.landlock_abi, &blueprint.canary).map_err(DriverError::Start)?;
    let gauge = policy.limits.disk.map(|limit| {
        let changed = gauge::changed(&folders.folder, spec.mounts.len());
        Gauge::start(&changed, limit.0).map_err(|source| failed("measure", &folders.folder, source))
    });
    Ok(Raised { jail, limits, gateway, gauge: gauge.transpose()?, guard, variables })
}

fn prepare_gateway(
    policy: &ResolvedPolicy,
    session: SessionId,
    canaries: &[crate::decoy::Canary],
    needed: bool,
) -> Result<Option<Prepared>, DriverError> {
    if !needed {
        return Ok(None);
    }
    let given: Vec<_> = std::env::vars_os().collect();
    let prepared = Prepared::new(policy, Tier::Full, session.as_str(), &given, canaries);
    prepared.map(Some).map_err(DriverError::Start)
}

fn wanted(policy: &ResolvedPolicy) -> Wanted {
    let limits = &policy.limits;
    Wanted {
        cpus: limits.cpus.map(redoma_policy::Cpus::get),
        memory: limits.memory.map(|memory| memory.0),
        pids: limits.pids,
        disk: None,
        time: None,
        strict: limits.strict,
    }
}

pub(super) fn start(error: redoma_jail::JailError) -> DriverError {
    DriverError::Start(error.into())
}
