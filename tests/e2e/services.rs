//! Groups of services and previews of branches: what a file says comes up, is found by name, answers on loopback, and goes.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use redoma_tests::{Home, Layer, Layout, Project, Ran, Registry, available_tool, requires};

/// A folder with services; what is left of them goes with it.
struct Group<'h>(Project<'h>);

impl Group<'_> {
    fn redoma(&self, words: &str) -> Ran {
        self.0.redoma(words.split_whitespace()).run()
    }

    fn inside(&self, sandbox: &str, script: &str) -> Ran {
        self.0.redoma(["sandbox", "exec", sandbox, "--", "/bin/sh", "-c", script]).run()
    }
}

impl Drop for Group<'_> {
    fn drop(&mut self) {
        let _ = self.redoma("sandbox rm --all");
    }
}

fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// What is answered to a request on a port of this machine.
fn answer(port: u16) -> String {
    let mut connection = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    connection.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    let _ = connection.read_to_string(&mut text);
    text
}

/// An image whose own command serves a page on port 8000.
fn web_image(registry: &Registry) -> String {
    let busybox = fs::read(available_tool("busybox").unwrap()).unwrap();
    let serve = "#!/bin/busybox sh\n[ -n \"$1\" ] && exec /bin/busybox sh \"$@\"\nexec /bin/busybox httpd -f -p 8000 -h /www\n";
    let layer = Layer::default().folder("bin").folder("www").folder("tmp").file("bin/busybox", busybox);
    let layer = layer.file("bin/sh", serve).file("www/index.html", "from the image\n");
    let mut layout = Layout::new();
    layout.add("web", &[layer]);
    registry.push(&layout, "web")
}

#[test]
fn a_peapod_group_serves_what_its_images_start_and_finds_itself_by_name() {
    requires!("busybox", "docker-registry", "skopeo", "htpasswd");
    let home = Home::new();
    let group = Group(home.folder("pod"));
    let registry = Registry::open();
    let (image, port) = (web_image(&registry), free_port());
    let file = serde_json::json!({ "name": "pod", "services": {
        "back": { "image": image, "network": "none" },
        "front": { "image": image, "ports": [format!("{port}:8000")], "env": { "A": "b" } },
    }});
    group.0.file("peapod.json", file.to_string());
    let _ = group.redoma("up").ok();
    assert!(answer(port).ends_with("from the image\n"), "{}", answer(port));
    let across = "/bin/busybox wget -q -O - http://back:8000/; echo $A";
    assert_eq!(group.inside("pod-front", across).ok().out(), "from the image\nb\n");
    let listed = group.redoma("ps --json").ok().json();
    let states: Vec<_> =
        listed.as_array().unwrap().iter().map(|one| one["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["running", "running"]);
    let again = group.redoma("up").ok();
    assert!(again.err().contains("front: runs already"), "{}", again.err());
    assert_eq!(group.redoma("down").ok().out(), "pod-front\npod-back\n");
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
    assert_eq!(group.redoma("ps --all --json").ok().json().as_array().map(Vec::len), Some(0));
}

#[test]
fn a_service_waits_for_the_health_of_another_and_one_that_fails_says_why() {
    requires!("python3");
    let home = Home::new();
    let group = Group(home.folder("shop"));
    let port = free_port();
    let file = format!(
        "[service.api]\nimage = \"host\"\ncommand = \"python3 -um http.server 9000\"\ndepends_on = [\"db\"]\n\
         ports = [\"{port}:9000\"]\nhealth = {{ http = \"9000/\" }}\n\
         [service.db]\nimage = \"host\"\ncommand = \"sh -c 'sleep 0.3; exec python3 -um http.server 5432'\"\n\
         health = {{ port = 5432, interval = \"100ms\", retries = 300 }}\n"
    );
    group.0.file("redoma-services.toml", &file);
    let up = group.redoma("up").ok();
    let told = up.err();
    assert!(told.find("db: works").unwrap() < told.find("api: started").unwrap(), "{told}");
    assert!(answer(port).starts_with("HTTP/1.0 200"));
    let logs = group.redoma("logs api").ok().out();
    assert!(logs.lines().all(|line| line.starts_with("api")) && logs.contains("GET / HTTP/1.0"), "{logs}");
    group.0.file("redoma-services.toml", file.replace("sleep 0.3; exec", "echo no table >&2; exit 3;"));
    let differs = group.redoma("up").expect_code(1);
    assert!(differs.err().contains("hint: redoma up --recreate"), "{}", differs.err());
    let failed = group.redoma("up --recreate").expect_code(1);
    assert!(failed.err().contains("service db ended with 3"), "{}", failed.err());
    assert!(failed.err().contains("no table"), "{}", failed.err());
    let _ = group.redoma("down").ok();
}

#[test]
fn what_a_file_shows_of_outside_its_folder_waits_for_trust() {
    let home = Home::new();
    let group = Group(home.folder("p"));
    let outside = home.outside();
    fs::write(outside.join("note"), "seen").unwrap();
    let file = format!("[service.a]\nimage = \"host\"\nmounts = [\"{}:/x:ro\"]\n", outside.display());
    let path = group.0.file("redoma-services.toml", &file);
    let refused = group.redoma("up").expect_code(1);
    let hint = format!("hint: redoma policy trust {}", path.canonicalize().unwrap().display());
    assert!(refused.err().contains(&hint), "{}", refused.err());
    assert_eq!(group.redoma("sandbox ls --json").ok().json().as_array().map(Vec::len), Some(0));
    let _ = group.redoma("policy trust --yes redoma-services.toml").ok();
    let _ = group.redoma("up").ok();
    assert_eq!(group.inside("p-a", "cat /x/note").ok().out(), "seen");
}

#[test]
fn a_branch_has_sandboxes_of_its_own_that_do_not_change_the_tree() {
    requires!("git");
    let home = Home::new();
    let group = Group(home.project("repo"));
    group.0.file("page", "first");
    group.0.commit("first");
    let _ = group.redoma("preview up").ok();
    let write = group.inside("repo-main-box", "cat /workspace/page; echo changed > /workspace/page");
    assert_eq!(write.ok().out(), "first");
    assert_eq!(group.0.read("page"), "first");
    group.0.git(&["checkout", "--quiet", "-b", "feature/x"]);
    let _ = group.redoma("preview up").ok();
    group.0.git(&["checkout", "--quiet", "main"]);
    group.0.git(&["branch", "--quiet", "-D", "feature/x"]);
    let all = group.redoma("preview ls --json").ok().json();
    let branches: Vec<_> =
        all.as_array().unwrap().iter().map(|one| one["branch"].as_str().unwrap()).collect();
    assert_eq!(branches, ["feature/x", "main"]);
    let _ = group.redoma("preview down feature/x").ok();
    let _ = group.redoma("preview status").ok();
    let _ = group.redoma("preview down").ok();
    assert_eq!(group.redoma("preview ls --json").ok().json().as_array().map(Vec::len), Some(0));
}
