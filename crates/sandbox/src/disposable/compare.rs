//! What differs between two file systems, read layer by layer from outside: nothing is mounted and no program of an image
//! is asked.

use std::path::PathBuf;

use redoma_audit::escape::printable;
use redoma_layers::text::Body;
use redoma_layers::{Change, ChangeKind, Facts};

use super::Native;
use super::mapped;
use super::store::{Base, Layer};
use crate::driver::{Comparing, Difference, Differs, DriverError, Name, What};

impl Comparing for Native {
    fn diff(&self, before: &str, after: &str, content: bool) -> Result<Vec<Difference>, DriverError> {
        let (before, after) = (self.chain(before)?, self.chain(after)?);
        let diff = || match redoma_layers::diff(&before, &after, content) {
            Ok(changes) => Ok(changes.into_iter().map(difference).collect::<Vec<_>>()),
            Err(error) => Err((error.to_string(), error.hint())),
        };
        let compared = match mapped::identity(true) {
            Ok(_) => mapped::act(|| Ok(diff())).map_err(|failure| DriverError::Files {
                why: format!("cannot {failure}"),
                hint: "redoma doctor".into(),
            })?,
            Err(_) => diff(),
        };
        compared.map_err(|(why, hint)| DriverError::Files { why, hint })
    }
}

impl Native {
    /// The layers of a snapshot, or of a sandbox as it is now; the topmost first.
    fn chain(&self, text: &str) -> Result<Vec<PathBuf>, DriverError> {
        let snapshot = text.parse::<Name>().ok().filter(|name| self.store.has_snapshot(name));
        if let Some(name) = snapshot {
            return Ok(self.folders(&self.store.snapshot(&name)?.base));
        }
        let id = self.store.find(text).map_err(|_| DriverError::NoSnapshot(text.to_owned()))?;
        let record = self.store.read(&id)?.ok_or_else(|| DriverError::NoSnapshot(text.to_owned()))?;
        let own = self.store.folder(&id).join("upper");
        Ok(std::iter::once(own).chain(self.folders(&record.base)).collect())
    }

    fn folders(&self, base: &Base) -> Vec<PathBuf> {
        base.chain.iter().map(|layer: &Layer| self.store.layer(layer)).collect()
    }
}

fn difference(change: Change) -> Difference {
    let text = match change.body {
        Body::Text(text) => Some(text),
        Body::None | Body::Binary { .. } | Body::Link { .. } => None,
    };
    Difference {
        path: format!("/{}", printable(&change.path)),
        differs: match change.kind {
            ChangeKind::Added => Differs::Added,
            ChangeKind::Removed => Differs::Removed,
            ChangeKind::Modified => Differs::Modified,
            ChangeKind::Attributes => Differs::Mode,
            ChangeKind::Type => Differs::Kind,
        },
        before: change.before.map(what),
        after: change.after.map(what),
        text,
    }
}

fn what(facts: Facts) -> What {
    What { mode: facts.mode, uid: facts.uid, gid: facts.gid, size: facts.size }
}
