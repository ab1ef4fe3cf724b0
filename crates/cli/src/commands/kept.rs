//! Which session `undo` and `changes` mean.

use std::path::PathBuf;

use redoma_audit::SessionState;
use redoma_sandbox::Kept;
use redoma_sandbox::homes::Homes;
use redoma_sandbox::settings::nearest_canonical;

use super::record;
use crate::failure::hinted;

/// The session that was named, by the beginning of its id, else the newest of this project; only those that `fit`.
///
/// The folder we stand in may be gone, and its `.git` with it: that is what is to be undone. So the project is not
/// looked for; the sessions know theirs.
pub(crate) fn pick(
    homes: &Homes,
    prefix: Option<&str>,
    fit: impl Fn(&Kept) -> bool,
) -> anyhow::Result<Option<Kept>> {
    let mut all = Kept::all(homes)?;
    let Some(prefix) = prefix else {
        let here = here();
        return Ok(all.into_iter().find(|kept| fit(kept) && here.starts_with(&kept.project)));
    };
    all.retain(|kept| kept.session.as_str().starts_with(prefix));
    if all.is_empty() {
        return Err(hinted(format!("no session {prefix}"), "redoma sessions"));
    }
    let named: Vec<Kept> = all.into_iter().filter(fit).collect();
    match <[Kept; 1]>::try_from(named) {
        Ok([kept]) => Ok(Some(kept)),
        Err(none) if none.is_empty() => Ok(None),
        Err(several) => Err(hinted(
            format!("{prefix} could be {} or {}", several[0].session, several[1].session),
            "redoma sessions",
        )),
    }
}

/// Refuses to touch what a running session is working on.
pub(crate) fn must_have_ended(kept: &Kept, homes: &Homes) -> anyhow::Result<()> {
    if kept.ended.is_some() {
        return Ok(());
    }
    let store = record::open_in(homes)?;
    for summary in store.sessions()? {
        let summary = summary?;
        if summary.session == kept.session && summary.state == SessionState::Running {
            let follow = format!("redoma log --follow {}", kept.session);
            return Err(hinted(format!("session {} is still running", kept.session), follow));
        }
    }
    Ok(())
}

fn here() -> PathBuf {
    let named = || std::env::var_os("PWD").map(PathBuf::from).filter(|path| path.is_absolute());
    nearest_canonical(&std::env::current_dir().ok().or_else(named).unwrap_or_default())
}
