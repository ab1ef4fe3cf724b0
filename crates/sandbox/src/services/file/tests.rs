use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use redoma_policy::NetworkDefault;

use super::*;
use crate::driver::{ImageName, Restart};
use crate::services::model::{Beginning, Bind, Condition, Probe};

fn read(file: &str, text: &str) -> Result<Group, ServicesError> {
    let vars = |name: &str| (name == "TAG").then(|| "16".to_owned());
    parse(&PathBuf::from("/srv/My Shop").join(file), text, &vars)
}

fn of<'g>(group: &'g Group, name: &str) -> &'g Service {
    &group.services[&name.parse::<Name>().unwrap()]
}

fn refused(file: &str, text: &str) -> (String, String) {
    let error = read(file, text).unwrap_err();
    (error.to_string().replace("/srv/My Shop/", ""), error.hint())
}

const OWN: &str = r#"
name = "shop"

[service.db]
image = "postgres:${TAG}"
env = { POSTGRES_PASSWORD = "x", LEVEL = 3, DEBUG = true }
mounts = ["./data:/var/lib/postgresql/data"]
health = { cmd = "pg_isready -U postgres", interval = "500ms", retries = 20 }
restart = "on-failure"
limits = { memory = "1GiB", pids = 64 }

[service.web]
template = "python"
command = "python -m http.server '8000'"
ports = [8000, "127.0.0.1:9000:9001"]
depends_on = ["db"]
net = "deny"
allow = ["pip", "example.com:443"]
health = { http = "8000/health" }
"#;

#[test]
fn our_own_file_says_all_there_is() {
    let group = read("redoma-services.toml", OWN).unwrap();
    assert_eq!(group.name.as_str(), "shop");
    let (db, web) = (of(&group, "db"), of(&group, "web"));
    assert_eq!(db.begins, Beginning::Image(ImageName::Reference("postgres:16".into())));
    assert_eq!((db.env["LEVEL"].as_str(), db.env["DEBUG"].as_str()), ("3", "true"));
    let mounted =
        Bind { from: "./data".into(), to: "/var/lib/postgresql/data".into(), writable: true, overlay: false };
    assert_eq!(db.mounts, [mounted]);
    let health = db.health.clone().unwrap();
    assert_eq!(
        health.probe,
        Probe::Command(["/bin/sh", "-c", "pg_isready -U postgres"].map(str::to_owned).to_vec())
    );
    assert_eq!((health.interval, health.retries), (Duration::from_millis(500), 20));
    assert_eq!((db.restart, db.amounts.pids), (Restart::OnFailure, Some(64)));
    assert_eq!(web.command.as_deref().unwrap(), ["python", "-m", "http.server", "8000"]);
    let ports: Vec<String> = web.ports.iter().map(ToString::to_string).collect();
    assert_eq!(ports.len(), 2);
    assert_eq!((ports[1].as_str(), web.ports[0].outside.get()), ("9000:9001", 8000));
    assert_eq!(web.after, BTreeMap::from([("db".parse().unwrap(), Condition::Healthy)]));
    assert_eq!(web.health.clone().unwrap().probe, Probe::Http { port: 8000, path: "/health".into() });
}

const PEAPOD: &str = r#"{
  "name": "pod",
  "services": {
    "db": { "image": "postgres:16", "network": "none", "env": { "POSTGRES_PASSWORD": "$x" } },
    "web": { "image": "python:3.12", "ports": ["8000:8000"], "mounts": ["app:/app"], "workdir": "/app" }
  }
}"#;

#[test]
fn a_peapod_file_is_read_as_it_is() {
    let group = read("peapod.json", PEAPOD).unwrap();
    let (db, web) = (of(&group, "db"), of(&group, "web"));
    assert_eq!(db.net, Some(NetworkDefault::None));
    assert_eq!(db.env["POSTGRES_PASSWORD"], "$x", "nothing is expanded in it");
    assert_eq!(web.net, Some(NetworkDefault::Allow), "egress is what it means where nothing is said");
    assert_eq!(web.mounts[0].from, "app");
    assert_eq!(web.workdir.as_deref(), Some("/app".as_ref()));
}

const COMPOSE: &str = r#"
version: "3.9"
x-env: &env
  LEVEL: 3
services:
  db:
    image: postgres:${TAG:-15}
    environment: *env
    volumes:
      - ./data:/var/lib/postgresql/data
      - { type: bind, source: ./conf, target: /conf, read_only: true }
    healthcheck:
      test: ["CMD", "pg_isready"]
      interval: 2s
      retries: 5
    restart: unless-stopped
  web:
    image: python:3.12
    command: python -m "http.server"
    environment:
      - MODE=dev
      - TAG
    ports:
      - "8000:8000"
      - { target: 9001, published: "9000" }
    depends_on:
      db: { condition: service_healthy }
    network_mode: none
"#;

