//! The record, as several commands need it.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use redoma_audit::{SessionId, Store};
use redoma_sandbox::homes::Homes;

use crate::failure::hinted;

/// Opens this user's record.
pub(crate) fn open() -> anyhow::Result<Store> {
    open_in(&Homes::from_env()?)
}

/// Opens the record in these folders.
pub(crate) fn open_in(homes: &Homes) -> anyhow::Result<Store> {
    Ok(Store::open(homes.state(), &homes.keys())?)
}

/// The session that was named, by the beginning of its id, else the newest.
pub(crate) fn pick(store: &Store, prefix: Option<&str>) -> anyhow::Result<SessionId> {
    if let Some(prefix) = prefix {
        return Ok(store.find(prefix)?);
    }
    let newest = store.sessions()?.next().transpose()?;
    newest
        .map(|summary| summary.session)
        .ok_or_else(|| hinted("there is no session yet", "redoma run --net none -- true"))
}

/// Date and time of day where the user is, to the second.
pub(crate) fn local_time(time: Timestamp) -> String {
    time.to_zoned_datetime(TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// The time of day where the user is, to the millisecond.
pub(crate) fn local_clock(time: Timestamp) -> String {
    time.to_zoned_datetime(TimeZone::system()).strftime("%H:%M:%S%.3f").to_string()
}
