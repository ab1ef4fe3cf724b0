//! What must not appear in the host's folders that a sandbox writes: moved away when it does, and at the end.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

use redoma_policy::ResolvedPolicy;

use super::drawing::written;
use crate::driver::Spec;
use crate::error::RunError;
use crate::gitguard::{self, Before};
use crate::homes::Homes;
use crate::quarantine::{Quarantined, Watch};
use crate::view::View;

/// Watches over what is mounted to be written.
#[derive(Debug)]
pub(crate) struct Guard {
    watch: Option<Watch>,
    git: Before,
    quarantine: PathBuf,
}

impl Guard {
    /// Looks at what is there before the first command; none where nothing of the host's is written.
    pub(crate) fn set_up(spec: &Spec, view: &View, folder: &Path) -> Result<Option<Self>, RunError> {
        let roots: Vec<PathBuf> = written(spec).map(|mount| mount.from.clone()).collect();
        if roots.is_empty() {
            return Ok(None);
        }
        let quarantine = folder.join("quarantine");
        let absent: Vec<PathBuf> = view
            .absent
            .iter()
            .filter(|path| roots.iter().any(|root| path.starts_with(root)))
            .cloned()
            .collect();
        let watch = (!absent.is_empty()).then(|| Watch::new(&roots, &absent, &quarantine)).transpose()?;
        Ok(Some(Self { watch, git: view.git.clone(), quarantine }))
    }

    /// From now on what appears is told; what has is moved away.
    pub(crate) fn listen(&mut self) -> Result<Vec<Quarantined>, RunError> {
        Ok(self.watch.as_mut().map(Watch::listen).transpose()?.unwrap_or_default())
    }

    /// Readable when something appeared.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.watch.as_ref()?.fd()
    }

    /// Moves away what appeared.
    ///
    /// # Errors
    /// When it cannot hear any more: then nobody would.
    pub(crate) fn handle(&mut self) -> Result<Vec<Quarantined>, RunError> {
        let Some(watch) = &mut self.watch else { return Ok(Vec::new()) };
        let found = watch.handle();
        watch.deaf().map_or(Ok(found), |error| Err(error.into()))
    }

    /// Nothing runs any more: what is there is moved away, and repositories that were made are judged.
    pub(crate) fn finish(&mut self, homes: &Homes, policy: &ResolvedPolicy) -> Vec<Quarantined> {
        let mut found = self.watch.as_mut().map(Watch::sweep).unwrap_or_default();
        let judged = gitguard::judge(policy, homes, &self.git, &self.quarantine.join("git"));
        found.extend(judged.quarantined);
        found
    }
}
