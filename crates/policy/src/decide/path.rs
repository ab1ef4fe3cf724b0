//! Decisions about paths. Precedence: deny, protect, write, read, nothing granted.

use std::path::{Component, Path};

use super::{Place, Verdict};
use crate::{Access, Grant, PathRule, ResolvedPolicy, Tier, Workspace};

/// Folders that are empty and the sandbox's own in the full tier, besides the home and `/dev/shm`. Grants appear in them.
pub const PRIVATE_FOLDERS: [&str; 3] = ["/tmp", "/var/tmp", "/run"];

/// What `/dev` holds in the full tier: some of the host's devices, and terminals and shared memory of the sandbox's own.
const FULL_DEVICES: [&str; 13] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/shm",
    "/dev/fd",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
];

/// Without namespaces `/dev/pts` would be the user's other terminals, and `/dev/shm` everybody's memory.
const LANDLOCK_DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"];

/// The devices that every sandbox of a tier has, for reading and writing.
#[must_use]
pub fn devices(tier: Tier) -> &'static [&'static str] {
    match tier {
        Tier::Full => &FULL_DEVICES,
        Tier::Landlock => &LANDLOCK_DEVICES,
    }
}

/// What somebody wants with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intent<'a> {
    See,
    Change,
    /// Below this folder, which exists.
    Create(&'a Path),
}

impl ResolvedPolicy {
    pub(super) fn decide_path(&self, path: &Path, intent: Intent<'_>, tier: Tier) -> Verdict {
        if !is_plain(path) {
            return Verdict::deny(Place::Absent, "only absolute paths without `..` can be decided on");
        }
        let files = &self.filesystem;
        let grant = files.grant_for(path);
        if let Some(rule) = files.deny.iter().find(|rule| holds(rule, path, intent, grant)) {
            return self.denied_path(rule, path, grant, intent, tier);
        }
        let Some(grant) = grant else { return self.ungranted_path(path, intent, tier) };
        let protected = || files.protect.iter().find(|rule| holds(rule, path, intent, Some(grant)));
        match intent {
            Intent::See => Verdict::allow(Place::Host, "a rule grants it").by(&grant.origin),
            Intent::Change | Intent::Create(_) => match protected() {
                Some(rule) => self.protected_path(rule, path, grant, intent),
                None => self.granted_write(path, grant),
            },
        }
    }

    fn denied_path(
        &self,
        rule: &PathRule,
        path: &Path,
        grant: Option<&Grant>,
        intent: Intent<'_>,
        tier: Tier,
    ) -> Verdict {
        let found = exists(rule, path);
        let writable = grant.is_some_and(|grant| grant.access == Access::Write);
        let place = match (grant, intent) {
            (Some(_), Intent::Create(_)) if writable && !found => Place::Quarantined,
            (None, Intent::Change | Intent::Create(_)) if is_private(self, path, tier) => Place::Private,
            _ if found && tier == Tier::Full => Place::Covered,
            _ => Place::Absent,
        };
        Verdict::deny(place, "a deny rule names it, and deny beats every grant")
            .by(&rule.origin)
            .unless_lifted(&rule.origin)
    }

    fn protected_path(&self, rule: &PathRule, path: &Path, grant: &Grant, intent: Intent<'_>) -> Verdict {
        let created =
            matches!(intent, Intent::Create(_)) && grant.access == Access::Write && !exists(rule, path);
        let place = if created { Place::Quarantined } else { Place::Host };
        Verdict::deny(place, "it is protected: it can be read but not changed")
            .by(&rule.origin)
            .unless_lifted(&rule.origin)
    }

    fn granted_write(&self, path: &Path, grant: &Grant) -> Verdict {
        if grant.access == Access::Read {
            return Verdict::deny(Place::Host, "it is granted for reading only")
                .by(&grant.origin)
                .unless_allowed(&format!("write:{}", path.display()));
        }
        let waits = self.filesystem.workspace == Workspace::Overlay && path.starts_with(&self.project);
        match waits {
            true => Verdict::allow(Place::ChangeSet, "a rule grants it, and changes wait to be applied"),
            false => Verdict::allow(Place::Host, "a rule grants it"),
        }
        .by(&grant.origin)
    }

    fn ungranted_path(&self, path: &Path, intent: Intent<'_>, tier: Tier) -> Verdict {
        let place = if tier == Tier::Full { Place::Private } else { Place::Host };
        if devices(tier).iter().any(|device| path.starts_with(device)) {
            return Verdict::allow(place, "it is one of the devices every sandbox has");
        }
        if path.starts_with("/proc") && intent == Intent::See {
            return Verdict::allow(place, "programs cannot do without /proc");
        }
        let word = if intent == Intent::See { "read" } else { "write" };
        let target = format!("{word}:{}", path.display());
        if is_private(self, path, tier) && intent != Intent::See {
            let because = "it is not granted, so it lands in a private folder that vanishes with the session";
            return Verdict::allow(Place::Private, because).unless_allowed(&target);
        }
        Verdict::deny(Place::Absent, "no rule grants it").unless_allowed(&target)
    }
}

/// Absolute, and naming what it seems to name.
fn is_plain(path: &Path) -> bool {
    path.is_absolute() && !path.components().any(|part| part == Component::ParentDir)
}

/// Whether a rule holds for a path. A glob means what existed when the session started: it cannot mean a path that is
/// being created, only the folder that this is done in. Parts of the operating system are not searched for it, unless it
/// is anchored in one.
fn holds(rule: &PathRule, path: &Path, intent: Intent<'_>, grant: Option<&Grant>) -> bool {
    if !rule.pattern.is_glob() {
        return rule.pattern.covers(path);
    }
    let anchored = |grant: &Grant| rule.pattern.anchor().starts_with(&grant.path);
    let searched = grant.is_none_or(|grant| !grant.system || anchored(grant));
    let existing = if let Intent::Create(below) = intent { below } else { path };
    searched && rule.pattern.covers(existing)
}

/// Whether what the rule means exists: a glob means nothing else.
fn exists(rule: &PathRule, path: &Path) -> bool {
    match &rule.pattern {
        crate::PathPattern::Exact { found, .. } => found.is_some(),
        crate::PathPattern::Glob(glob) => glob.covers(path),
    }
}

/// Whether a path lies in a folder that is the sandbox's own where nothing is granted.
fn is_private(policy: &ResolvedPolicy, path: &Path, tier: Tier) -> bool {
    let private = path.starts_with(&policy.home) || PRIVATE_FOLDERS.iter().any(|own| path.starts_with(own));
    tier == Tier::Full && private
}
