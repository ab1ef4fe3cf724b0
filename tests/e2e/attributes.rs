//! Mode, owner, times and extended attributes of files: the project's can be changed, the host's others cannot.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use redoma_tests::{Home, Tier, requires};

#[test]
fn a_file_in_the_home_keeps_its_attributes() {
    let home = Home::new();
    let key = home.file(".ssh/id_ed25519", "key\n");
    let state = || {
        let now = fs::metadata(&key).unwrap();
        (now.mode(), now.uid(), now.mtime(), now.ctime(), now.ctime_nsec())
    };
    let before = state();
    let path = key.to_str().unwrap();
    let attack = format!(
        "chmod 777 {path}; chown $(id -u) {path}; touch -c {path}; touch -c -d 2001-01-01 {path}; exec 3<{path} && chmod 777 /proc/self/fd/3"
    );
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        let _ = project.attempt(&attack).tier(tier).run().started();
        assert_eq!(state(), before, "{tier:?}");
    }
    let _ = std::process::Command::new("sh").args(["-c", &attack]).status().unwrap();
    assert_ne!(state(), before, "the twin, outside");
}

#[test]
fn tools_that_keep_attributes_work() {
    requires!("tar", "cp", "touch");
    let home = Home::new();
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        let script = "set -e
            printf '#!/bin/sh\\necho ran\\n' > tool; chmod +x tool; ./tool
            touch -d 2001-02-03T04:05:06Z tool; ln -s tool link; touch -h -d 2002-02-03 link
            mkdir -m 750 folder; cp -p tool folder/copy; cp -a link folder/; install -m 711 tool folder/installed
            tar -cf all.tar folder; mkdir out; tar -xpf all.tar -C out; chmod -R go-w out";
        let ran = project.shell(script).tier(tier).run().ok();
        assert_eq!(ran.out(), "ran\n");
        let outcome = |name: &str| {
            let now = fs::symlink_metadata(project.path().join(name)).unwrap();
            (now.permissions().mode() & 0o777, now.mtime())
        };
        let tool = outcome("tool");
        assert_eq!((tool.0 & 0o111, tool.1), (0o111, 981_173_106), "{tier:?}");
        assert_eq!(outcome("out/folder/copy").1, tool.1, "{tier:?}");
        assert_eq!(outcome("out/folder/link").1, outcome("link").1, "{tier:?}");
        assert_eq!(outcome("out/folder").0, 0o750, "{tier:?}");
        assert_eq!(outcome("out/folder/installed").0, 0o711, "{tier:?}");
    }
}

#[test]
fn a_repository_made_inside_works_in_the_landlock_tier() {
    let home = Home::new();
    let project = home.project_for(Tier::Landlock);
    let script = "set -e
        mkdir new; cd new; git init -q; echo one > a.txt; chmod +x a.txt; git add -A
        git -c user.name=Test -c user.email=t@example.org commit -q -m inside; git ls-files -s a.txt";
    let ran = project.shell(script).tier(Tier::Landlock).run().ok();
    assert!(ran.out().starts_with("100755 "), "{ran:?}");
    assert_eq!(project.git(&["-C", "new", "log", "--format=%s"]).trim(), "inside");
}

#[test]
fn a_set_user_id_program_cannot_be_left() {
    let home = Home::new();
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        project.file("tool", "");
        let ran = project
            .attempt("chmod 4755 tool; chmod 2755 tool; chmod 755 tool && echo plain")
            .tier(tier)
            .run();
        assert_eq!(ran.started().out(), "plain\n", "{tier:?}");
        let mode = fs::metadata(project.path().join("tool")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755, "{tier:?}");
    }
}
