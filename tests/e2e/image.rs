//! Images: what a user pulls and imports is what the registry has, and is there whole or not at all.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use redoma_tests::{Home, Layer, Layout, Ran, Registry, Stall, redoma, requires};
use serde_json::Value;

/// The store of a home.
pub(crate) fn store(home: &Home) -> PathBuf {
    home.redoma().join("state/images")
}

pub(crate) fn image(home: &Home, args: &[&str]) -> redoma_tests::Redoma {
    home.folder("here").redoma(["image"].into_iter().chain(args.iter().copied()))
}

pub(crate) fn pull(home: &Home, name: &str) -> Ran {
    image(home, &["pull", "--json", name]).run()
}

pub(crate) fn list(home: &Home) -> Vec<Value> {
    image(home, &["ls", "--json"]).run().ok().json().as_array().unwrap().clone()
}

pub(crate) fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

/// The layers' folders, topmost first.
fn chain(home: &Home, image: &Value) -> Vec<PathBuf> {
    let layers = image["layers"].as_array().unwrap().iter().rev();
    layers
        .map(|id| store(home).join("layers").join(id.as_str().unwrap().trim_start_matches("sha256:")))
        .collect()
}

/// What an overlay of the layers shows, as an ordinary user would mount it: each path with its kind and content.
fn merged(layers: &[PathBuf]) -> String {
    let lower: Vec<_> = layers.iter().map(|layer| layer.display().to_string()).collect();
    let script = format!(
        "mount -t overlay -o ro,userxattr,lowerdir={} none /mnt && cd /mnt && {LISTING}",
        // One layer alone is no overlay.
        if lower.len() == 1 { format!("{0}:{1}", lower[0], empty().display()) } else { lower.join(":") }
    );
    inside(&script)
}

/// Folders have other link counts in an overlay.
const LISTING: &str = "find . -mindepth 1 -printf '%P %y %m %l\\n' | sort; \
    find . -type f -printf '%P %n %s\\n' | sort; find . -type f -print0 | sort -z | xargs -0 -r sha256sum";

