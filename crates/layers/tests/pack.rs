//! What a chain shows is packed as a tar stream that others can read.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

mod layer;

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use layer::{Layers, chain};
use redoma_layers::{Error, pack};

/// Unpacks by the machine's own tar.
fn unpack(stream: &[u8], to: &Path) {
    let archive = to.with_extension("tar");
    File::create(&archive).unwrap().write_all(stream).unwrap();
    fs::create_dir(to).unwrap();
    let mut tar = Command::new("tar");
    tar.args(["--extract", "--xattrs", "--same-permissions", "--no-same-owner", "--file"]).arg(&archive);
    let done = tar.arg("--directory").arg(to).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn tar_unpacks_what_the_chain_shows() {
    let layers = Layers::new();
    let (top, base) = (layers.layer("top"), layers.layer("base"));
    let long = format!("{}/{}", "folder".repeat(20), "file".repeat(50));
    base.file("etc/passwd", "root").file("etc/gone", "").file("bin/tool", "#!").mode("bin/tool", 0o4755);
    base.hard_link("bin/same", "bin/tool").link("bin/link", &"../".repeat(50)).file(&long, "long");
    top.whiteout("etc/gone").file("etc/new", vec![b'x'; 1300]).attribute("etc/new", "user.tag", "v=1\n");
    top.attribute("etc", "user.overlay.origin", "x").fifo("fifo").file("empty", "");
    let mut stream = Vec::new();
    let packed = pack(&chain(&[&top, &base]), &mut stream).unwrap();
    assert_eq!((packed.entries, packed.bytes), (12, stream.len() as u64));
    let out = layers.home().join("out");
    unpack(&stream, &out);
    let text = |path: &str| fs::read_to_string(out.join(path)).unwrap();
    assert_eq!(
        (text("etc/passwd"), text(&long), text("empty")),
        ("root".into(), "long".into(), String::new())
    );
    assert_eq!(fs::read(out.join("etc/new")).unwrap(), vec![b'x'; 1300]);
    assert!(!out.join("etc/gone").exists());
    assert_eq!(fs::read_link(out.join("bin/link")).unwrap(), Path::new(&"../".repeat(50)));
    let about = |path: &str| fs::metadata(out.join(path)).unwrap();
    assert_eq!(
        (about("bin/tool").mode() & 0o7777, about("bin/tool").ino()),
        (0o4755, about("bin/same").ino())
    );
    let mut value = [0; 32];
    let length = rustix::fs::getxattr(out.join("etc/new"), "user.tag", &mut value).unwrap();
    assert_eq!(&value[..length], b"v=1\n");
    assert!(rustix::fs::getxattr(out.join("etc"), "user.overlay.origin", &mut value).is_err());
}

/// A disk that is full after so many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    let layers = Layers::new();
    let layer = layers.layer("layer");
    layer.file("large", vec![0; 1 << 20]);
    let error = pack(&chain(&[&layer]), Full(4096)).unwrap_err();
    assert!(matches!(&error, Error::Output { path, .. } if path == Path::new("large")), "{error}");
}
