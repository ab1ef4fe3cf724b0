//! Manifests and indexes: what an image consists of.
//!
//! <https://github.com/opencontainers/image-spec/blob/main/manifest.md>, `image-index.md` beside it, and Docker's formats that
//! they were made from.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::config::ConfigFile;
use crate::limits::{Limits, within};
use crate::{DiffId, Digest, Error, Image, Reference};

/// What is asked of a registry, and understood.
pub(crate) const ACCEPTED: [&str; 4] = [
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
];
/// Layers that can be unpacked. How they are compressed is told by their content.
const LAYERS: [&str; 5] = [
    "application/vnd.oci.image.layer.v1.tar",
    "application/vnd.oci.image.layer.v1.tar+gzip",
    "application/vnd.oci.image.layer.v1.tar+zstd",
    "application/vnd.docker.image.rootfs.diff.tar",
    "application/vnd.docker.image.rootfs.diff.tar.gzip",
];

/// Something by its digest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Descriptor {
    #[serde(default)]
    pub(crate) media_type: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    platform: Option<Platform>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// A kind of machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Platform {
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    os: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
}

/// A document that a name leads to.
#[derive(Debug)]
pub(crate) enum Document {
    Image(Manifest),
    Index(Index),
}

/// One image for one kind of machine.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    pub(crate) schema_version: u8,
    #[serde(default)]
    pub(crate) media_type: String,
    pub(crate) config: Descriptor,
    pub(crate) layers: Vec<Descriptor>,
}

/// The same image for several kinds of machines.
#[derive(Debug, Deserialize)]
pub(crate) struct Index {
    pub(crate) manifests: Vec<Descriptor>,
}

/// An image, and where each of its layers comes from.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) image: Image,
    /// Bottom first.
    pub(crate) layers: Vec<(DiffId, Descriptor)>,
}

// === impl Descriptor ===

impl Descriptor {
    pub(crate) fn plain(media_type: &str, digest: Digest, size: u64) -> Self {
        Self { media_type: media_type.into(), digest, size, platform: None, annotations: BTreeMap::new() }
    }

    /// Whether what came is what it means.
    pub(crate) fn check(&self, what: &'static str, size: u64, actual: Digest) -> Result<(), Error> {
        if size != self.size {
            return Err(Error::Size { what, digest: self.digest, expected: self.size, actual: size });
        }
        if actual != self.digest {
            return Err(Error::Content { what, expected: self.digest, actual });
        }
        Ok(())
    }
}

// === impl Document ===

impl Document {
    /// # Errors
    /// [`Error::Document`] also for what would be an index to one program and an image to another: CVE-2021-41190.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let failed =
            |error: serde_json::Error| Error::Document { document: "manifest", why: error.to_string() };
        let invalid = |why: &str| Error::Document { document: "manifest", why: why.into() };
        let fields: BTreeMap<String, serde_json::Value> = serde_json::from_slice(bytes).map_err(failed)?;
        let has = |name| fields.contains_key(name);
        match (has("manifests"), has("layers") || has("config")) {
            (true, false) => serde_json::from_slice(bytes).map(Self::Index).map_err(failed),
            (false, true) => serde_json::from_slice(bytes).map(Self::Image).map_err(failed),
            (true, true) => Err(invalid("it is an index and an image at once")),
            (false, false) if fields.get("schemaVersion") == Some(&1.into()) => {
                Err(invalid("its format, schema 1, is given up; the image has to be pushed again"))
            }
            (false, false) => Err(invalid("it is neither an image nor an index")),
        }
    }
}

// === impl Index ===

impl Index {
    /// The entry for this kind of machine.
    pub(crate) fn pick(&self) -> Result<&Descriptor, Error> {
        let fits = |platform: &Platform| platform.os == "linux" && platform.architecture == architecture();
        let matching = || self.manifests.iter().filter(|entry| entry.platform.as_ref().is_some_and(fits));
        // Variants of one architecture ask for newer processors; the plain one runs on all.
        let is_plain = |entry: &&Descriptor| {
            let variant = entry.platform.as_ref().and_then(|platform| platform.variant.as_deref());
            matches!(variant, None | Some("" | "v1" | "v8"))
        };
        matching().find(is_plain).or_else(|| matching().next()).ok_or_else(|| self.mismatch())
    }

    fn mismatch(&self) -> Error {
        let platforms = self.manifests.iter().filter_map(|entry| entry.platform.as_ref());
        // Attestations are entries for no machine at all.
        let named = platforms.filter(|platform| platform.os != "unknown");
        let found: BTreeSet<String> =
            named.map(|it| format!("{}/{}", it.os, it.architecture)).take(20).collect();
        let found = found.into_iter().collect::<Vec<_>>().join(", ");
        Error::Platform { found: if found.is_empty() { "no machine".into() } else { found }, wanted: here() }
    }
}

// === impl Plan ===

impl Plan {
    /// Puts together what manifest and configuration say, where they agree.
    ///
    /// `digest` is the manifest's, `config` the verified configuration.
    pub(crate) fn new(
        reference: Reference,
        digest: Digest,
        manifest: &Manifest,
        config: &[u8],
        limits: &Limits,
    ) -> Result<Self, Error> {
        let invalid = |why: String| Error::Document { document: "configuration", why };
        let config: ConfigFile =
            serde_json::from_slice(config).map_err(|error| invalid(error.to_string()))?;
        check_platform(&config)?;
        check_layers(manifest, limits)?;
        let ids = config.rootfs.diff_ids.clone();
        if ids.len() != manifest.layers.len() {
            let (layers, ids) = (manifest.layers.len(), ids.len());
            return Err(invalid(format!("it names {ids} layers, and the manifest {layers}")));
        }
        let created = config.created.clone();
        let layers = ids.iter().copied().zip(manifest.layers.iter().cloned()).collect();
        let config = config.config();
        let image = Image { reference, digest, index: None, config, layers: ids, size: 0, created };
        Ok(Self { image, layers })
    }