fn inside(script: &str) -> String {
    let mut shell = Command::new("unshare");
    shell.args(["--user", "--map-root-user", "--mount", "sh", "-ec", script]).env("LC_ALL", "C");
    let ran = shell.output().unwrap();
    assert!(ran.status.success(), "{script}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

fn empty() -> PathBuf {
    let folder = std::env::temp_dir().join("redoma-e2e-empty");
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn base() -> Layer {
    let busybox = fs::read("/bin/busybox").unwrap();
    Layer::default()
        .folder("bin/")
        .file("bin/busybox", busybox)
        .hardlink("bin/sh", "bin/busybox")
        .folder("etc/")
}

#[test]
fn what_umoci_makes_is_pulled_by_tag_and_by_digest_and_looks_as_umoci_says() {
    requires!("docker-registry", "skopeo", "umoci", "busybox", "unshare");
    let (registry, home, mut layout) = (Registry::open(), Home::new(), Layout::new());
    layout.add("real", &[base().file("etc/old", "old").folder("var/").file("var/a", "a").file("etc/x", "1")]);
    let real = format!("{}:real", layout.path().display());
    let bundle = layout.path().join("bundle");
    let umoci = |args: &[&str]| {
        let ran = Command::new("umoci").args(args).arg("--image").arg(&real).arg(&bundle).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    umoci(&["unpack", "--rootless"]);
    let root = bundle.join("rootfs");
    // A second layer: a file gone, a folder in a file's place, new links.
    fs::remove_file(root.join("etc/old")).unwrap();
    fs::remove_dir_all(root.join("var")).unwrap();
    fs::write(root.join("var"), "a file now").unwrap();
    fs::remove_file(root.join("etc/x")).unwrap();
    fs::create_dir(root.join("etc/x")).unwrap();
    fs::write(root.join("etc/x/y"), "2").unwrap();
    std::os::unix::fs::symlink("../bin/sh", root.join("etc/shell")).unwrap();
    umoci(&["repack"]);
    let name = registry.push(&layout, "real");

    let pulled = pull(&home, &name).ok().json();
    assert_eq!(pulled["layers"].as_array().unwrap().len(), 2);
    let wanted = inside(&format!("cd {} && {LISTING}", root.display()));
    assert_eq!(merged(&chain(&home, &pulled)), wanted);

    let digest = pulled["digest"].as_str().unwrap();
    let pinned = format!("{}@{digest}", name.rsplit_once(':').unwrap().0);
    let again = pull(&home, &pinned).ok();
    assert!(again.err().contains("0 to fetch"), "{again:?}");
    assert_eq!(again.json()["digest"], digest);
    assert_eq!(list(&home).len(), 2);
}

#[test]
fn whiteouts_and_opaque_folders_hide_what_lies_below_and_nothing_else() {
    requires!("docker-registry", "skopeo", "unshare");
    let (registry, home, mut layout) = (Registry::open(), Home::new(), Layout::new());
    let bottom = Layer::default()
        .folder("a/")
        .file("a/gone", "1")
        .file("a/kept", "2")
        .file("b/c/d", "3")
        .file("e", "4");
    let top = Layer::default()
        .file("a/.wh.gone", "")
        .file("b/.wh..wh..opq", "")
        .file("b/new", "5")
        .file(".wh.e", "");
    layout.add("white", &[bottom, top]);
    let pulled = pull(&home, &registry.push(&layout, "white")).ok().json();
    let shown = merged(&chain(&home, &pulled));
    let names: Vec<_> = shown.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(&names[..4], ["a", "a/kept", "b", "b/new"], "{shown}");
    assert_eq!(shown.lines().filter(|line| line.contains(" f ")).count(), 2, "{shown}");
}

#[test]
fn a_layer_that_two_images_share_is_fetched_and_stored_once() {
    requires!("docker-registry", "skopeo", "busybox");
    let (registry, home, mut layout) = (Registry::open(), Home::new(), Layout::new());
    layout.add("one", &[base(), Layer::default().file("one", "1")]);
    layout.add("two", &[base(), Layer::default().file("two", "2")]);
    let (one, two) = (registry.push(&layout, "one"), registry.push(&layout, "two"));
    let _one = pull(&home, &one).ok();
    let ran = pull(&home, &two).ok();
    assert!(ran.err().contains("2 layers, 1 to fetch"), "{ran:?}");
    assert_eq!(entries(&store(&home).join("layers")), 3);
    let shared = chain(&home, &ran.json()).pop().unwrap();
    assert_eq!(fs::metadata(shared.join("bin/sh")).unwrap().nlink(), 2);

    // What only one of them has goes, the rest stays.
    let _forgot = image(&home, &["rm", &one]).run().ok();
    assert_eq!(image(&home, &["prune", "--json"]).run().ok().json()["layers"], 1);
    assert!(shared.join("bin/sh").exists());
}

#[test]
fn pruning_spares_what_a_sandbox_is_made_of() {
    requires!("docker-registry", "skopeo", "busybox");
    let (registry, home, mut layout) = (Registry::open(), Home::new(), Layout::new());
    layout.add("used", &[base()]);
    let name = registry.push(&layout, "used");
    let _pulled = pull(&home, &name).ok();
    let sandbox = |args: &[&str]| home.folder("here").redoma([&["sandbox"], args].concat()).run().ok();
    let _made = sandbox(&["create", &name, "--name", "user", "--net", "none"]);
    let _forgot = image(&home, &["rm", &name]).run().ok();
    assert_eq!(image(&home, &["prune", "--json"]).run().ok().json()["layers"], 0);
    let said = sandbox(&["exec", "user", "--", "/bin/busybox", "echo", "still here"]);
    assert_eq!(said.out(), "still here\n");
    let _gone = sandbox(&["rm", "user"]);
    assert_eq!(image(&home, &["prune", "--json"]).run().ok().json()["layers"], 1);
}

#[test]
fn of_an_index_this_kind_of_machine_is_taken() {
    requires!("docker-registry", "skopeo");
    let (registry, home, mut layout) = (Registry::open(), Home::new(), Layout::new());
    let layer = |name: &str| Layer::default().file("machine", name);
    let here = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
    let index = layout.add_index("many", &[("s390x", layer("s390x")), (here, layer(here))]);
    let pulled = pull(&home, &registry.push(&layout, "many")).ok().json();
    assert_eq!(fs::read_to_string(chain(&home, &pulled)[0].join("machine")).unwrap(), here);
    assert_eq!(pulled["index"], index);

    layout.add_for("other", "s390x", &[layer("s390x")]);
    let refused = pull(&home, &registry.push(&layout, "other")).expect_code(1);
    assert!(refused.err().contains("the image is for linux/s390x; this machine runs linux/"), "{refused:?}");
}

#[test]
fn a_password_is_asked_for_taken_from_the_users_file_and_shown_nowhere() {
    requires!("docker-registry", "skopeo", "htpasswd");
    let (registry, home, mut layout) = (Registry::guarded(), Home::new(), Layout::new());
    registry.login(&layout.auth_file());
    layout.add("secret", &[Layer::default().file("a", "1")]);
    let name = registry.push(&layout, "secret");
    let refused = pull(&home, &name).expect_code(1);
    assert!(refused.err().contains("does not let an anonymous user read test/secret"), "{refused:?}");
    assert!(refused.err().contains(&format!("hint: podman login {}", registry.address())), "{refused:?}");

    let wrong = format!(r#"{{"auths":{{"{}":{{"auth":"YW5hOndyb25n"}}}}}}"#, registry.address());
    let wrong = home.file("wrong.json", wrong);
    let refused = image(&home, &["pull", &name]).env("REGISTRY_AUTH_FILE", wrong).run().expect_code(1);
    assert!(refused.err().contains("does not let ana read"), "{refused:?}");
    assert!(!refused.err().contains("wrong\""), "{refused:?}");

    let right = layout.auth_file();
    let _pulled = image(&home, &["pull", &name]).env("REGISTRY_AUTH_FILE", &right).run().ok();
    fs::create_dir_all(home.path().join(".docker")).unwrap();
    fs::copy(&right, home.path().join(".docker/config.json")).unwrap();
    let _pulled = pull(&home, &name).ok();
}

#[test]
fn a_registry_elsewhere_is_believed_when_a_known_authority_says_so() {
    requires!("docker-registry", "skopeo", "unshare");
    let (registry, home, mut layout) = (Registry::encrypted(), Home::new(), Layout::new());
    layout.add("far", &[Layer::default().file("a", "1")]);
    layout.copy("far", &format!("docker://{}", registry.name("test/far:1")));
    // Its name exists in a mount namespace only.
    let hosts = home.file("hosts", "127.0.0.1 registry.example\n");
    let name = format!("registry.example:{}/test/far:1", registry.port());
    let pull = |authority: &Path| {
        let mut shell = Command::new("unshare");
        let script = "mount --bind \"$HOSTS\" /etc/hosts && exec \"$0\" image pull \"$1\"";
        shell.args(["--user", "--map-root-user", "--mount", "sh", "-ec", script]).arg(redoma()).arg(&name);
        shell.env("HOSTS", &hosts).env("HOME", home.path()).env("REDOMA_HOME", home.redoma());
        shell.env("SSL_CERT_FILE", authority).output().unwrap()
    };
    let unknown = pull(Path::new("/etc/ssl/certs/ca-certificates.crt"));
    let said = String::from_utf8_lossy(&unknown.stderr);
    assert!(!unknown.status.success() && said.contains("invalid peer certificate: UnknownIssuer"), "{said}");
    let known = pull(&registry.authority());
    assert!(known.status.success(), "{}", String::from_utf8_lossy(&known.stderr));
    assert_eq!(list(&home).len(), 1);
}

/// A layer that takes a while.
fn large(seed: u64) -> Layer {
    let mut state = seed;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(1 << 20)
    .collect();
    Layer::default().file(&format!("noise{seed}"), noise)
}

#[test]
fn a_pull_that_is_killed_leaves_nothing_half_and_the_next_one_works() {
    requires!("docker-registry", "skopeo");
    let (registry, home, mut layout) = (Registry::open(), Home::new(), Layout::new());
    layout.add("big", &[large(1), large(2), large(3), large(4)]);
    let name = registry.push(&layout, "big");
    for bytes in [0, 300, 2_000, 10_000, 500_000, 1_500_000, 3_500_000] {
        let stall = Stall::after(bytes, &registry);
        let mut running = image(&home, &["pull", &name.replace(registry.address(), stall.address())]).spawn();
        stall.wait();
        running.kill();
        assert_eq!(running.wait().code(), 137);
        assert!(list(&home).is_empty(), "{bytes}");
        assert_eq!(entries(&store(&home).join("layers")), 0, "{bytes}");
        // One unfinished pull is all that is left, however many were killed: the next one clears away.
        assert!(entries(&store(&home).join("staging")) <= 1, "{bytes}");
    }
    // It is what `doctor --gc` looks for, too.
    let left = home.folder("here").redoma(["doctor", "--gc", "--json"]).run().json();
    let ours =
        |one: &&Value| one["path"].as_str().is_some_and(|path| Path::new(path).starts_with(store(&home)));
    let ours: Vec<_> = left.as_array().unwrap().iter().filter(ours).collect();
    assert!(ours.len() == 1 && ours[0]["removed"] == true, "{left}");
    assert_eq!(image(&home, &["prune", "--json"]).run().ok().json()["unfinished"], 0);
    let _pulled = pull(&home, &name).ok();
    assert_eq!((list(&home).len(), entries(&store(&home).join("layers"))), (1, 4));
    assert_eq!(entries(&store(&home).join("staging")), 0);
}

#[test]
fn several_pulls_at_once_end_as_one() {
    requires!("docker-registry", "skopeo");
    let (registry, home, mut layout) = (Registry::open(), Home::new(), Layout::new());
    layout.add("big", &[large(1), large(2), Layer::default().file("a", "1")]);
    let name = registry.push(&layout, "big");
    let all: Vec<_> = (0..4).map(|_| image(&home, &["pull", &name]).spawn()).collect();
    let all: Vec<_> = all.into_iter().map(|running| running.wait().ok().out()).collect();
    assert!(all.iter().all(|said| *said == all[0]));
    assert_eq!((list(&home).len(), entries(&store(&home).join("layers"))), (1, 3));
    assert_eq!(entries(&store(&home).join("staging")), 0);
}

#[test]
fn a_kill_while_layers_are_put_in_their_places_leaves_all_or_nothing_to_see() {
    requires!("docker-registry", "skopeo");
    let (registry, home, mut layout) = (Registry::open(), Home::new(), Layout::new());
    let layers: Vec<_> = (0..40).map(|number| Layer::default().file(&format!("f{number}"), "x")).collect();
    layout.add("many", &layers);
    let name = registry.push(&layout, "many");
    let _made = list(&home);
    for count in [1, 10, 39] {
        let mut running = image(&home, &["pull", &name]).spawn();
        // Each layer that appears is one system call of the pull; this looks as fast as it can.
        while entries(&store(&home).join("layers")) < count && redoma_tests::alive(running.pid()) {
            std::thread::yield_now();
        }
        running.kill();
        let _ended = running.wait();
        let listed = list(&home);
        assert!(
            listed.is_empty() || chain(&home, &listed[0]).iter().all(|layer| layer.is_dir()),
            "{listed:?}"
        );
        for layer in fs::read_dir(store(&home).join("layers")).unwrap() {
            assert_eq!(entries(&layer.unwrap().path()), 1);
        }
        if !listed.is_empty() {
            let _forgot = image(&home, &["rm", &name]).run().ok();
        }
        let _pruned = image(&home, &["prune"]).run().ok();
        assert_eq!(entries(&store(&home).join("layers")), 0);
    }
    assert_eq!(pull(&home, &name).ok().json()["layers"].as_array().unwrap().len(), 40);
}

#[test]
fn files_with_holes_come_in_as_gnu_tar_writes_them() {
    requires!("tar");
    let home = Home::new();
    let folder = home.outside();
    let mut content = vec![0; 3 << 20];
    content[1_000_000..1_000_005].copy_from_slice(b"hello");
    let file = fs::File::create(folder.join("holes")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"hello", 1_000_000).unwrap();
    file.set_len(3 << 20).unwrap();
    let forms = ["--format=gnu", "--sparse-version=0.0", "--sparse-version=0.1", "--sparse-version=1.0"];
    for (number, form) in forms.iter().enumerate() {
        let archive = home.path().join(format!("{number}.tar"));
        let format = if number == 0 { "--format=gnu" } else { "--format=pax" };
        let mut tar = Command::new("tar");
        tar.args([format, form, "--sparse", "-C"]).arg(&folder).arg("-cf").arg(&archive).arg("holes");
        assert!(tar.status().unwrap().success());
        assert!(fs::metadata(&archive).unwrap().len() < 1 << 20, "{form}");
        let imported = image(&home, &["import", "--json", archive.to_str().unwrap(), "holes"]).run().ok();
        let there = chain(&home, &imported.json())[0].join("holes");
        assert_eq!(fs::read(&there).unwrap(), content, "{form}");
        assert!(fs::metadata(&there).unwrap().blocks() < 1 << 11, "{form}");
    }
}

#[test]
fn what_others_save_is_imported_and_is_the_same() {
    requires!("skopeo", "busybox", "unshare");
    let (home, mut layout) = (Home::new(), Layout::new());
    let digest = layout.add("it", &[base(), Layer::default().file("etc/.wh.none", "").file("etc/a", "1")]);
    let file = |name: &str| home.path().join(name).display().to_string();
    let (saved, archive) = (file("saved.tar"), file("oci.tar"));
    layout.copy("it", &format!("docker-archive:{saved}:example.com/it:1"));
    layout.copy("it", &format!("oci-archive:{archive}:it"));
    let import = |args: &[&str]| image(&home, &[&["import", "--json"], args].concat()).run();
    let from_saved = import(&[&saved]).ok().json();
    assert_eq!(from_saved["reference"], "example.com/it:1");
    let from_layout = import(&[layout.path().to_str().unwrap(), "layout"]).ok().json();
    assert_eq!(from_layout["digest"], digest);
    assert_eq!(import(&[&archive, "archive"]).ok().json()["layers"], from_layout["layers"]);
    assert_eq!(from_saved["layers"], from_layout["layers"]);
    let unnamed = import(&[&archive]).expect_code(1);
    assert!(unnamed.err().contains("says no name"), "{unnamed:?}");

    // Its files as one tarball, and as a folder.
    let folder = file("folder");
    let layers = chain(&home, &from_layout);
    let lower = layers.iter().map(|layer| layer.display().to_string()).collect::<Vec<_>>().join(":");
    let copy = "cp -a /mnt/. \"$OUT\" && tar -C /mnt -cf - . | gzip > \"$OUT.tar.gz\"";
    fs::create_dir(&folder).unwrap();
    inside(&format!("OUT={folder}; mount -t overlay -o ro,userxattr,lowerdir={lower} none /mnt && {copy}"));
    let wanted = merged(&layers);
    for path in [folder.clone(), format!("{folder}.tar.gz")] {
        let flat = import(&[&path, "flat"]).ok().json();
        assert_eq!(merged(&chain(&home, &flat)), wanted, "{path}");
    }
    let piped = fs::read(format!("{folder}.tar.gz")).unwrap();
    let _piped = image(&home, &["import", "-", "piped"]).stdin(piped).run().ok();
}
