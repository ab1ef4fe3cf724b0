//! An engine with one image, in a network namespace of its own: nothing of it is left in the machine.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redoma_oci::{Engine, OciDriver, Setup};
use redoma_sandbox::driver::{Driver, ImageName, contract};
use redoma_sandbox::homes::Homes;
use redoma_tests::World;
use tempfile::TempDir;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Docker,
    Podman,
}

pub(crate) struct Bed {
    pub(crate) driver: OciDriver,
    engine: Child,
    pub(crate) folder: TempDir,
}

const IMAGE: &str = "localhost/redoma-test/busybox:1";
/// Redoma as far as this driver goes.
const GUEST: &str = env!("CARGO_BIN_EXE_redoma-guest");
const PATIENCE: Duration = Duration::from_secs(60);

/// The namespaces end with the shell that is their first process, and that with this test, however it ends.
const RAISE: &str = "ip link set lo up; exec \"$@\"";

impl Bed {
    /// None, loudly, where there is no such engine to start.
    pub(crate) fn raise(kind: Kind) -> Option<Self> {
        let test = module_path!();
        let programs: &[&str] = match kind {
            Kind::Docker => &["dockerd", "docker", "busybox"],
            Kind::Podman => &["podman", "docker", "busybox", "runc", "conmon"],
        };
        if !programs.iter().all(|program| redoma_tests::available(program, test)) {
            return None;
        }
        if !rustix::process::geteuid().is_root() {
            redoma_tests::skip(test, "only root starts engines");
            return None;
        }
        let folder = tempfile::Builder::new().prefix("redoma-oci-").tempdir().unwrap();
        let engine = start(kind, folder.path());
        let socket = folder.path().join("engine.sock");
        wait_for(&socket);
        import(&socket, folder.path());
        let driver = connect(&socket, folder.path(), vec![GUEST.into(), "keeper".into()]);
        Some(Self { driver, engine, folder })
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("engine.sock")
    }

    /// Another connection, as another process would have it.
    pub(crate) fn connect(&self) -> OciDriver {
        connect(&self.socket(), self.folder.path(), vec![GUEST.into(), "keeper".into()])
    }

    /// The same, whose gateways are in `world`.
    pub(crate) fn connect_in(&self, world: &World) -> OciDriver {
        let entering = world.outside(&format!("exec {GUEST} keeper"));
        let keeper = [entering.get_program()].into_iter().chain(entering.get_args());
        connect(&self.socket(), self.folder.path(), keeper.map(OsString::from).collect())
    }

    /// The engine's own client; what it says.
    pub(crate) fn client(&self, arguments: &[&str]) -> String {
        let socket = format!("unix://{}", self.socket().display());
        let output = Command::new("docker").args(["-H", &socket]).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    }
}

impl contract::Bed for Bed {
    fn driver(&self) -> &dyn Driver {
        &self.driver
    }

    fn image(&self) -> ImageName {
        ImageName::Reference(IMAGE.into())
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            let last: Vec<&str> = log.lines().rev().take(30).collect();
            eprintln!("the engine said last:\n{}", last.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
        // Everything of ours first, or the kernel's control groups stay behind.
        let all = self.client(&["ps", "-aq"]);
        let all: Vec<&str> = all.split_whitespace().collect();
        if !all.is_empty() {
            self.client(&[["rm", "-f"].as_slice(), &all].concat());
        }
        let _ = self.engine.kill();
        let _ = self.engine.wait();
    }
}

fn start(kind: Kind, folder: &Path) -> Child {
    let at = |name: &str| folder.join(name).display().to_string();
    let socket = format!("unix://{}", at("engine.sock"));
    let arguments: Vec<String> = match kind {
        Kind::Docker => [
            "dockerd".into(),
            format!("--data-root={}", at("data")),
            format!("--exec-root={}", at("exec")),
            format!("--host={socket}"),
            format!("--pidfile={}", at("pid")),
            "--iptables=false".into(),
            "--ip6tables=false".into(),
            "--bridge=none".into(),
        ]
        .to_vec(),
        Kind::Podman => [
            "podman".into(),
            format!("--root={}", at("data")),
            format!("--runroot={}", at("run")),
            format!("--tmpdir={}", at("tmp")),
            "--storage-driver=overlay".into(),
            "--runtime=runc".into(),
            "--cgroup-manager=cgroupfs".into(),
            "--events-backend=file".into(),
            "system".into(),
            "service".into(),
            "--time=0".into(),
            socket,
        ]
        .to_vec(),
    };
    let log = fs::File::create(folder.join("log")).unwrap();
    Command::new("setpriv")
        .args([
            "--pdeathsig",
            "KILL",
            "unshare",
            "--net",
            "--mount",
            "--pid",
            "--mount-proc",
            "--fork",
            "--kill-child",
        ])
        .args(["sh", "-e", "-c", RAISE, "sh"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap()
}

fn wait_for(socket: &Path) {
    let began = Instant::now();
    while UnixStream::connect(socket).is_err() {
        let log = fs::read_to_string(socket.with_file_name("log")).unwrap_or_default();
        assert!(began.elapsed() < PATIENCE, "the engine does not start:\n{log}");
        std::thread::yield_now();
    }
}

fn connect(socket: &Path, folder: &Path, keeper: Vec<OsString>) -> OciDriver {
    let root = folder.join("redoma").into_os_string();
    let home = folder.join("home").into_os_string();
    let homes = Homes::from_vars(&|name| match name {
        "HOME" => Some(home.clone()),
        "REDOMA_HOME" => Some(root.clone()),
        _ => None,
    });
    let setup = Setup {
        homes: homes.unwrap(),
        program: GUEST.into(),
        guest: Vec::new(),
        keeper,
        certificates: folder.to_owned(),
    };
    OciDriver::connect(&Engine::Socket(socket.to_owned()), setup).unwrap()
}

/// An image of busybox alone, as `docker import` takes it.
fn import(socket: &Path, folder: &Path) {
    let root = folder.join("root");
    for name in ["bin", "etc", "tmp", "var", "root", "run"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777)).unwrap();
    fs::write(root.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n").unwrap();
    fs::copy("/usr/bin/busybox", root.join("bin/busybox")).unwrap();
    let applets = Command::new("busybox").arg("--list").output().unwrap();
    for applet in String::from_utf8(applets.stdout).unwrap().lines().filter(|name| *name != "busybox") {
        symlink("busybox", root.join("bin").join(applet)).unwrap();
    }
    let packed = Command::new("tar").arg("-C").arg(&root).args(["-c", "."]).output().unwrap();
    let mut client = Command::new("docker")
        .args(["-H", &format!("unix://{}", socket.display()), "import", "-", IMAGE])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    client.stdin.take().unwrap().write_all(&packed.stdout).unwrap();
    assert!(client.wait().unwrap().success(), "the image is not taken");
}