#[test]
fn what_compose_files_have_in_common_with_ours_is_understood() {
    let group = read("compose.yaml", COMPOSE).unwrap();
    assert_eq!(group.name.as_str(), "my-shop", "the folder's name where the file has none");
    assert_eq!(group.notes, ["ports are published on this machine's loopback only"]);
    let (db, web) = (of(&group, "db"), of(&group, "web"));
    assert_eq!(db.begins, Beginning::Image(ImageName::Reference("postgres:16".into())));
    assert_eq!(db.env["LEVEL"], "3");
    assert!(db.mounts[0].writable && !db.mounts[1].writable);
    assert_eq!(db.health.clone().unwrap().patience(), Duration::from_secs(10));
    assert_eq!((db.restart, db.net), (Restart::Always, Some(NetworkDefault::Allow)));
    assert_eq!(web.command.as_deref().unwrap(), ["python", "-m", "http.server"]);
    assert_eq!((web.env["MODE"].as_str(), web.env["TAG"].as_str()), ("dev", "16"));
    assert_eq!((web.ports[1].outside.get(), web.ports[1].inside.get()), (9000, 9001));
    assert_eq!(web.after, BTreeMap::from([("db".parse().unwrap(), Condition::Healthy)]));
    assert_eq!(web.net, Some(NetworkDefault::None));
}

#[test]
fn what_is_not_known_is_refused_by_name_and_line() {
    let own = refused("redoma-services.toml", "[service.a]\nimage = \"host\"\nprivileged = true\n");
    assert!(own.0.starts_with("redoma-services.toml:3: unknown field `privileged`"), "{}", own.0);
    let peapod = refused("peapod.json", "{\"services\": {\"a\": {\"image\": \"x\",\n \"health\": 1}}}");
    assert!(peapod.0.starts_with("peapod.json:2: unknown field `health`"), "{}", peapod.0);
    assert!(peapod.1.contains("redoma-services.toml"));
    let service =
        |more: &str| refused("compose.yaml", &format!("services:\n  a:\n    image: x\n    {more}\n"));
    for (more, wanted) in [
        ("privileged: true", "compose.yaml:4: `privileged` of service a is not known"),
        ("build: .", "compose.yaml:4: `build` of service a is not known"),
        ("network_mode: host", "compose.yaml:4: `network_mode` of service a is not known"),
        (
            "volumes: [data:/data]",
            "compose.yaml:4: volume data is a named one: only folders of this machine are known",
        ),
        (
            "ports: [\"0.0.0.0:80:80\"]",
            "compose.yaml:4: port 0.0.0.0:80:80 is published on 0.0.0.0: only loopback can be",
        ),
        ("ports: [\"80:80/udp\"]", "compose.yaml:4: port 80:80/udp is udp: only tcp can be published"),
        ("restart: maybe", "compose.yaml:4: restart \"maybe\" is not known"),
        ("user: \"1000\"", "compose.yaml:4: user \"1000\": only root and who the image says are known"),
        ("command: !!str x", "compose.yaml:4: tags (`!…`) are not known"),
        ("image: y", "compose.yaml:4: `image` is said twice"),
        ("environment: [SECRET]", "compose.yaml:4: variable SECRET was not passed"),
    ] {
        assert_eq!(service(more).0, wanted);
    }
    assert_eq!(service("environment: [SECRET]").1, "redoma up --env SECRET");
    assert!(
        refused("compose.yaml", "services: {a: {image: x}}\nnetworks: {}\n")
            .0
            .contains(":2: `networks` of the file")
    );
}

#[test]
fn names_are_said_once_and_lead_somewhere() {
    let twice = refused("peapod.json", r#"{"services": {"a": {"image": "x"}, "a": {"image": "y"}}}"#);
    assert!(twice.0.contains("\"a\" is said twice"), "{}", twice.0);
    let gone = refused("redoma-services.toml", "[service.a]\nimage = \"host\"\ndepends_on = [\"b\"]\n");
    assert!(gone.0.contains("service a waits for b, which is not there"), "{}", gone.0);
    let both = "[service.a]\nimage=\"host\"\nports=[1]\n[service.b]\nimage=\"host\"\nports=[1]\n";
    assert!(refused("redoma-services.toml", both).0.contains("both want port 1"));
    assert!(
        refused("redoma-services.toml", "[service.\"../a\"]\nimage = \"host\"\n").0.contains("is no name")
    );
    assert!(
        refused("redoma-services.toml", "[service.a]\nimage=\"host\"\nworkdir=\"x\"\n")
            .0
            .contains("begin with /")
    );
}

#[test]
fn aliases_cannot_blow_up() {
    let mut text = "x0: &a0 [1,2,3,4,5,6,7,8,9]\n".to_owned();
    for level in 1..9 {
        let below = format!("*a{},", level - 1).repeat(9);
        text.push_str(&format!("x{level}: &a{level} [{below}]\n"));
    }
    assert!(refused("compose.yaml", &text).0.contains("aliases come to too much"));
    let deep = format!("a: {}{}", "[".repeat(100), "]".repeat(100));
    assert!(refused("compose.yaml", &deep).0.contains("too deep"));
}
