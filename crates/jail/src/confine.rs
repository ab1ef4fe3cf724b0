//! What a process gives up for good, in the order in which it can.

use std::os::fd::OwnedFd;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, Scope,
};
use redoma_sys::{Errno, Instruction};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::process::{Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::blueprint::{Blueprint, Grant, Privileges, Rights};
use crate::error::{Failure, InStep, Step};
use crate::seccomp::Setting;
use redoma_policy::Tier;

/// The rules of a sandbox, made once and put on each process that must be confined.
pub(crate) struct Confinement {
    landlock: RulesetCreated,
    filter: Vec<Instruction>,
    kept: CapabilitySet,
}

impl Confinement {
    /// Opens the granted paths and compiles the filter.
    pub(crate) fn prepare(blueprint: &Blueprint) -> Result<Self, Failure> {
        let landlock = if blueprint.nested_userns { scopes_only() } else { ruleset(blueprint)? };
        let filter = crate::seccomp::filter(Setting::of(blueprint));
        let landlock = landlock.map_err(|_| Failure::new(Step::Landlock, Errno::NOSYS))?;
        Ok(Self { landlock, filter, kept: kept(blueprint.privileges) })
    }

    /// Puts the rules on this process and all that it will start. Nothing takes them off again.
    pub(crate) fn apply(&self) -> Result<(), Failure> {
        self.narrow()?;
        redoma_sys::install_filter(&self.filter).step(Step::Seccomp)
    }

    /// The same, where the filter leaves calls to the supervisor: what comes back is for it, and nobody else. Without
    /// a supervisor, as under [`Self::apply`], these calls do not exist.
    pub(crate) fn apply_supervised(&self) -> Result<OwnedFd, Failure> {
        self.narrow()?;
        redoma_sys::install_supervised_filter(&self.filter).step(Step::Supervise)
    }

    fn narrow(&self) -> Result<(), Failure> {
        rustix::thread::set_no_new_privs(true).step(Step::NoNewPrivileges)?;
        keep_capabilities(self.kept).step(Step::DropCapabilities)?;
        let landlock = self.landlock.try_clone().map_err(|_| Failure::new(Step::Landlock, Errno::MFILE))?;
        landlock.restrict_self().map_err(|_| Failure::new(Step::Landlock, Errno::PERM)).map(drop)
    }
}

/// Sets the limits that each process inherits.
pub(crate) fn set_rlimits(limits: &[(Resource, u64)]) -> Result<(), Failure> {
    // The pattern for core dumps may name a program of the host, which a crash inside would start outside with its
    // memory as input. A limit of 1 is the one value that stops both a file and a program. See core(5).
    let core = (Resource::Core, 1);
    for (resource, value) in limits.iter().copied().chain([core]) {
        let limit = Rlimit { current: Some(value), maximum: Some(value) };
        rustix::process::setrlimit(resource, limit).step(Step::Rlimit)?;
    }
    Ok(())
}

/// All of them, out of all five sets.
pub(crate) fn drop_capabilities() -> Result<(), Failure> {
    keep_capabilities(CapabilitySet::empty()).step(Step::DropCapabilities)
}

/// What a package manager and a service's start script need, over files and users of this sandbox's own namespace.
/// CAP_SETFCAP is left out: file capabilities would mean nothing under no_new_privs.
fn kept(privileges: Privileges) -> CapabilitySet {
    match privileges {
        Privileges::None => CapabilitySet::empty(),
        Privileges::Root => {
            CapabilitySet::CHOWN
                | CapabilitySet::DAC_OVERRIDE
                | CapabilitySet::FOWNER
                | CapabilitySet::FSETID
                | CapabilitySet::KILL
                | CapabilitySet::SETGID
                | CapabilitySet::SETUID
                | CapabilitySet::NET_BIND_SERVICE
        }
    }
}

/// All five sets. The bounding set goes first, while there still is the capability to do so. See capabilities(7). With
/// no_new_privs on, a program that user 0 starts has at most what is kept here.
fn keep_capabilities(kept: CapabilitySet) -> Result<(), Errno> {
    for capability in CapabilitySet::all().difference(kept).iter() {
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // Unknown to an older kernel; or already without the right to: then there is none left to gain, since
            // no_new_privs is on.
            Ok(()) | Err(Errno::INVAL | Errno::PERM) => {}
            Err(errno) => return Err(errno),
        }
    }
    rustix::thread::clear_ambient_capability_set()?;
    let inheritable = CapabilitySet::empty();
    rustix::thread::set_capabilities(None, CapabilitySets { effective: kept, permitted: kept, inheritable })
}

// === Landlock ===

/// The newest interface whose rights we have looked at.
const ABI_KNOWN: ABI = ABI::V7;

/// One ruleset for everything. Best effort here is by kernel version: the tier was chosen by what this kernel has,
/// and in the full tier mounts say the same as these rules.
fn ruleset(blueprint: &Blueprint) -> Result<Result<RulesetCreated, landlock::RulesetError>, Failure> {
    let everything = AccessFs::from_all(ABI_KNOWN);
    let mut rules = Vec::new();
    for grant in &blueprint.access {
        let path = open(&grant.path).step_at(Step::Landlock, &grant.path)?;
        let access = rights(grant, &path).step_at(Step::Landlock, &grant.path)?;
        rules.push(Ok::<_, landlock::RulesetError>(PathBeneath::new(path, access)));
    }
    let build = || {
        let rules_of_tier =
            Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(everything)?;
        // Without a network namespace: no port is allowed, so the command binds and connects nothing. Init does.
        let rules_of_tier = match blueprint.tier {
            Tier::Full => rules_of_tier,
            Tier::Landlock => rules_of_tier.handle_access(AccessNet::from_all(ABI_KNOWN))?,
        };
        rules_of_tier.scope(Scope::from_all(ABI_KNOWN))?.create()?.add_rules(rules)
    };
    Ok(build())
}

/// Landlock refuses every mount to whoever has file rules, and a sandbox inside has to mount. Ours holds by its own
/// mounts then, which are locked in any namespace made below.
fn scopes_only() -> Result<RulesetCreated, landlock::RulesetError> {
    Ruleset::default().set_compatibility(CompatLevel::BestEffort).scope(Scope::from_all(ABI_KNOWN))?.create()
}

fn open(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

fn rights(grant: &Grant, path: &OwnedFd) -> Result<BitFlags<AccessFs>, Errno> {
    let rights = match grant.rights {
        Rights::List => AccessFs::ReadDir.into(),
        Rights::Read => AccessFs::from_read(ABI_KNOWN),
        Rights::Write => AccessFs::from_all(ABI_KNOWN),
    };
    let mode = rustix::fs::fstat(path)?.st_mode;
    let folder = rustix::fs::FileType::from_raw_mode(mode) == rustix::fs::FileType::Directory;
    Ok(if folder { rights } else { rights & AccessFs::from_file(ABI_KNOWN) })
}

/// The Landlock interface that is really in force.
pub(crate) fn enforced_abi(blueprint: &Blueprint) -> u32 {
    if blueprint.tier == Tier::Full && blueprint.nested_userns { 0 } else { crate::probe::landlock_abi() }
}
