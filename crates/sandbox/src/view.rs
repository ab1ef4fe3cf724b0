//! What a sandbox sees: the resolved policy, looked up in what exists, as a blueprint for the jail.
//!
//! [`Findings`] answers which denied and protected paths are there and which are not; [`full`] turns them into mounts,
//! [`landlock`] into rules, or refuses by name what rules cannot say.

mod findings;
mod full;
mod landlock;

use std::path::PathBuf;

use redoma_jail::{Grant, Piece};
use redoma_policy::{Access, Origin, ResolvedPolicy};

pub(crate) use findings::Findings;
pub(crate) use full::{OverlayFolders, full, wants_overlay};
pub(crate) use landlock::landlock;

use crate::decoy::Canary;
use crate::gitguard::Before;
use crate::homes::Homes;
use crate::walk::{Found, Limits, Walk, WalkError};

/// What was drawn, and what is left for the keeper to do.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// Mounts, in order (full tier).
    pub(crate) layout: Vec<Piece>,
    /// Landlock's rules.
    pub(crate) access: Vec<Grant>,
    /// What is hidden, and by which rule.
    pub(crate) covered: Vec<(PathBuf, Origin)>,
    /// Denied and protected paths that must not appear during the session.
    pub(crate) absent: Vec<PathBuf>,
    /// Values in decoys.
    pub(crate) canaries: Vec<Canary>,
    /// The git repositories that were there at the start.
    pub(crate) git: Before,
}

/// Walks what the policy grants. With the limits of a start, folders that did not change are known from the last walk.
pub(crate) fn search(policy: &ResolvedPolicy, homes: &Homes, limits: Limits) -> Result<Found, WalkError> {
    let cache = (!limits.pass_over_deep).then(|| homes.cache());
    let walk = Walk {
        matcher: &findings::matcher(policy),
        fingerprint: &findings::fingerprint(policy),
        limits,
        cache: cache.as_deref(),
        sought: &findings::sought(policy, homes),
    };
    walk.run(&policy.filesystem.walk_roots())
}

/// Paths that every command may write, besides the granted ones: its own processes and the devices.
const OWN_WRITABLE: [&str; 2] = ["/proc", "/dev"];

fn is_write(access: Access) -> bool {
    access == Access::Write
}
