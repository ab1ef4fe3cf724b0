//! Images as what sandboxes begin as.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use redoma_image::{About, DiffId, Fetched, Image, Images, Limits, Ownership, Pruned, Reference};
use redoma_jail::limits::{Leftover, LeftoverKind};
use serde::{Deserialize, Serialize};

use super::Native;
use super::mapped;
use super::store::{Base, Layer, Says};
use crate::driver::DriverError;

/// An error of the images' store on its way between processes.
#[derive(Debug, Serialize, Deserialize)]
struct Failed {
    why: String,
    hint: Option<String>,
}

impl Native {
    /// The images here.
    ///
    /// # Errors
    /// [`DriverError::Image`].
    pub fn images(&self) -> Result<Images, DriverError> {
        Ok(Images::open(&self.homes.state().join("images"))?)
    }

    /// Unpacks what was fetched, with the users of its files where they can exist, and puts it into the store. What its
    /// layers had that they have not is told as well.
    ///
    /// The process must have no other threads.
    ///
    /// # Errors
    /// [`DriverError::Image`].
    pub fn keep_image(&self, fetched: Fetched) -> Result<(Image, Vec<String>), DriverError> {
        let limits = Limits::default();
        let unpack = |ownership| fetched.unpack(ownership, &limits);
        let abouts: Vec<About> = if mapped::identity(true).is_ok() {
            across(|| unpack(Ownership::Keep))?
        } else {
            unpack(Ownership::Mine)?
        };
        let image = fetched.publish(&self.images()?)?;
        Ok((image, abouts.into_iter().flat_map(|about| about.notes).collect()))
    }

    /// Removes the layers that no image, sandbox or snapshot stands on.
    ///
    /// # Errors
    /// [`DriverError::Image`].
    pub fn prune_images(&self) -> Result<Pruned, DriverError> {
        let images = self.images()?;
        let exclusive = images.exclusive()?;
        // Only now nobody can begin to use a layer.
        let in_use = self.image_layers_in_use()?;
        match mapped::identity(true) {
            Ok(_) => across(|| exclusive.prune(&in_use)),
            Err(_) => Ok(exclusive.prune(&in_use)?),
        }
    }

    /// What killed pulls and imports left; removed unless `dry_run`.
    pub(crate) fn unfinished_images(&self, dry_run: bool) -> Vec<Leftover> {
        let folder = self.homes.state().join("images");
        let images = folder.is_dir().then(|| Images::open(&folder).ok()).flatten();
        // While somebody is at work, nothing is left over.
        let Some(exclusive) = images.as_ref().and_then(|images| images.exclusive().ok()) else {
            return Vec::new();
        };
        let left = exclusive.unfinished().unwrap_or_default();
        if !dry_run && !left.is_empty() {
            let sweep = || exclusive.sweep();
            // Whether it worked is looked at, file by file.
            match mapped::identity(true) {
                Ok(_) => drop(across(sweep)),
                Err(_) => drop(sweep()),
            }
        }
        let leftover = |path: PathBuf| {
            let removed = path.symlink_metadata().is_err();
            Leftover { kind: LeftoverKind::Folder, path, removed }
        };
        left.into_iter().map(leftover).collect()
    }

    fn image_layers_in_use(&self) -> Result<BTreeSet<DiffId>, DriverError> {
        let digest = |path: &Path| DiffId::from_hex(path.file_name()?.to_str()?);
        let used = self.store.layers_in_use()?.into_iter();
        Ok(used
            .filter_map(|layer| match layer {
                Layer::Image(path) => digest(&path),
                Layer::Frozen(_) | Layer::Folder(_) => None,
            })
            .collect())
    }

    /// What an image is, as a beginning.
    pub(super) fn base_of(&self, name: &str) -> Result<Base, DriverError> {
        let images = self.images()?;
        let reference: Reference = name.parse()?;
        let image = images.get(&reference)?;
        let image = image.ok_or_else(|| redoma_image::Error::NoImage { reference: reference.to_string() })?;
        let folder = images.folder().to_owned();
        let chain = image.chain(&images)?.into_iter().map(|layer| {
            let below = layer.strip_prefix(&folder).map(Path::to_owned);
            Layer::Image(below.unwrap_or(layer))
        });
        let config = &image.config;
        let env = config.env.iter().filter_map(|text| text.split_once('='));
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Ok(Base {
            chain: chain.collect(),
            says: Says {
                entrypoint: config.entrypoint.clone(),
                cmd: config.cmd.clone(),
                env: env.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
                workdir: some(&config.workdir).map(Into::into),
                user: some(&config.user),
            },
            digest: Some(image.digest.to_string()),
        })
    }
}

/// Does something with the users of ranges.
fn across<T: Serialize + serde::de::DeserializeOwned>(
    act: impl FnOnce() -> Result<T, redoma_image::Error>,
) -> Result<T, DriverError> {
    let told = |error: redoma_image::Error| Failed { why: error.to_string(), hint: error.hint() };
    let done: Result<T, Failed> = mapped::act(|| Ok(act().map_err(told))).map_err(|failure| {
        DriverError::Image { why: format!("cannot {failure}"), hint: "redoma doctor".into() }
    })?;
    done.map_err(|failed| DriverError::Image {
        why: failed.why,
        hint: failed.hint.unwrap_or_else(|| "redoma image ls".into()),
    })
}

impl From<redoma_image::Error> for DriverError {
    fn from(error: redoma_image::Error) -> Self {
        let hint = error.hint().unwrap_or_else(|| "redoma image ls".into());
        Self::Image { why: error.to_string(), hint }
    }
}
