//! From the name of an image to the one image that it means.

use bollard::models::ImageInspect;
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::TryStreamExt;
use redoma_sandbox::driver::{DriverError, ImageName};

use crate::driver::OciDriver;
use crate::error::{engine, status, unsupported, words};
use crate::labels::Starts;

/// An image of the engine's, by what cannot come to mean another one.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    /// The engine's own id of it, a digest of its configuration.
    pub(crate) id: String,
    /// The digest that registries know it by, else its id.
    pub(crate) digest: String,
    /// What it starts by itself.
    pub(crate) starts: Starts,
}

impl Image {
    /// Finds it, or pulls it where the engine does not have it yet.
    pub(crate) fn resolve(driver: &OciDriver, name: &ImageName) -> Result<Self, DriverError> {
        let ImageName::Reference(name) = name else {
            return Err(unsupported(
                format!("begin with {name}: an engine has images only"),
                "name an image, as `debian:12`, or use the native driver: `--driver native`",
            ));
        };
        if let Some(image) = Self::find(driver, name)? {
            return Ok(image);
        }
        let options = CreateImageOptionsBuilder::default().from_image(&tagged(name)).build();
        let pulled = driver.docker().create_image(Some(options), None, None).try_collect::<Vec<_>>();
        driver.wait(pulled).map_err(|error| DriverError::Image {
            why: format!("{name}: {}", words(&error)),
            hint: format!("docker pull {name}"),
        })?;
        Self::find(driver, name)?.ok_or_else(|| DriverError::Image {
            why: format!("{name} is not there after it was pulled"),
            hint: format!("docker pull {name}"),
        })
    }

    pub(crate) fn find(driver: &OciDriver, name: &str) -> Result<Option<Self>, DriverError> {
        match driver.wait(driver.docker().inspect_image(name)) {
            Ok(found) => Ok(Some(Self::of(found))),
            Err(error) if status(&error) == Some(404) => Ok(None),
            Err(error) => Err(engine(error)),
        }
    }

    fn of(found: ImageInspect) -> Self {
        let id = found.id.unwrap_or_default();
        let digests = found.repo_digests.unwrap_or_default();
        let digest =
            digests.first().and_then(|name| name.split_once('@')).map(|(_, digest)| digest.to_owned());
        let config = found.config.unwrap_or_default();
        let starts = (config.entrypoint.unwrap_or_default(), config.cmd.unwrap_or_default());
        Self { digest: digest.unwrap_or_else(|| id.clone()), id, starts }
    }
}

/// Without a tag an engine would pull every tag there is.
fn tagged(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    if last.contains([':', '@']) { name.to_owned() } else { format!("{name}:latest") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_tag_is_pulled() {
        assert_eq!(tagged("debian"), "debian:latest");
        assert_eq!(tagged("localhost:5000/debian"), "localhost:5000/debian:latest");
        assert_eq!(tagged("debian:12"), "debian:12");
        assert_eq!(tagged("debian@sha256:0"), "debian@sha256:0");
    }
}
