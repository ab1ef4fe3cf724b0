use std::collections::BTreeSet;
use std::fs;

use tempfile::TempDir;

use super::*;
use crate::tape::Tape;
use crate::{Blob, Config, Fetched, Limits};

struct World {
    _home: TempDir,
    images: Images,
}

impl World {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let images = Images::open(&home.path().join("images")).unwrap();
        Self { _home: home, images }
    }

    /// An image of these layers, fetched and not unpacked.
    fn fetched(&self, name: &str, layers: &[&[u8]]) -> Fetched {
        let staging = Staging::new(&self.images).unwrap();
        let blob = |tar: &&[u8]| {
            let diff_id = DiffId::from(Digest::of(tar));
            let file = staging.path(&format!("{}.blob", diff_id.hex()));
            fs::write(&file, tar).unwrap();
            Blob { file, diff_id }
        };
        let blobs: Vec<_> = layers.iter().map(blob).collect();
        let image = Image {
            reference: name.parse().unwrap(),
            digest: Digest::of(name.as_bytes()),
            index: Some(Digest::of(b"index")),
            config: Config::default(),
            layers: blobs.iter().map(|blob| blob.diff_id).collect(),
            size: 0,
            created: None,
        };
        Fetched { image, blobs, staging }
    }

    fn add(&self, name: &str, layers: &[&[u8]]) -> Image {
        let fetched = self.fetched(name, layers);
        fetched.unpack(Ownership::Mine, &Limits::default()).unwrap();
        fetched.publish(&self.images).unwrap()
    }

    fn layers(&self) -> usize {
        self.images.files("layers").unwrap().len()
    }

    fn prune(&self, in_use: &[DiffId]) -> Pruned {
        let in_use: BTreeSet<_> = in_use.iter().copied().collect();
        self.images.exclusive().unwrap().prune(&in_use).unwrap()
    }
}

fn layer(content: &str) -> Vec<u8> {
    Tape::default().file("file", content.as_bytes()).end()
}

#[test]
fn what_was_published_is_found_and_listed_by_name() {
    let world = World::new();
    let two = world.add("two:2", &[&layer("a"), &layer("bc")]);
    let one = world.add("one", &[&layer("a")]);
    assert_eq!(world.images.list().unwrap(), [one, two.clone()]);
    assert_eq!(world.images.get(&two.reference).unwrap(), Some(two.clone()));
    assert_eq!((two.size, world.layers()), (3, 2));
    let chain = two.chain(&world.images).unwrap();
    assert_eq!(fs::read_to_string(chain[0].join("file")).unwrap(), "bc");
    assert_eq!(world.images.about(two.layers[0]).unwrap().unwrap().ownership, Ownership::Mine);
}

#[test]
fn a_digest_finds_what_was_pulled_under_a_tag() {
    let world = World::new();
    let image = world.add("reg.example.com/a:1", &[&layer("a")]);
    let find = |text: String| world.images.get(&text.parse().unwrap()).unwrap();
    assert_eq!(find(format!("reg.example.com/a@{}", image.digest)), Some(image.clone()));
    assert_eq!(find(format!("reg.example.com/a@{}", Digest::of(b"index"))), Some(image.clone()));
    assert_eq!(find(format!("reg.example.com/b@{}", image.digest)), None);
    assert_eq!(find(format!("reg.example.com/a@{}", Digest::of(b"other"))), None);
    assert_eq!(find("reg.example.com/a:2".into()), None);
}

#[test]
fn nothing_is_seen_of_an_image_before_it_is_published() {
    let world = World::new();
    let fetched = world.fetched("a", &[&layer("a"), &layer("b")]);
    fetched.blobs[0].unpack(Ownership::Mine, &Limits::default()).unwrap();
    assert!(world.images.list().unwrap().is_empty());
    assert_eq!(world.layers(), 0);
    let error = fetched.publish(&world.images).unwrap_err();
    assert!(matches!(error, Error::NoLayer { .. }), "{error}");
    assert!(world.images.list().unwrap().is_empty());
    assert!(world.images.files("staging").unwrap().is_empty());
}

#[test]
fn a_blob_that_is_not_its_layer_is_refused() {
    let world = World::new();
    let fetched = world.fetched("a", &[&layer("a")]);
    fs::write(&fetched.blobs[0].file, layer("b")).unwrap();
    assert!(matches!(fetched.unpack(Ownership::Mine, &Limits::default()), Err(Error::DiffId { .. })));
}

#[test]
fn pruning_keeps_what_images_and_sandboxes_need() {
    let world = World::new();
    let (kept, gone) =
        (world.add("kept", &[&layer("a"), &layer("b")]), world.add("gone", &[&layer("b"), &layer("cc")]));
    world.images.remove(&gone.reference).unwrap();
    assert!(matches!(world.images.remove(&gone.reference), Err(Error::NoImage { .. })));
    assert_eq!(world.prune(&gone.layers), Pruned::default());
    assert_eq!(world.prune(&[]), Pruned { layers: 1, bytes: 2, unfinished: 0 });
    assert_eq!(world.layers(), 2);
    assert_eq!(world.images.files("about").unwrap().len(), 2);
    assert!(kept.chain(&world.images).is_ok());
}

#[test]
fn nothing_is_removed_while_something_comes_in() {
    let world = World::new();
    let fetched = world.fetched("a", &[&layer("a")]);
    assert!(matches!(world.images.exclusive(), Err(Error::Busy { .. })));
    drop(fetched);
    drop(world.images.exclusive().unwrap());
    let held = world.images.hold().unwrap();
    assert!(matches!(world.images.exclusive(), Err(Error::Busy { .. })));
    drop(held);
    assert!(world.images.exclusive().is_ok());
}

#[test]
fn what_a_killed_process_left_goes_with_the_next_look() {
    let world = World::new();
    let left = world.images.folder().join("staging/1-0");
    fs::create_dir(&left).unwrap();
    fs::write(left.join("half"), "x").unwrap();
    assert_eq!(world.prune(&[]).unfinished, 1);
    fs::create_dir(&left).unwrap();
    world.add("a", &[&layer("a")]);
    assert!(!left.exists());
}

#[test]
fn a_damaged_name_keeps_everything_where_it_is() {
    let world = World::new();
    let image = world.add("a", &[&layer("a")]);
    fs::write(world.images.name(&image.reference), "{").unwrap();
    let refused = world.images.exclusive().unwrap().prune(&BTreeSet::new());
    assert!(matches!(refused, Err(Error::Damaged { .. })));
    assert_eq!(world.layers(), 1);
}

#[test]
fn a_layer_whose_root_is_read_only_can_be_published_and_pruned() {
    let world = World::new();
    let tar = Tape::default().entry(tar::EntryType::Directory, "./", "", 0o555, b"").file("./a", b"").end();
    let image = world.add("sealed", &[&tar]);
    let folder = world.images.layer(image.layers[0]).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::mode(&fs::metadata(folder).unwrap()) & 0o7777, 0o555);
    world.images.remove(&image.reference).unwrap();
    assert_eq!(world.prune(&[]).layers, 1);
}

#[test]
fn a_layer_whose_root_is_opaque_ends_the_chain() {
    let world = World::new();
    let opaque = Tape::default().file(".wh..wh..opq", b"").file("b", b"").end();
    let image = world.add("a", &[&layer("hidden"), &opaque, &layer("top")]);
    assert_eq!(image.chain(&world.images).unwrap().len(), 2);
}
