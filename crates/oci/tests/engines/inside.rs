//! What an attacker inside finds, and who may touch what of an engine.

use std::os::fd::AsFd;

use redoma_sandbox::driver::contract::{Bed as _, any_spec};
use redoma_sandbox::driver::{Command, Driver, Happening, Mount, SandboxId, Streams};

use super::bed::{Bed, Kind};

/// What `sh -c SCRIPT` writes, and what became of it.
pub(crate) fn say(driver: &dyn Driver, id: &SandboxId, script: &str) -> String {
    let (reading, writing) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let null = std::fs::File::open("/dev/null").unwrap();
    let command = Command { argv: ["sh", "-c", script].map(Into::into).to_vec(), ..Command::default() };
    let given = vec![null.as_fd(), writing.as_fd(), writing.as_fd()];
    let mut process = driver.exec(id, &command, &Streams { terminal: None, given }).unwrap();
    drop(writing);
    let said = std::io::read_to_string(std::fs::File::from(reading)).unwrap();
    while process.event().unwrap() == Happening::Stopped {}
    said
}

#[test]
fn an_attacker_in_docker_finds_nothing_to_break_out_by() {
    let Some(bed) = Bed::raise(Kind::Docker) else { return };
    let spec = any_spec(&bed);
    bed.driver.create(&spec).unwrap();
    let say = |script: &str| say(&bed.driver, &spec.id, script);

    let status = say("cat /proc/self/status");
    let field = |name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap_or_else(|| panic!("{name} in {status}"));
        line.trim().to_owned()
    };
    assert_eq!(field("NoNewPrivs:"), "1");
    assert_eq!(field("Seccomp:"), "2");
    // Two filters: the engine's, and the command's own.
    assert_eq!(field("Seccomp_filters:"), "2");
    // Of files and users inside, and ports below 1024; none of the network's, the kernel's or other processes'.
    assert_eq!(u64::from_str_radix(&field("CapEff:"), 16).unwrap(), 0x4fb & 0xffff_ffff);

    let refused = |script: &str, by: &str, what: &str| {
        let said = say(script);
        assert!(said.contains(by), "{what}: {script} said {said:?}");
    };
    assert_eq!(say("ls /sys/class/net").split_whitespace().collect::<Vec<_>>(), ["lo"]);
    assert!(
        say("ip route add default dev lo; ip link add x type dummy").contains("not permitted"),
        "NET_ADMIN"
    );
    refused("mount -t tmpfs x /tmp", "ermi", "mount");
    refused("unshare -U true", "not permitted", "a user namespace");
    refused("chmod 4755 /bin/busybox", "not permitted", "a set-user-id file");
    refused("ping -c 1 127.0.0.1", "create raw socket", "a raw socket");
    assert_eq!(say("ls -d /var/run/docker.sock /run/docker.sock 2>/dev/null"), "");
    refused("touch /run/redoma-tool/x", "Read-only", "our own program");
    refused("echo b > /proc/sysrq-trigger", "can't create", "the kernel's switches");
    bed.driver.destroy(&spec.id).unwrap();
}

#[test]
fn only_what_is_ours_is_seen_and_touched() {
    let Some(bed) = Bed::raise(Kind::Docker) else { return };
    let image = bed.image().to_string();
    bed.client(&["run", "-d", "--name", "others", "--net", "none", &image, "sleep", "600"]);
    let spec = any_spec(&bed);
    bed.driver.create(&spec).unwrap();
    // Another process of the same user sees the same: the engine's list is the only one.
    let listed = bed.connect().list().unwrap();
    assert_eq!(listed.iter().map(|info| info.spec.id).collect::<Vec<_>>(), [spec.id]);

    let mut with_socket = any_spec(&bed);
    with_socket.mounts =
        vec![Mount { from: bed.folder.path().into(), to: "/engine".into(), writable: true, overlay: false }];
    let refused = bed.driver.create(&with_socket).err().unwrap().to_string();
    assert!(refused.contains("the engine's socket"), "{refused}");

    bed.driver.destroy(&spec.id).unwrap();
    assert!(bed.client(&["ps"]).contains("others"), "somebody else's container is gone");
}

#[test]
fn a_detached_command_leaves_a_log_and_an_image_says_what_it_starts() {
    let Some(bed) = Bed::raise(Kind::Docker) else { return };
    let changed =
        ["import", "--change", "ENTRYPOINT [\"/bin/sh\",\"-c\"]", "--change", "CMD [\"echo served\"]"];
    let archive = bed.folder.path().join("served.tar");
    let root = bed.folder.path().join("root");
    let mut pack = std::process::Command::new("tar");
    assert!(pack.arg("-C").arg(root).arg("-cf").arg(&archive).arg(".").status().unwrap().success());
    bed.client(&[changed.as_slice(), &[archive.to_str().unwrap(), "localhost/served:1"]].concat());
    let mut spec = any_spec(&bed);
    spec.image = "localhost/served:1".parse().unwrap();
    let info = bed.driver.create(&spec).unwrap();
    assert_eq!(
        (info.entrypoint.join(" "), info.cmd.join(" ")),
        ("/bin/sh -c".to_owned(), "echo served".to_owned())
    );
    let logs =
        || std::io::read_to_string(bed.driver.logging().unwrap().logs(&spec.id, false).unwrap()).unwrap();
    assert_eq!(logs(), "");
    let argv = info.entrypoint.iter().chain(&info.cmd).map(Into::into).collect();
    let command = Command { argv, detached: true, log: Some("web".parse().unwrap()), ..Command::default() };
    bed.driver.exec(&spec.id, &command, &Streams { terminal: None, given: Vec::new() }).unwrap();
    let began = std::time::Instant::now();
    while logs() != "served\n" {
        assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", logs());
    }
    bed.driver.destroy(&spec.id).unwrap();
}

#[test]
fn the_policy_holds_in_what_is_mounted() {
    let Some(bed) = Bed::raise(Kind::Docker) else { return };
    let project = bed.folder.path().join("project");
    for folder in ["project/.git/hooks", "project/src"] {
        std::fs::create_dir_all(bed.folder.path().join(folder)).unwrap();
    }
    std::fs::write(project.join(".env"), "KEY=the-real-one").unwrap();
    std::fs::write(project.join(".git/config"), "[core]\n").unwrap();
    let mut spec = any_spec(&bed);
    spec.mounts =
        vec![Mount { from: project.clone(), to: "/project".into(), writable: true, overlay: false }];
    bed.driver.create(&spec).unwrap();
    let say = |script: &str| say(&bed.driver, &spec.id, script);
    assert_eq!(say("echo made > /project/src/new; cat /project/src/new"), "made\n");
    assert_eq!(std::fs::read_to_string(project.join("src/new")).unwrap(), "made\n");
    assert_eq!(say("cat /project/.env"), "", "a denied file is seen");
    assert!(say("echo x > /project/.env").contains("can't create"), "a denied file is written");
    assert!(say("echo x >> /project/.git/config").contains("can't create"), "a protected file is written");
    assert!(say("touch /project/.git/hooks/post-commit").contains("Read-only"), "a hook is planted");
    assert_eq!(std::fs::read_to_string(project.join(".env")).unwrap(), "KEY=the-real-one");
    bed.driver.destroy(&spec.id).unwrap();
}
