//! What is there inside, what is not, and what is covered.

use std::fs;
use std::os::unix::fs::symlink;

use redoma_tests::{Home, Tier};

const KEY: &str =
    "-----BEGIN OPENSSH PRIVATE KEY-----\nreal-key-material\n-----END OPENSSH PRIVATE KEY-----\n";

#[test]
fn the_project_can_be_read_and_written() {
    let home = Home::new();
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        project.file("in.txt", "from outside\n");
        let script = "cat in.txt; echo from inside > out.txt; mkdir -p a/b; mv out.txt a/b/moved.txt";
        let ran = project.shell(script).tier(tier).run().ok();
        assert_eq!(ran.out(), "from outside\n");
        assert_eq!(project.read("a/b/moved.txt"), "from inside\n");
    }
}

#[test]
fn a_secret_in_the_home_gives_nothing_real() {
    let home = Home::new();
    let key = home.file(".ssh/id_ed25519", KEY);
    let path = key.to_str().unwrap();
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        let ran = project.attempt(&format!("cat {path}")).tier(tier).run().started();
        assert!(!ran.out().contains("real-key-material"), "{tier:?} {ran:?}");
    }
    assert!(fs::read_to_string(&key).unwrap().contains("real-key-material"));
}

#[test]
fn a_denied_key_shows_as_a_decoy_of_the_same_kind() {
    let home = Home::new();
    let project = home.project("p");
    let key = home.file(".ssh/id_ed25519", KEY);
    let ran = project.inside(["cat", key.to_str().unwrap()]).run().ok();
    assert!(ran.out().contains("PRIVATE KEY") && !ran.out().contains("real-key-material"), "{ran:?}");
}

#[test]
fn a_dotenv_file_keeps_its_names_and_loses_its_values() {
    let home = Home::new();
    let project = home.project("p");
    project.file(".env", "API_KEY=sk-live-0123456789\nexport MODE='real-mode-value'\n");
    let ran = project.inside(["cat", ".env"]).run().ok();
    assert!(ran.out().contains("API_KEY=") && ran.out().contains("MODE="), "{ran:?}");
    assert!(!ran.out().contains("0123456789") && !ran.out().contains("real-mode-value"), "{ran:?}");
    assert_eq!(project.read(".env"), "API_KEY=sk-live-0123456789\nexport MODE='real-mode-value'\n");
}

#[test]
fn deny_beats_a_grant_of_the_same_path() {
    let home = Home::new();
    let project = home.project("p");
    project.file("secret/token", "real-token-value\n");
    let open = project.inside(["cat", "secret/token"]).run().ok();
    assert!(open.out().contains("real-token-value"), "the twin: {open:?}");
    let closed = project
        .attempt("cat secret/token")
        .option("--read", "secret")
        .option("--write", "secret")
        .option("--deny", "secret")
        .run()
        .started();
    assert!(!closed.out().contains("real-token-value"), "{closed:?}");
}

#[test]
fn a_denied_path_reached_by_a_link_is_denied() {
    let home = Home::new();
    let project = home.project("p");
    let secret = home.outside().join("secret.txt");
    fs::write(&secret, "real-secret\n").unwrap();
    symlink(&secret, project.path().join("link")).unwrap();
    let outside = home.outside();
    let granted = project.inside(["cat", "link"]).option("--read", &outside).run().ok();
    assert_eq!(granted.out(), "real-secret\n", "the twin");
    let deny = |script: &str| {
        project.attempt(script).option("--read", &outside).option("--deny", "link").run().started()
    };
    let denied = deny("cat link");
    assert!(!denied.out().contains("real-secret"), "{denied:?}");
    let direct = deny(&format!("cat {}", secret.display()));
    assert!(!direct.out().contains("real-secret"), "the target by its own name: {direct:?}");
}