    /// Each layer that has to be fetched, once.
    pub(crate) fn missing(&self, images: &crate::Images) -> Vec<(DiffId, Descriptor)> {
        let mut seen = BTreeSet::new();
        let is_missing = |id: DiffId| images.layer(id).is_none();
        self.layers.iter().filter(|(id, _)| seen.insert(*id) && is_missing(*id)).cloned().collect()
    }
}

fn check_platform(config: &ConfigFile) -> Result<(), Error> {
    let is_linux = matches!(config.os.as_str(), "" | "linux");
    if is_linux && (config.architecture.is_empty() || config.architecture == architecture()) {
        return Ok(());
    }
    Err(Error::Platform { found: format!("{}/{}", config.os, config.architecture), wanted: here() })
}

fn check_layers(manifest: &Manifest, limits: &Limits) -> Result<(), Error> {
    within("the number of layers", manifest.layers.len() as u64, limits.layers)?;
    within("the size of a configuration", manifest.config.size, limits.document)?;
    for layer in &manifest.layers {
        within("the size of a blob", layer.size, limits.blob)?;
        if !LAYERS.contains(&layer.media_type.as_str()) {
            let why = format!("a layer of the kind {:?} cannot be unpacked", layer.media_type);
            return Err(Error::Document { document: "manifest", why });
        }
    }
    Ok(())
}

fn here() -> String {
    format!("linux/{}", architecture())
}

/// This machine's architecture, as Go names it.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        "loongarch64" => "loong64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn index(entries: &[(&str, &str, Option<&str>, u64)]) -> Index {
        let entry = |(os, architecture, variant, size): &(&str, &str, Option<&str>, u64)| {
            serde_json::json!({ "digest": ID, "size": size,
                "platform": { "os": os, "architecture": architecture, "variant": variant } })
        };
        let text =
            serde_json::json!({ "manifests": entries.iter().map(entry).collect::<Vec<_>>() }).to_string();
        let Document::Index(index) = Document::parse(text.as_bytes()).unwrap() else {
            panic!("not an index")
        };
        index
    }

    fn manifest(media_type: &str, layers: usize) -> Manifest {
        let layer = serde_json::json!({ "mediaType": media_type, "digest": ID, "size": 1 });
        let text = serde_json::json!({ "schemaVersion": 2, "config": { "digest": ID, "size": 1 },
            "layers": vec![layer; layers] });
        serde_json::from_value(text).unwrap()
    }

    fn plan(manifest: &Manifest, config: &str) -> Result<Plan, Error> {
        let reference = "a".parse().unwrap();
        Plan::new(reference, Digest::of(b""), manifest, config.as_bytes(), &Limits::default())
    }

    #[test]
    fn this_kind_of_machine_is_picked_plain_before_special() {
        let here = architecture();
        let picked = index(&[
            ("windows", here, None, 1),
            ("linux", "pdp11", None, 2),
            ("linux", here, Some("v9"), 3),
            ("linux", here, None, 4),
        ]);
        assert_eq!(picked.pick().unwrap().size, 4);
        assert_eq!(index(&[("linux", here, Some("v9"), 3)]).pick().unwrap().size, 3);
    }

    #[test]
    fn without_this_kind_of_machine_the_others_are_named() {
        let error =
            index(&[("linux", "pdp11", None, 1), ("unknown", "unknown", None, 2)]).pick().unwrap_err();
        assert!(
            error.to_string().starts_with("the image is for linux/pdp11; this machine runs linux/"),
            "{error}"
        );
    }

    #[test]
    fn a_document_that_is_two_things_is_none() {
        let both = format!(
            r#"{{"schemaVersion":2,"manifests":[],"layers":[],"config":{{"digest":"{ID}","size":1}}}}"#
        );
        assert!(Document::parse(both.as_bytes()).is_err());
        assert!(Document::parse(b"{}").is_err() && Document::parse(b"[]").is_err());
        assert!(Document::parse(br#"{"schemaVersion":1}"#).unwrap_err().to_string().contains("schema 1"));
    }

    #[test]
    fn manifest_and_configuration_must_agree() {
        let good = manifest(LAYERS[1], 1);
        let config = |os: &str, ids: &str| format!(r#"{{"os":"{os}","rootfs":{{"diff_ids":[{ids}]}}}}"#);
        let id = format!("\"{ID}\"");
        assert_eq!(plan(&good, &config("linux", &id)).unwrap().image.layers.len(), 1);
        assert!(matches!(plan(&good, &config("linux", "")), Err(Error::Document { .. })));
        assert!(matches!(plan(&good, &config("windows", &id)), Err(Error::Platform { .. })));
        assert!(plan(&manifest("application/x-helm", 1), &config("linux", &id)).is_err());
        assert!(matches!(
            plan(&manifest(LAYERS[0], 128), &config("linux", &id)),
            Err(Error::Limit { limit: 127, .. })
        ));
    }
}
