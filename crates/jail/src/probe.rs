//! What the kernel here can enforce, found by trying it.
//!
//! A probe does in a child what a sandbox does and takes the kernel's answer; names of distributions and kernel
//! versions decide nothing. Only the explanation of a refusal looks at settings.

use std::fs;

use redoma_sys::{Errno, Namespaces};
use serde::{Deserialize, Serialize};

use crate::child::in_child;
use crate::error::{Failure, InStep, Step};
use crate::identity::Identity;
use crate::root;
use redoma_policy::Tier;

/// What was found on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probes {
    /// Namespaces and the mounts that a sandbox needs, or what is missing.
    pub namespaces: Result<(), Missing>,
    /// An overlay file system inside, for `workspace = "overlay"`.
    pub overlay: Result<(), Missing>,
    /// Version of Landlock's interface, 0 without it.
    pub landlock_abi: u32,
    /// Seccomp filters.
    pub seccomp: Result<(), Missing>,
}

/// Something that the kernel does not give, and how to get it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// What is missing.
    pub what: String,
    /// The reason, as far as it shows.
    pub why: String,
    /// What to do about it.
    pub hint: String,
}

/// The landlock tier needs scopes for signals and abstract sockets (Linux 6.12): without them a process inside could
/// signal and talk to the user's others.
pub const LANDLOCK_TIER_ABI: u32 = 6;

impl Probes {
    /// Tries everything. Takes a few milliseconds; the answers hold until the next boot or change of settings, which
    /// [`fingerprint`] tells.
    pub fn run() -> Self {
        Self {
            namespaces: try_namespaces().map_err(|failure| explain(&failure)),
            overlay: try_overlay().map_err(|failure| Missing::overlay(&failure)),
            landlock_abi: landlock_abi(),
            seccomp: try_seccomp(),
        }
    }

    /// The best tier this machine offers.
    pub fn best_tier(&self) -> Option<Tier> {
        [Tier::Full, Tier::Landlock].into_iter().find(|&tier| self.missing(tier).is_none())
    }

    /// What `tier` lacks here.
    pub fn missing(&self, tier: Tier) -> Option<Missing> {
        if let Err(missing) = &self.seccomp {
            return Some(missing.clone());
        }
        match tier {
            Tier::Full => match &self.namespaces {
                Err(missing) => Some(missing.clone()),
                Ok(()) if self.landlock_abi == 0 => Some(Missing::landlock(1)),
                Ok(()) => None,
            },
            Tier::Landlock if self.landlock_abi < LANDLOCK_TIER_ABI => {
                Some(Missing::landlock(LANDLOCK_TIER_ABI))
            }
            Tier::Landlock => None,
        }
    }
}

/// Changes whenever the answers of the probes may: with the boot, the user, and the settings that they depend on.
pub fn fingerprint() -> String {
    const SETTINGS: [&str; 5] = [
        "/proc/sys/kernel/random/boot_id",
        "/proc/sys/kernel/unprivileged_userns_clone",
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "/proc/sys/user/max_user_namespaces",
        "/proc/self/attr/current",
    ];
    let mut parts: Vec<String> = SETTINGS.iter().map(|path| setting(path).unwrap_or_default()).collect();
    parts.push(seccomp_mode());
    parts.push(rustix::process::geteuid().as_raw().to_string());
    parts.push(env!("CARGO_PKG_VERSION").to_owned());
    parts.join(" ")
}

// === trying ===

fn try_namespaces() -> Result<(), Failure> {
    let identity = Identity::of_caller(false);
    in_child(Namespaces::ALL, || {
        identity.map().step(Step::MapUser)?;
        root::rehearse()
    })
}

fn try_overlay() -> Result<(), Failure> {
    let identity = Identity::of_caller(false);
    in_child(Namespaces::ALL, || {
        identity.map().step(Step::MapUser)?;
        root::rehearse_overlay()
    })
}

/// Version of Landlock's interface, 0 where there is none. See `landlock_create_ruleset(2)`.
pub fn landlock_abi() -> u32 {
    redoma_sys::landlock_abi()
}

