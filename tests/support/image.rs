//! Images made by hand, layer by layer: also those that no honest program would make.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use redoma_image::Digest;
use serde_json::{Value, json};
use tar::{EntryType, Header};
use tempfile::TempDir;

/// A layer in the making: a tar stream whose names are not looked at.
#[derive(Default, Clone)]
pub struct Layer(Vec<u8>);

impl Layer {
    /// A file.
    #[must_use]
    pub fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.entry(EntryType::Regular, name, "", 0o755, content.as_ref())
    }

    /// A folder.
    #[must_use]
    pub fn folder(self, name: &str) -> Self {
        self.entry(EntryType::Directory, name, "", 0o755, b"")
    }

    /// A symbolic link.
    #[must_use]
    pub fn symlink(self, name: &str, target: &str) -> Self {
        self.entry(EntryType::Symlink, name, target, 0o777, b"")
    }

    /// A second name for a file.
    #[must_use]
    pub fn hardlink(self, name: &str, target: &str) -> Self {
        self.entry(EntryType::Link, name, target, 0o755, b"")
    }

    /// A device.
    #[must_use]
    pub fn device(self, name: &str) -> Self {
        self.entry(EntryType::Block, name, "", 0o666, b"")
    }

    /// A folder that is somebody else's and closed to everybody but them.
    #[must_use]
    pub fn sealed(self, name: &str, owner: u64) -> Self {
        self.owned(EntryType::Directory, name, "", (0o700, owner), b"")
    }

    fn entry(self, kind: EntryType, name: &str, link: &str, mode: u32, content: &[u8]) -> Self {
        self.owned(kind, name, link, (mode, 0), content)
    }

    fn owned(
        mut self,
        kind: EntryType,
        name: &str,
        link: &str,
        (mode, owner): (u32, u64),
        content: &[u8],
    ) -> Self {
        let mut header = Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_size(content.len() as u64);
        header.set_mtime(1_000_000_000);
        header.set_uid(owner);
        header.set_gid(owner);
        let gnu = header.as_gnu_mut().unwrap();
        gnu.name[..name.len()].copy_from_slice(name.as_bytes());
        gnu.linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        self.0.extend_from_slice(header.as_bytes());
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(512), 0);
        self
    }

    /// The whole stream.
    #[must_use]
    pub fn tar(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 1024, 0);
        self.0
    }
}

/// A folder with images: an OCI layout.
pub struct Layout {
    folder: TempDir,
    entries: Vec<Value>,
}

impl Layout {
    /// An empty one.
    ///
    /// # Panics
    /// If it cannot be written.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "making folders is not what a default does")]
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("redoma-e2e-").tempdir().unwrap();
        fs::create_dir_all(folder.path().join("blobs/sha256")).unwrap();
        fs::write(folder.path().join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        let layout = Self { folder, entries: Vec::new() };
        layout.write_index();
        layout
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Adds an image of these layers, bottom first; the digest of its manifest.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn add(&mut self, tag: &str, layers: &[Layer]) -> String {
        self.add_for(tag, "amd64", layers)
    }

    /// Adds an image that says it is for another kind of machine.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn add_for(&mut self, tag: &str, architecture: &str, layers: &[Layer]) -> String {
        let manifest = self.manifest(architecture, layers);
        self.name(manifest, tag)
    }

    /// Adds an index of images, one for each kind of machine; its digest.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn add_index(&mut self, tag: &str, images: &[(&str, Layer)]) -> String {
        let entry = |(architecture, layer): &(&str, Layer)| {
            let mut manifest = self.manifest(architecture, std::slice::from_ref(layer));
            manifest["platform"] = json!({ "architecture": architecture, "os": "linux" });
            manifest
        };
        let kind = "application/vnd.oci.image.index.v1+json";
        let manifests: Vec<_> = images.iter().map(entry).collect();
        let index = json!({ "schemaVersion": 2, "mediaType": kind, "manifests": manifests });
        let index = self.blob(kind, index.to_string().as_bytes());
        self.name(index, tag)
    }

    fn manifest(&self, architecture: &str, layers: &[Layer]) -> Value {
        let tars: Vec<_> = layers.iter().cloned().map(Layer::tar).collect();
        let ids: Vec<_> = tars.iter().map(|tar| Digest::of(tar)).collect();
        let config = json!({ "architecture": architecture, "os": "linux", "config": { "Cmd": ["/bin/sh"] },
            "rootfs": { "type": "layers", "diff_ids": ids } });
        let kind = "application/vnd.oci.image.layer.v1.tar+gzip";
        let layers: Vec<_> = tars.iter().map(|tar| self.blob(kind, &gzip(tar))).collect();
        let config = self.blob("application/vnd.oci.image.config.v1+json", config.to_string().as_bytes());
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let manifest = json!({ "schemaVersion": 2, "mediaType": kind, "config": config, "layers": layers });
        self.blob(kind, manifest.to_string().as_bytes())
    }

    fn blob(&self, kind: &str, bytes: &[u8]) -> Value {
        let digest = Digest::of(bytes);
        fs::write(self.path().join("blobs/sha256").join(digest.hex()), bytes).unwrap();
        json!({ "mediaType": kind, "digest": digest, "size": bytes.len() })
    }

    fn name(&mut self, mut descriptor: Value, tag: &str) -> String {
        descriptor["annotations"] = json!({ "org.opencontainers.image.ref.name": tag });
        let digest = descriptor["digest"].as_str().unwrap().to_owned();
        self.entries.push(descriptor);
        self.write_index();
        digest
    }

    fn write_index(&self) {
        let index = json!({ "schemaVersion": 2, "manifests": self.entries });
        fs::write(self.path().join("index.json"), index.to_string()).unwrap();
    }

    /// Copies an image to elsewhere, as skopeo names places.
    ///
    /// # Panics
    /// If skopeo fails.
    pub fn copy(&self, tag: &str, to: &str) {
        let from = format!("oci:{}:{tag}", self.path().display());
        let mut skopeo = Command::new("skopeo");
        skopeo.args(["--insecure-policy", "copy", "--all", "--dest-tls-verify=false", &from, to]);
        skopeo.args(["--authfile".as_ref(), self.auth_file().as_os_str()]);
        let ran = skopeo.output().unwrap();
        assert!(ran.status.success(), "{skopeo:?}: {}", String::from_utf8_lossy(&ran.stderr));
    }

    /// Passwords for copying, where some were given.
    #[must_use]
    pub fn auth_file(&self) -> PathBuf {
        let path = self.path().join("auth.json");
        if !path.exists() {
            fs::write(&path, "{}").unwrap();
        }
        path
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
