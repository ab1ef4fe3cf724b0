//! One cgroup of a session, drawn first and made later.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use super::claim::Claim;
use super::report::{By, Enforced, Hit, Limit, Peak};
use super::{cgroup1, cgroup2};

/// What the names of our cgroups, and of other folders that end with a session, start with.
pub(super) const PREFIX: &str = "redoma-";

/// Where the kernel keeps its list of swap areas. See `proc_swaps(5)`.
const SWAPS: &str = "/proc/swaps";

/// What to write where, in order, for a cgroup that holds what `limits` say.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) version: Version,
    pub(super) folder: PathBuf,
    pub(super) limits: Vec<(Limit, u64)>,
    /// Files of cgroups above that must say which controllers there are below, from the top down (version 2).
    pub(super) enable: Vec<Setting>,
    /// Files in `folder`.
    pub(super) settings: Vec<Setting>,
    pub(super) caveats: Vec<(Limit, String)>,
    pub(super) claim: Option<Claim>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    One,
    Two,
}

/// A file to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) file: PathBuf,
    pub(super) value: String,
    /// Which limit does not hold without it. None: no limit at all does.
    pub(super) limit: Option<Limit>,
    /// Whether it only concerns swap, which kernels can be told not to count.
    pub(super) swap: bool,
}

/// A limit with its value that could not be set, and why.
pub(super) type Failed = (Limit, u64, String);

impl Group {
    /// One with neither limits nor settings yet.
    pub(super) fn new(version: Version, parent: &Path, session: &str) -> Self {
        let folder = parent.join(format!("{PREFIX}{session}"));
        let (limits, enable, settings, caveats) = Default::default();
        Self { version, folder, limits, enable, settings, caveats, claim: None }
    }

    /// Adds a setting in place of one for the same file.
    pub(super) fn set(&mut self, name: &str, value: &impl ToString, limit: Limit, swap: bool) {
        let file = self.folder.join(name);
        self.settings.retain(|setting| setting.file != file);
        self.settings.push(Setting { file, value: value.to_string(), limit: Some(limit), swap });
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Version 2 has `cgroup.kill`.
    pub(super) fn needs_fork_stop(&self) -> bool {
        self.version == Version::One
    }

    pub(super) fn is_made(&self) -> bool {
        self.claim.is_some()
    }

    /// The limit to name when the cgroup as a whole fails.
    pub(super) fn first_limit(&self) -> Limit {
        self.limits.first().map_or(Limit::Pids, |(limit, _)| *limit)
    }

    pub(super) fn enforced(&self) -> impl Iterator<Item = Enforced> {
        let caveat = |limit| self.caveats.iter().find(|(of, _)| *of == limit).map(|(_, why)| why.clone());
        self.limits.iter().map(move |&(limit, value)| Enforced {
            limit,
            value,
            by: self.by(),
            caveat: caveat(limit),
        })
    }

    /// Makes the cgroup; which limits it will not hold.
    pub(super) fn make(&mut self) -> Vec<Failed> {
        match self.make_all() {
            Ok(failed) => {
                self.limits.retain(|(limit, _)| failed.iter().all(|(of, ..)| of != limit));
                failed
            }
            Err(why) => {
                // Only what was made here: a folder that was in the way is somebody else's.
                if let Some(claim) = self.claim.take() {
                    super::clear::remove(claim.path());
                }
                std::mem::take(&mut self.limits)
                    .into_iter()
                    .map(|(limit, value)| (limit, value, why.clone()))
                    .collect()
            }
        }
    }

    fn make_all(&mut self) -> Result<Vec<Failed>, String> {
        let mut failed = Vec::new();
        for setting in &self.enable {
            self.write(setting, &mut failed)?;
        }
        let claim = Claim::make(&self.folder)
            .map_err(|error| format!("cannot create {}: {error}", self.folder.display()))?;
        self.claim = Some(claim);
        let mut uncounted_swap = false;
        for setting in &self.settings {
            // No such file: the kernel does not count swap. That is as good if there is none.
            if setting.swap && !setting.file.exists() {
                uncounted_swap |= has_swap();
                continue;
            }
            self.write(setting, &mut failed)?;
        }
        if uncounted_swap {
            self.caveats.push((Limit::Memory, "without swap, which the kernel was told not to count".into()));
        }
        if self.version == Version::Two {
            cgroup2::pin(&self.folder)
                .map_err(|error| format!("cannot set up {}: {error}", self.folder.display()))?;
        }
        Ok(failed)
    }

    fn write(&self, setting: &Setting, failed: &mut Vec<Failed>) -> Result<(), String> {
        let Err(error) = fs::write(&setting.file, &setting.value) else { return Ok(()) };
        let why = format!("cannot write {:?} to {}: {error}", setting.value, setting.file.display());
        let of = self.limits.iter().find(|(limit, _)| Some(*limit) == setting.limit);
        let (limit, value) = of.ok_or_else(|| why.clone())?;
        if failed.iter().all(|(known, ..)| known != limit) {
            failed.push((*limit, *value, why));
        }
        Ok(())
    }

    /// Moves a process in; what it starts from then on is in as well.
    pub(super) fn enter(&self, pid: Pid) -> io::Result<()> {
        let inner = match self.version {
            Version::One => self.folder.clone(),
            Version::Two => self.folder.join(cgroup2::LEAF),
        };
        fs::write(inner.join("cgroup.procs"), pid.as_raw_nonzero().to_string())
    }

    pub(super) fn hits(&self) -> Vec<Hit> {
        let hit = |&(limit, value): &(Limit, u64)| {
            let (times, action) = match self.version {
                Version::One => cgroup1::reached(&self.folder, limit),
                Version::Two => cgroup2::reached(&self.folder, limit),
            }?;
            (times > 0).then(|| Hit { limit, value, times, action, by: self.by() })
        };
        self.limits.iter().filter_map(hit).collect()
    }

    pub(super) fn peak(&self) -> Peak {
        let read = |name: &str| number(&self.folder.join(name));
        let memory = match self.version {
            Version::One => {
                read("memory.memsw.max_usage_in_bytes").or_else(|| read("memory.max_usage_in_bytes"))
            }
            Version::Two => read("memory.peak"),
        };
        Peak { memory, pids: read("pids.peak") }
    }

    fn by(&self) -> By {
        match self.version {
            Version::One => By::Cgroup1,
            Version::Two => By::Cgroup2,
        }
    }
}

/// The first line of the file is a heading.
fn has_swap() -> bool {
    fs::read_to_string(SWAPS).is_ok_and(|list| list.lines().count() > 1)
}

/// The content of a file that holds one number; none for `max`.
pub(super) fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The value after `key` in a file of `key value` lines.
pub(super) fn keyed(file: &Path, key: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}