fn try_seccomp() -> Result<(), Missing> {
    let actions = fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    if actions.split_whitespace().any(|action| action == "errno") {
        return Ok(());
    }
    Err(Missing {
        what: "system-call filters (seccomp)".into(),
        why: "this kernel was built without CONFIG_SECCOMP_FILTER".into(),
        hint: "boot your distribution's standard kernel".into(),
    })
}

// === explaining ===

impl Missing {
    fn landlock(abi: u32) -> Self {
        let found = landlock_abi();
        let (needs, why) = if found == 0 {
            ("Landlock", "the kernel is older than 5.13, or `landlock` is not in its `lsm=` list".to_owned())
        } else {
            (
                "a newer Landlock",
                format!("this kernel has version {found} of its interface, version {abi} is needed"),
            )
        };
        Self {
            what: needs.into(),
            why,
            hint: "add `lsm=landlock,…` to the kernel's command line, or update the kernel".into(),
        }
    }

    fn overlay(failure: &Failure) -> Self {
        Self {
            what: "overlay file systems in user namespaces".into(),
            why: format!("cannot {failure}"),
            hint: "update to Linux 5.11 or later and load the `overlay` module; `workspace = \"direct\"` works without".into(),
        }
    }

    fn namespaces(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: "unprivileged user namespaces".into(), why: why.into(), hint: hint.into() }
    }
}

fn explain(failure: &Failure) -> Missing {
    let is = |path: &str, value: &str| setting(path).as_deref() == Some(value);
    if is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") && failure.step != Step::NewRoot {
        return Missing::namespaces(
            "AppArmor lets only programs with a profile have them (kernel.apparmor_restrict_unprivileged_userns = 1)",
            "sudo install -m 644 packaging/apparmor/redoma /etc/apparmor.d/redoma && sudo apparmor_parser -r /etc/apparmor.d/redoma",
        );
    }
    if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        return Missing::namespaces(
            "they are switched off (kernel.unprivileged_userns_clone = 0)",
            "sudo sysctl -w kernel.unprivileged_userns_clone=1",
        );
    }
    if is("/proc/sys/user/max_user_namespaces", "0") {
        return Missing::namespaces(
            "none may be made (user.max_user_namespaces = 0)",
            "sudo sysctl -w user.max_user_namespaces=15000",
        );
    }
    explain_by_errno(failure)
}

fn explain_by_errno(failure: &Failure) -> Missing {
    let masked_proc =
        failure.step == Step::NewRoot && failure.path.as_deref().is_some_and(|path| path == "/proc");
    if masked_proc {
        return Missing::namespaces(
            "a fresh /proc may not be mounted: the one here is partly masked, as in a container",
            "start the container with `--security-opt systempaths=unconfined`, or use the landlock tier",
        );
    }
    match (failure.step, failure.errno()) {
        (Step::Fork, Errno::PERM) if seccomp_mode() == "2" => Missing::namespaces(
            "a system-call filter refuses them, as a container's does",
            "start the container with `--security-opt seccomp=unconfined`, or use the landlock tier",
        ),
        (Step::Fork, Errno::NOSPC) => Missing::namespaces(
            "the limit on nested namespaces is reached",
            "run fewer sandboxes inside each other",
        ),
        (_, Errno::NOSYS) => Missing::namespaces(
            format!("cannot {failure}: the kernel is too old, or a filter hides the call"),
            "update to Linux 5.12 or later; in a container use `--security-opt seccomp=unconfined`",
        ),
        _ => Missing::namespaces(
            format!("cannot {failure}"),
            "use the landlock tier (`--tier landlock`), or report what `redoma doctor --json` says",
        ),
    }
}

fn setting(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// The `Seccomp:` line of `proc_pid_status(5)`: 2 under a filter.
fn seccomp_mode() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find_map(|line| line.strip_prefix("Seccomp:")).unwrap_or_default().trim().to_owned()
}
