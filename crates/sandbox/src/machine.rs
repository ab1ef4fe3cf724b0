//! What this machine can enforce, remembered from run to run.

use std::fs;
use std::path::{Path, PathBuf};

use redoma_jail::{Missing, Probes, fingerprint};
use redoma_policy::Tier;
use serde::{Deserialize, Serialize};

use crate::error::RunError;
use crate::homes::Homes;

/// The answers, and what they hold for.
#[derive(Serialize, Deserialize)]
struct Remembered {
    fingerprint: String,
    probes: Probes,
}

/// The probes of this boot. They are run when the remembered ones are missing or of another boot, user or setting.
pub fn probes(homes: &Homes) -> Probes {
    let path = homes.cache().join("probes.json");
    let fingerprint = fingerprint();
    if let Some(probes) = recall(&path, &fingerprint) {
        return probes;
    }
    let probes = Probes::run();
    // A refusal is asked again each time: what was missing may just have been mended.
    if probes.best_tier() == Some(Tier::Full) {
        remember(&path, &Remembered { fingerprint, probes: probes.clone() });
    }
    probes
}

fn recall(path: &Path, fingerprint: &str) -> Option<Probes> {
    let remembered: Remembered = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    (remembered.fingerprint == fingerprint).then_some(remembered.probes)
}

/// A cache that cannot be written costs the next run a few milliseconds, nothing else.
fn remember(path: &PathBuf, remembered: &Remembered) {
    let write = || -> std::io::Result<()> {
        crate::folder::private(path.parent().unwrap_or(Path::new("/")))?;
        let temporary = path.with_extension(format!("{}.new", std::process::id()));
        fs::write(&temporary, serde_json::to_vec(remembered)?)?;
        fs::rename(&temporary, path)
    };
    let _ = write();
}

/// The tier to use: the one asked for, or the best there is.
///
/// # Errors
/// [`RunError::NoBoundary`] with what is missing.
pub fn choose_tier(probes: &Probes, asked: Option<Tier>) -> Result<Tier, RunError> {
    let wanted = asked.or_else(|| probes.best_tier()).unwrap_or(Tier::Full);
    match probes.missing(wanted) {
        None => Ok(wanted),
        Some(missing) => Err(RunError::NoBoundary { missing }),
    }
}

/// What an overlay workspace lacks here.
pub(crate) fn missing_overlay(probes: &Probes) -> Option<Missing> {
    probes.overlay.as_ref().err().cloned()
}
