use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::Image;
use crate::tape::Tape;

struct World {
    home: TempDir,
    images: Images,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let images = Images::open(&home.path().join("images")).unwrap();
        Self { home, images }
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    fn import(&self, path: &Path, name: Option<&str>) -> Result<Image, Error> {
        let name = name.map(|name| name.parse().unwrap());
        let limits = Limits::default();
        let fetched = self.images.import(path, name.as_ref(), &limits)?;
        fetched.unpack(Ownership::Mine, &limits)?;
        fetched.publish(&self.images)
    }

    fn layers(&self) -> usize {
        self.images.files("layers").unwrap().len()
    }

    fn is_clean(&self) -> bool {
        self.images.files("staging").unwrap().is_empty()
    }

    fn text(&self, image: &Image, name: &str) -> String {
        let chain = image.chain(&self.images).unwrap();
        let found = chain.iter().map(|layer| layer.join(name)).find(|path| path.exists());
        fs::read_to_string(found.unwrap()).unwrap()
    }
}

fn root_fs() -> Vec<u8> {
    Tape::default().folder("./").file("./etc/hostname", b"bell\n").symlink("./bin", "usr/bin").end()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// What `docker save` writes: a configuration and layers by name.
fn saved(tags: &str, layers: &[Vec<u8>]) -> Vec<u8> {
    let ids: Vec<_> = layers.iter().map(|layer| Digest::of(layer)).collect();
    let config =
        serde_json::json!({ "os": "linux", "config": { "Cmd": ["sh"] }, "rootfs": { "diff_ids": ids } });
    let names: Vec<_> = (0..layers.len()).map(|index| format!("{index}/layer.tar")).collect();
    let manifest =
        format!(r#"[{{"Config":"c.json","RepoTags":{tags},"Layers":{}}}]"#, serde_json::json!(names));
    let mut tape = Tape::default().file("c.json", config.to_string().as_bytes());
    for (name, layer) in names.iter().zip(layers) {
        tape = tape.file(name, layer);
    }
    tape.file("manifest.json", manifest.as_bytes()).end()
}

#[test]
fn a_tarball_in_every_form_is_the_same_image() {
    let world = World::new();
    let tar = root_fs();
    let forms = [tar.clone(), gzip(&tar), zstd::encode_all(&tar[..], 1).unwrap()];
    let images = forms.map(|form| world.import(&world.file("root", &form), Some("mine")).unwrap());
    assert!(images.iter().all(|image| *image == images[0]));
    assert_eq!(world.layers(), 1);
    assert_eq!(world.text(&images[0], "etc/hostname"), "bell\n");
    assert_eq!(world.images.get(&"mine".parse().unwrap()).unwrap().as_ref(), Some(&images[0]));
    assert_eq!((images[0].size, images[0].config.env.len()), (5, 1));
    assert!(world.is_clean());
}

#[test]
fn a_tarball_needs_a_name_and_an_end() {
    let world = World::new();
    assert!(matches!(world.import(&world.file("a", &root_fs()), None), Err(Error::Naming { .. })));
    let cut = Tape::default().file("a", b"").cut();
    assert!(matches!(world.import(&world.file("a", &cut), Some("x")), Err(Error::Archive { .. })));
    assert!(matches!(world.import(&world.file("a", b""), Some("x")), Err(Error::Archive { .. })));
    assert!(matches!(world.import(&world.file("a", b"#!/bin/sh\n"), Some("x")), Err(Error::Archive { .. })));
    assert!(world.is_clean() && world.images.list().unwrap().is_empty() && world.layers() == 0);
}

#[test]
fn a_folder_comes_in_with_links_rights_and_attributes() {
    let world = World::new();
    let file = world.file("root/usr/bin/tool", b"program");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
    fs::hard_link(&file, file.with_file_name("same")).unwrap();
    let root = world.home.path().join("root");
    std::os::unix::fs::symlink("/etc", root.join("link")).unwrap();
    rustix::fs::setxattr(&file, "user.note", b"a\nb", rustix::fs::XattrFlags::empty()).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    let image = world.import(&root, Some("folder:1")).unwrap();
    let layer = image.chain(&world.images).unwrap().remove(0);
    let metadata = fs::metadata(layer.join("usr/bin/tool")).unwrap();
    assert_eq!((metadata.mode() & 0o7777, metadata.nlink()), (0o751, 2));
    assert_eq!(fs::read_link(layer.join("link")).unwrap(), Path::new("/etc"));
    assert!(layer.join("empty").is_dir());
    let mut value = [0; 8];
    assert_eq!(rustix::fs::getxattr(layer.join("usr/bin/tool"), "user.note", &mut value[..]), Ok(3));
    assert_eq!(world.import(&root, Some("folder:2")).unwrap().layers, image.layers);
}

#[test]
fn what_docker_saves_comes_in_with_its_name_and_every_layer_once() {
    let world = World::new();
    let bottom = Tape::default().file("a", b"bottom").file("b", b"bottom").end();
    let top = Tape::default().file("a", b"top").end();
    let archive = saved(r#"["db:1"]"#, &[bottom.clone(), top.clone(), bottom]);
    let image = world.import(&world.file("saved", &archive), None).unwrap();
    assert_eq!((image.reference.to_string(), image.layers.len(), world.layers()), ("db:1".into(), 3, 2));
    assert_eq!(image.chain(&world.images).unwrap().len(), 2);
    // The bottom layer lies on top as well.
    assert_eq!(world.text(&image, "a"), "bottom");
    assert_eq!((image.config.cmd, image.size), (vec!["sh".to_owned()], 15));
    assert!(world.is_clean());
}

#[test]
fn links_between_layers_of_an_old_archive_are_followed_inside_it_only() {
    let layer = Tape::default().file("a", b"1").end();
    let config = format!(r#"{{"rootfs":{{"diff_ids":["{}"]}}}}"#, Digest::of(&layer));
    let archive = |target: &str| {
        Tape::default()
            .file("c.json", config.as_bytes())
            .file("real/layer.tar", &layer)
            .symlink("linked/layer.tar", target)
            .file(
                "manifest.json",
                br#"[{"Config":"c.json","RepoTags":["x:1"],"Layers":["linked/layer.tar"]}]"#,
            )
            .end()
    };
    let world = World::new();
    assert!(world.import(&world.file("saved", &archive("../real/layer.tar")), None).is_ok());
    let world = World::new();
    world.file("outside.tar", &layer);
    assert!(world.import(&world.file("saved", &archive("../../../../outside.tar")), None).is_err());
    assert!(world.is_clean());
}

#[test]
fn a_layer_that_is_not_what_the_configuration_says_is_refused() {
    let world = World::new();
    let mut archive = saved(r#"["x:1"]"#, &[Tape::default().file("a", b"content").end()]);
    let at = archive.windows(7).position(|bytes| bytes == b"content").unwrap();
    archive[at] = b'C';
    assert!(matches!(world.import(&world.file("saved", &archive), None), Err(Error::DiffId { .. })));
    assert!(world.is_clean() && world.layers() == 0);
}

#[test]
fn an_archive_of_several_images_wants_to_know_which() {
    let world = World::new();
    let both = world.home.path().join("layout");
    let blob = |bytes: &[u8]| {
        let digest = Digest::of(bytes);
        world.file(&format!("layout/blobs/sha256/{}", digest.hex()), bytes);
        serde_json::json!({ "digest": digest, "size": bytes.len() })
    };
    let entry = |name: &str| {
        let layer = Tape::default().file("name", name.as_bytes()).end();
        let config = serde_json::json!({ "rootfs": { "diff_ids": [Digest::of(&layer)] } }).to_string();
        let mut descriptor = blob(&layer);
        descriptor["mediaType"] = "application/vnd.oci.image.layer.v1.tar".into();
        let manifest = serde_json::json!({ "schemaVersion": 2, "config": blob(config.as_bytes()), "layers": [descriptor] });
        let mut entry = blob(manifest.to_string().as_bytes());
        entry["annotations"] = serde_json::json!({ "org.opencontainers.image.ref.name": name });
        entry
    };
    let index = serde_json::json!({ "manifests": [entry("one:1"), entry("two:2")] });
    world.file("layout/index.json", index.to_string().as_bytes());
    world.file("layout/oci-layout", b"{}");
    let error = world.import(&both, None).unwrap_err();
    assert!(error.to_string().ends_with("holds several images: one:1, two:2"), "{error}");
    let two = world.import(&both, Some("two:2")).unwrap();
    assert_eq!(world.text(&two, "name"), "two:2");
    // A blob that is not what it is called is refused, manifest or layer.
    for file in fs::read_dir(both.join("blobs/sha256")).unwrap().map(|entry| entry.unwrap().path()) {
        let mut bytes = fs::read(&file).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        fs::write(file, bytes).unwrap();
    }
    assert!(matches!(world.import(&both, Some("one:1")), Err(Error::Content { .. })));
    assert!(world.is_clean());
}