#[test]
fn another_name_of_a_denied_file_is_denied() {
    let home = Home::new();
    let project = home.project("p");
    let secret = project.file(".env.production", "KEY=real-value-0123456789\n");
    fs::hard_link(secret, project.path().join("innocent.txt")).unwrap();
    let ran = project.attempt("cat innocent.txt").run().started();
    assert!(!ran.out().contains("real-value"), "{ran:?}");
}

#[test]
fn a_folder_that_is_not_granted_is_not_there() {
    let home = Home::new();
    let other = home.outside();
    fs::write(other.join("note"), "host data\n").unwrap();
    let path = other.join("note");
    let path = path.to_str().unwrap();
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        let ran = project.attempt(&format!("cat {path}")).tier(tier).run().started();
        assert_ne!(ran.code(), 0, "{tier:?} {ran:?}");
        let twin = project.inside(["cat", path]).tier(tier).option("--read", &other).run().ok();
        assert_eq!(twin.out(), "host data\n");
    }
}

#[test]
fn a_read_grant_cannot_be_written() {
    let home = Home::new();
    let granted = home.outside();
    let target = granted.join("new");
    let target = target.to_str().unwrap();
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        let attempt = project.attempt(&format!("touch {target}"));
        let ran = attempt.tier(tier).option("--read", &granted).run().started();
        assert_ne!(ran.code(), 0, "{tier:?} {ran:?}");
        let _ = project.inside(["touch", target]).tier(tier).option("--write", &granted).run().ok();
        fs::remove_file(target).unwrap();
    }
}

#[test]
fn the_home_is_private_and_vanishes() {
    let home = Home::new();
    let project = home.project("p");
    home.file("Documents/letter.txt", "private letter\n");
    let script = "ls -A ~/Documents 2>/dev/null; echo x > ~/left-behind && cat ~/left-behind";
    let ran = project.shell(script).run().ok();
    assert_eq!(ran.out(), "x\n");
    assert!(!home.path().join("left-behind").exists());
}

#[test]
fn tmp_is_private_and_mktemp_works() {
    let home = Home::new();
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        let ran = project.shell("f=$(mktemp) && echo kept > $f && cat $f && echo $f").tier(tier).run().ok();
        let out = ran.out();
        let (first, path) = out.trim().split_once('\n').unwrap();
        assert_eq!(first, "kept");
        assert!(!std::path::Path::new(path).exists(), "{tier:?}: {path} was left on the host");
    }
}

#[test]
fn renames_across_two_granted_folders_work() {
    let home = Home::new();
    let project = home.project("p");
    let granted = home.outside();
    project.file("file", "content\n");
    let target = granted.join("file");
    let script = format!("mv file {}", target.display());
    let _ = project.shell(&script).option("--write", &granted).run().ok();
    assert_eq!(fs::read_to_string(target).unwrap(), "content\n");
}

#[test]
fn an_atomic_save_replaces_a_file() {
    let home = Home::new();
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        project.file("config.json", "{}\n");
        let script =
            "echo new > .config.json.tmp && sync .config.json.tmp && mv .config.json.tmp config.json";
        let _ = project.shell(script).tier(tier).run().ok();
        assert_eq!(project.read("config.json"), "new\n");
    }
}

#[test]
fn system_folders_are_read_only_even_for_root() {
    let home = Home::new();
    for tier in Tier::ALL {
        let project = home.project_for(tier);
        for target in ["/usr/bin/redoma-e2e", "/etc/redoma-e2e"] {
            let ran = project.attempt(&format!("touch {target}")).tier(tier).run().started();
            assert_ne!(ran.code(), 0, "{tier:?} {target} {ran:?}");
            assert!(!std::path::Path::new(target).exists());
        }
    }
}

#[test]
fn shadow_gives_nothing_even_to_root() {
    let home = Home::new();
    let ran = home.project("p").attempt("cat /etc/shadow").run().started();
    assert!(!ran.out().contains("root:"), "{ran:?}");
}
