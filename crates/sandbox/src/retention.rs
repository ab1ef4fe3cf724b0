//! How long the record is kept.

use std::fs;
use std::time::{Duration, SystemTime};

use redoma_audit::{Error, Purged, Store};
use redoma_policy::TimeSpan;

use crate::homes::Homes;

/// How often a run looks for what is too old.
const EVERY: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes sessions that ended longer ago than this.
///
/// # Errors
/// As [`Store::purge`].
pub fn purge(store: &Store, keep: TimeSpan) -> Result<Purged, Error> {
    let now = jiff::Timestamp::now();
    let age = jiff::SignedDuration::try_from(keep.0).unwrap_or(jiff::SignedDuration::MAX);
    now.checked_sub(age).map_or_else(|_| Ok(Purged::default()), |before| store.purge(before))
}

/// The same once a day, at the end of a run. What goes wrong is for the next day, or for `redoma audit purge` to say.
pub(crate) fn once_a_day(homes: &Homes, store: &Store, keep: TimeSpan) {
    let mark = homes.state().join("purged");
    let last = fs::metadata(&mark).and_then(|mark| mark.modified());
    let due = last.is_ok_and(|last| SystemTime::now().duration_since(last).is_ok_and(|age| age >= EVERY));
    if due || fs::symlink_metadata(&mark).is_err() {
        let _ = fs::write(&mark, "").and_then(|()| purge(store, keep).map_err(std::io::Error::other));
    }
}
