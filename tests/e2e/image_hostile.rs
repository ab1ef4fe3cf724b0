//! What a hostile registry and a hostile image try. "Refused" means: nothing is there afterwards, and nothing beside it was touched.

use std::fs;

use redoma_tests::{Home, Layer, Layout, Ran, Registry, requires};

use crate::image::{entries, image, list, pull, store};

/// The digests of an image's blobs as they are transferred: configuration, then layers.
fn blobs(layout: &Layout, manifest: &str) -> Vec<String> {
    let hex = manifest.trim_start_matches("sha256:");
    let text = fs::read(layout.path().join("blobs/sha256").join(hex)).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let layers = manifest["layers"].as_array().unwrap();
    let all = std::iter::once(&manifest["config"]).chain(layers);
    all.map(|blob| blob["digest"].as_str().unwrap().to_owned()).collect()
}

fn refused(home: &Home, name: &str) -> Ran {
    let ran = pull(home, name).expect_code(1);
    assert!(list(home).is_empty(), "{ran:?}");
    assert_eq!(entries(&store(home).join("layers")), 0, "{ran:?}");
    assert_eq!(entries(&store(home).join("staging")), 0, "{ran:?}");
    ran
}

#[test]
fn a_blob_that_was_tampered_with_is_refused() {
    requires!("docker-registry", "skopeo");
    let (registry, mut layout) = (Registry::open(), Layout::new());
    let manifest = layout.add("image", &[Layer::default().file("a", "1"), Layer::default().file("b", "2")]);
    let name = registry.push(&layout, "image");
    let home = Home::new();
    let all = blobs(&layout, &manifest).into_iter().chain([manifest.clone()]);
    for digest in all {
        let file = registry.blob(&digest);
        let good = fs::read(&file).unwrap();
        let mut bad = good.clone();
        // The time in a gzip header, and a space in JSON that is another.
        bad[4] ^= 1;
        fs::write(&file, bad).unwrap();
        let pinned = format!("{}@{manifest}", name.rsplit_once(':').unwrap().0);
        let ran = refused(&home, &pinned);
        let said = ran.err();
        assert!(
            said.contains("was asked for") || said.contains("answered 5") || said.contains("cannot be"),
            "{said}"
        );
        fs::write(&file, good).unwrap();
    }
    // The twin: untouched, it is taken.
    let _pulled = pull(&home, &name).ok();
}

#[test]
fn a_layer_that_was_cut_or_grew_is_refused() {
    requires!("docker-registry", "skopeo");
    let (registry, mut layout) = (Registry::open(), Layout::new());
    let manifest = layout.add("image", &[Layer::default().file("a", "1".repeat(5000))]);
    let name = registry.push(&layout, "image");
    let home = Home::new();
    let file = registry.blob(&blobs(&layout, &manifest)[1]);
    let good = fs::read(&file).unwrap();
    for bad in [good[..good.len() - 1].to_vec(), Vec::new(), [&good[..], b"more"].concat()] {
        fs::write(&file, &bad).unwrap();
        let said = refused(&home, &name).err();
        assert!(said.contains("but the manifest says"), "{said}");
    }
    fs::write(&file, good).unwrap();
    let _pulled = pull(&home, &name).ok();
}

#[test]
fn files_of_other_users_can_be_cleared_away_whether_all_came_or_not() {
    requires!("docker-registry", "skopeo");
    let (registry, home, mut layout) = (Registry::open(), Home::new(), Layout::new());
    let sealed =
        Layer::default().sealed("srv/", 33).file("srv/a", "1").sealed("srv/b/", 34).file("srv/b/c", "2");
    layout.add("broken", &[sealed.clone(), sealed.clone().file("../out", "!")]);
    layout.add("whole", &[sealed]);
    let _refused = refused(&home, &registry.push(&layout, "broken"));
    let whole = registry.push(&layout, "whole");
    let _pulled = pull(&home, &whole).ok();
    let _forgot = image(&home, &["rm", &whole]).run().ok();
    assert_eq!(image(&home, &["prune", "--json"]).run().ok().json()["layers"], 1);
    assert_eq!(entries(&store(&home).join("layers")), 0);
    assert_eq!(entries(&store(&home).join("staging")), 0);
}

