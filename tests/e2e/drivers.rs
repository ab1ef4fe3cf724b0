//! What every driver promises, tried on the native one with the built binary as its keepers.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use redoma_sandbox::disposable::Native;
use redoma_sandbox::driver::contract::{Bed, hold_all};
use redoma_sandbox::driver::{Driver, ImageName};
use redoma_sandbox::homes::Homes;
use redoma_tests::{Home, available_tool, redoma, requires};

struct OnNative {
    native: Native,
    root: PathBuf,
    _home: Home,
}

impl OnNative {
    fn new(busybox: &Path) -> Self {
        let home = Home::new();
        let of_home = |name: &str| match name {
            "HOME" => Some(home.path().into_os_string()),
            "REDOMA_HOME" => Some(home.redoma().into_os_string()),
            _ => None,
        };
        let homes = Homes::from_vars(&of_home).unwrap();
        let root = busybox_root(&home.outside(), busybox);
        Self { native: Native::new(homes).with_keeper(redoma()), root, _home: home }
    }
}

impl Bed for OnNative {
    fn driver(&self) -> &dyn Driver {
        &self.native
    }

    fn image(&self) -> ImageName {
        ImageName::Folder(self.root.clone())
    }
}

/// A root file system with busybox under each of its names.
fn busybox_root(folder: &Path, busybox: &Path) -> PathBuf {
    let root = folder.join("root");
    std::fs::create_dir_all(root.join("bin")).unwrap();
    std::fs::copy(busybox, root.join("bin/busybox")).unwrap();
    let names = Command::new(busybox).arg("--list").output().unwrap();
    for name in String::from_utf8(names.stdout).unwrap().lines().filter(|name| *name != "busybox") {
        symlink("busybox", root.join("bin").join(name)).unwrap();
    }
    root
}

#[test]
fn the_native_driver_keeps_the_contract() {
    requires!("busybox");
    hold_all(&OnNative::new(&available_tool("busybox").unwrap()));
}
