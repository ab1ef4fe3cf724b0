//! Frozen file systems are images of the engine's, under a name of ours.

use std::time::{SystemTime, UNIX_EPOCH};

use bollard::models::{ContainerConfig, ImageSummary};
use bollard::query_parameters::{
    CommitContainerOptionsBuilder, ListImagesOptionsBuilder, RemoveImageOptionsBuilder,
    TagImageOptionsBuilder,
};
use redoma_sandbox::driver::{
    DriverError, DriverName, Info, Name, SandboxId, SnapshotInfo, Snapshots, Spec, State,
};

use crate::driver::{Found, OciDriver};
use crate::error::{engine, status};
use crate::images::Image;
use crate::labels::{self, Kind};

impl Snapshots for OciDriver {
    fn snapshot(&self, id: &SandboxId, name: &Name) -> Result<SnapshotInfo, DriverError> {
        let found = self.find(id)?;
        if self.frozen(name)?.is_some() {
            return Err(DriverError::NameTaken(name.clone()));
        }
        let (of, taken) = (found.spec()?, now());
        let labels =
            self.0.realm.changes(name, &of, &found.digest().unwrap_or_default(), taken, &found.starts());
        // What is paused stays so.
        let pause = found.state() == State::Running;
        let (repository, tag) = self.image_name(name);
        let options = CommitContainerOptionsBuilder::default()
            .container(found.id())
            .repo(&repository)
            .tag(&tag)
            .pause(pause)
            // Podman takes labels in no other form.
            .changes(&labels)
            .build();
        let frozen = self.docker().commit_container(options, ContainerConfig::default());
        self.wait(frozen).map_err(engine)?;
        let image = of.image.clone();
        Ok(SnapshotInfo {
            name: name.clone(),
            of,
            driver: DriverName::Oci,
            image,
            bytes: None,
            created: taken,
        })
    }

    fn fork(&self, snapshot: &Name, spec: &Spec) -> Result<Info, DriverError> {
        let frozen = self.frozen(snapshot)?.ok_or_else(|| DriverError::NoSnapshot(snapshot.to_string()))?;
        let digest = labels::digest(&frozen.labels).unwrap_or_else(|| frozen.id.clone());
        let starts = labels::starts(&frozen.labels).unwrap_or_default();
        self.make(spec, &Image { id: frozen.id, digest, starts })
    }

    fn snapshots(&self) -> Result<Vec<SnapshotInfo>, DriverError> {
        let mut all: Vec<SnapshotInfo> = self.all_frozen()?.iter().filter_map(described).collect();
        all.sort_by_key(|snapshot| snapshot.created);
        Ok(all)
    }

    fn remove(&self, name: &Name) -> Result<(), DriverError> {
        let gone = || DriverError::NoSnapshot(name.to_string());
        let frozen = self.frozen(name)?.ok_or_else(gone)?;
        let (repository, tag) = self.image_name(name);
        // Podman would take every container on it along, were it told to remove a last name by force. So it gets another
        // name first, under which nobody finds it, and which goes with the last sandbox on it.
        let kept = self.kept_name(&frozen.id);
        let options = TagImageOptionsBuilder::default().repo(&kept).tag("latest").build();
        self.wait(self.docker().tag_image(&frozen.id, Some(options))).map_err(engine)?;
        let removed = self.remove_image(&format!("{repository}:{tag}"));
        self.forget(&frozen.id);
        match removed {
            Ok(()) => Ok(()),
            Err(error) if status(&error) == Some(404) => Err(gone()),
            Err(error) => Err(engine(error)),
        }
    }
}

impl OciDriver {
    /// Images have lower-case names and any tag.
    fn image_name(&self, name: &Name) -> (String, String) {
        (format!("localhost/redoma/snapshot-{}", self.0.realm.as_str()), name.to_string())
    }

    /// Those that still have their name.
    fn all_frozen(&self) -> Result<Vec<ImageSummary>, DriverError> {
        let realm = &self.0.realm;
        let filters = realm.filter();
        let options = ListImagesOptionsBuilder::default().filters(&filters).build();
        let all = self.wait(self.docker().list_images(Some(options))).map_err(engine)?;
        let named = |image: &ImageSummary| {
            realm.owns(&image.labels, Kind::Snapshot, None)
                && image.repo_tags.iter().any(|tag| tag.contains("redoma/snapshot-"))
        };
        Ok(all.into_iter().filter(named).collect())
    }

    fn frozen(&self, name: &Name) -> Result<Option<ImageSummary>, DriverError> {
        let is_it =
            |image: &ImageSummary| labels::taken(&image.labels).is_some_and(|(taken, _)| taken == *name);
        Ok(self.all_frozen()?.into_iter().find(is_it))
    }

    fn kept_name(&self, image: &str) -> String {
        let digest = image.trim_start_matches("sha256:");
        format!("localhost/redoma/kept-{}-{}", self.0.realm.as_str(), digest.get(..12).unwrap_or(digest))
    }

    fn remove_image(&self, name: &str) -> Result<(), bollard::errors::Error> {
        let options = RemoveImageOptionsBuilder::default().build();
        self.wait(self.docker().remove_image(name, Some(options), None)).map(drop)
    }

    /// Removes the image of a snapshot that has no name any more, unless somebody stands on it.
    fn forget(&self, image: &str) {
        // Refused while there is a container on it, which is right.
        let _ = self.remove_image(&format!("{}:latest", self.kept_name(image)));
    }

    /// The same for the image of a sandbox that is gone.
    pub(crate) fn forget_image(&self, found: &Found) {
        if let Some(image) = found.image_id() {
            self.forget(image);
        }
    }
}

fn described(image: &ImageSummary) -> Option<SnapshotInfo> {
    let (name, created) = labels::taken(&image.labels)?;
    let of = labels::spec(&image.labels).ok()?;
    let bytes = u64::try_from(image.size).ok();
    Some(SnapshotInfo { name, image: of.image.clone(), of, driver: DriverName::Oci, bytes, created })
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