#[test]
fn no_image_leads_the_mounts_of_its_sandbox_astray() {
    requires!("docker-registry", "skopeo", "busybox");
    let (home, mut layout) = (Home::new(), Layout::new());
    let outside = home.outside();
    let target = outside.display().to_string();
    let up = format!("{}{}", "../".repeat(6), target.trim_start_matches('/'));
    let base = || {
        Layer::default()
            .file("bin/busybox", fs::read("/bin/busybox").unwrap())
            .hardlink("bin/sh", "bin/busybox")
    };
    let attempts = [
        ("honest", base()),
        ("proc", base().symlink("proc", &target)),
        ("dev", base().symlink("dev", &target)),
        ("tmp", base().symlink("tmp", &target)),
        ("run", base().symlink("run", &up)),
        ("sys", base().symlink("sys", &target)),
        ("etc", base().symlink("etc", &up)),
        ("hosts", base().symlink("etc/hosts", &format!("../{up}/hosts")).symlink("etc/resolv.conf", &target)),
        ("home", base().symlink("home", &target).symlink("root", &target)),
        ("files", base().file("proc", "").file("dev", "").file("tmp", "")),
    ];
    for (name, layer) in attempts {
        layout.add(name, &[layer]);
        layout.copy(name, &format!("docker-archive:{target}.{name}:evil/{name}:1"));
        let _image = image(&home, &["import", &format!("{target}.{name}")]).run().ok();
        let sandbox = |args: &[&str]| home.folder("here").redoma([&["sandbox"], args].concat()).run();
        let _made = sandbox(&["create", &format!("evil/{name}:1"), "--name", name, "--net", "none"]);
        let script = "echo ran; for f in /tmp/t /etc/t /run/t /root/t; do echo x > $f; done; true";
        let ran = sandbox(&["exec", name, "--", "/bin/sh", "-c", script]);
        // It may run with what it has, or be refused; what it points to stays as it was.
        assert!(name != "honest" || ran.out() == "ran\n", "{ran:?}");
        assert_eq!(entries(&outside), 0, "{name}: {ran:?}");
        let _gone = sandbox(&["rm", name]).ok();
    }
}

#[test]
fn a_bomb_ends_early_and_the_limit_is_named() {
    requires!("docker-registry", "skopeo");
    let (registry, home, mut layout) = (Registry::open(), Home::new(), Layout::new());
    layout.add("bomb", &[Layer::default().file("zeros", vec![0; 300 << 20])]);
    let said = refused(&home, &registry.push(&layout, "bomb")).err();
    assert!(
        said.contains("the ratio of a layer's size to its compressed size above the limit of 200"),
        "{said}"
    );
}

#[test]
fn no_layer_reaches_out_of_its_folder() {
    requires!("docker-registry", "skopeo");
    let (registry, home, mut layout) = (Registry::open(), Home::new(), Layout::new());
    let victim = home.outside().join("victim");
    fs::write(&victim, "untouched").unwrap();
    let up = format!("{}{}", "../".repeat(8), victim.display().to_string().trim_start_matches('/'));
    let absolute = victim.display().to_string();
    let folder = victim.parent().unwrap().display().to_string();
    let attempts = [
        Layer::default().file("../escaped", "!"),
        Layer::default().file("a/../../escaped", "!"),
        Layer::default().symlink("out", &folder).file("out/victim", "!"),
        Layer::default().symlink("a", "b").symlink("b", &folder).file("a/victim", "!"),
        Layer::default().hardlink("stolen", &absolute),
        Layer::default().hardlink("stolen", &up),
        Layer::default().symlink("out", &folder).hardlink("stolen", "out/victim"),
        Layer::default().file("a/.wh..", ""),
        Layer::default().file("a", "1").file("a/b", "2"),
    ];
    for (number, attempt) in attempts.into_iter().enumerate() {
        let tag = format!("attempt{number}");
        layout.add(&tag, &[attempt]);
        let said = refused(&home, &registry.push(&layout, &tag)).err();
        assert!(said.contains("the archive's entry") && said.contains("is refused"), "{tag}: {said}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
        assert_eq!(entries(victim.parent().unwrap()), 1, "{tag}");
    }
    // The twin: what only looks like it lands inside.
    let honest = Layer::default().file("/etc/hostname", "bell").symlink("a", &folder).file("a", "own");
    let honest = honest.symlink("out", &folder).file("out/.wh.victim", "");
    layout.add("honest", &[honest.device("sda")]);
    let ran = pull(&home, &registry.push(&layout, "honest")).ok();
    assert!(ran.err().contains("sda: a device is left out"), "{ran:?}");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
}
