use std::path::PathBuf;

use super::*;
use crate::driver::{Call, Mock, SandboxId};
use crate::services::{Group, Loaded, Ready, Which, down, load, parse, stop_all};
use crate::settings::Settings;
use crate::trust::TrustStore;

/// A folder with a services file, and a home apart from it.
struct Folder {
    dir: tempfile::TempDir,
    mock: Mock,
}

impl Folder {
    fn new(toml: &str) -> Self {
        let folder = Self { dir: tempfile::tempdir().unwrap(), mock: Mock::new() };
        for name in ["p/data", "home", "outside"] {
            std::fs::create_dir_all(folder.at(name)).unwrap();
        }
        folder.write(toml);
        folder
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, toml: &str) {
        std::fs::write(self.at("p/redoma-services.toml"), toml).unwrap();
    }

    fn settings(&self) -> Settings {
        let home = self.at("home");
        let vars = move |name: &str| match name {
            "HOME" => Some(home.clone().into_os_string()),
            "REDOMA_HOME" => Some(home.join("redoma").into_os_string()),
            _ => None,
        };
        Settings::at(&self.at("p"), &vars).unwrap()
    }

    fn load(&self) -> Loaded {
        load(None, &self.at("p"), &self.settings(), &|_| None).unwrap()
    }

    fn plan(&self) -> Result<Plan, ServicesError> {
        let (loaded, settings) = (self.load(), self.settings());
        Ready { loaded: &loaded, settings: &settings, now: 7, labels: BTreeMap::new() }.plan()
    }

    fn up(&self, recreate: bool) -> Result<Vec<String>, ServicesError> {
        let plan = self.plan()?;
        let mut told = Vec::new();
        let tell = &mut |step: Step<'_>| told.push(format!("{step:?}"));
        Up { driver: &self.mock, plan: &plan, recreate, tell }.run()?;
        Ok(told
            .iter()
            .map(|step| {
                step.replace(['(', ')', '"'], " ")
                    .replace("Name", "")
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect())
    }

    fn calls(&self, method: &str) -> Vec<String> {
        let of = |call: Call| format!("{} {}", call.of, call.argv.join(" ")).trim_end().to_owned();
        self.mock.calls().into_iter().filter(|call| call.method == method).map(of).collect()
    }
}

fn of(group: &str) -> Which {
    Which { group: Some(group.parse().unwrap()), file: None }
}

const SHOP: &str = r#"
name = "shop"
[service.api]
image = "host"
command = "sleep 1000"
depends_on = ["db"]
mounts = ["data:/data:ro"]
[service.db]
image = "host"
net = "none"
command = ["sleep", "2000"]
health = { cmd = ["true"] }
"#;

#[test]
fn services_are_made_and_started_in_the_order_in_which_they_wait_for_each_other() {
    let folder = Folder::new(SHOP);
    let told = folder.up(false).unwrap();
    assert_eq!(
        told,
        ["Created db", "Created api", "Started db", "Works db", "Started api", "Works db"],
        "{told:?}"
    );
    assert_eq!(folder.calls("create"), ["shop-db", "shop-api"]);
    assert_eq!(
        folder.calls("exec"),
        ["shop-db sleep 2000", "shop-db true", "shop-api sleep 1000", "shop-db true"]
    );
    let all = folder.mock.list().unwrap();
    let api = &all.iter().find(|info| info.spec.name.as_str() == "shop-api").unwrap().spec;
    let peer = (&"db".parse().unwrap(), &"shop-db".parse().unwrap());
    assert_eq!(api.peers.iter().collect::<Vec<_>>(), [peer]);
    assert_eq!(api.mounts[0].from, folder.at("p/data"));
    assert_eq!((api.labels[&Label::Group].as_str(), api.labels[&Label::Service].as_str()), ("shop", "api"));
}

#[test]
fn twice_is_once_and_what_is_no_longer_as_the_file_says_is_told() {
    let folder = Folder::new(SHOP);
    folder.up(false).unwrap();
    let told = folder.up(false).unwrap();
    assert_eq!(told, ["Runs db", "Works db", "Runs api", "Works db"]);
    assert_eq!(folder.calls("create").len(), 2);
    folder.write(&SHOP.replace("sleep 1000", "sleep 1001"));
    let error = folder.up(false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "service api is there, but not as the file says: command, health or restart"
    );
    folder.write(&SHOP.replace("net = \"none\"", "net = \"deny\"\nenv = { A = \"b\" }"));
    let error = folder.up(false).unwrap_err();
    assert_eq!(error.to_string(), "service db is there, but not as the file says: network, env");
    assert_eq!(error.hint(), "redoma up --recreate");
    let told = folder.up(true).unwrap();
    assert_eq!(told, ["Created db", "Started db", "Works db", "Runs api", "Works db"]);
    assert_eq!(folder.calls("destroy"), ["shop-db"]);
}

#[test]
fn a_service_that_ends_or_never_works_is_named_with_the_reason() {
    let ends = Folder::new("name = \"g\"\n[service.a]\nimage = \"host\"\ncommand = \"sh -c 'exit 3'\"\n");
    assert_eq!(ends.up(false).unwrap_err().to_string(), "service a ended with 3");
    let sick = "name = \"g\"\n[service.a]\nimage = \"host\"\ncommand = \"sleep 1000\"\nhealth = { cmd = [\"false\"], interval = \"50ms\", retries = 2 }\n";
    let sick = Folder::new(sick);
    assert_eq!(
        sick.up(false).unwrap_err().to_string(),
        "service a does not work after 0 s: false exits with 1"
    );
    let absent = Folder::new("name = \"g\"\n[service.a]\nimage = \"host\"\ncommand = \"no-such\"\n");
    let error = absent.up(false).unwrap_err();
    assert!(error.to_string().starts_with("service a could not be started: "), "{error}");
    assert_eq!(error.hint(), "redoma sandbox logs g-a");
    // What was made is there for `down`.
    assert_eq!(down(&absent.mock, &of("g")).unwrap().len(), 1);
    assert!(absent.mock.list().unwrap().is_empty());
}

#[test]
fn a_group_ends_last_first_and_nothing_else_does() {
    let folder = Folder::new(SHOP);
    folder.up(false).unwrap();
    let other = Spec {
        id: SandboxId::random().unwrap(),
        name: "other".parse().unwrap(),
        labels: BTreeMap::new(),
        ..folder.plan().unwrap().services[0].spec.clone()
    };
    folder.mock.create(&other).unwrap();
    let stopped = stop_all(&folder.mock, &of("shop")).unwrap();
    assert_eq!(stopped.len(), 2);
    let gone = down(&folder.mock, &of("shop")).unwrap();
    assert_eq!(gone.len(), 2);
    assert_eq!(folder.mock.list().unwrap().len(), 1);
    assert!(down(&folder.mock, &of("shop")).unwrap().is_empty(), "twice is no error");
}

#[test]
fn a_sandbox_that_somebody_made_under_that_name_is_left_alone() {
    let folder = Folder::new(SHOP);
    let plan = folder.plan().unwrap();
    let own = Spec { labels: BTreeMap::new(), ..plan.services[0].spec.clone() };
    folder.mock.create(&own).unwrap();
    let error = folder.up(true).unwrap_err();
    assert_eq!(error.to_string(), "the sandbox shop-db is there, and not of this group shop");
    assert!(folder.calls("destroy").is_empty());
}

#[test]
fn groups_of_one_name_in_two_folders_are_two() {
    let folder = Folder::new(SHOP);
    folder.up(false).unwrap();
    let plan = Plan { file: "/elsewhere/redoma-services.toml".into(), ..folder.plan().unwrap() };
    let up = Up { driver: &folder.mock, plan: &plan, recreate: true, tell: &mut |_: Step<'_>| {} };
    assert!(matches!(up.run().unwrap_err(), ServicesError::Foreign { .. }));
    let elsewhere = Which { group: Some(plan.group), file: Some(plan.file) };
    assert!(down(&folder.mock, &elsewhere).unwrap().is_empty());
    assert_eq!(folder.mock.list().unwrap().len(), 2);
}

#[test]
fn what_is_outside_the_files_folder_needs_trust_also_behind_a_link() {
    let wants = |from: &str| SHOP.replace("data:/data:ro", &format!("{from}:/data"));
    let folder = Folder::new(&wants("../outside"));
    let error = folder.plan().unwrap_err();
    assert!(
        error.to_string().ends_with(&format!("outside its folder: {}", folder.at("outside").display())),
        "{error}"
    );
    std::os::unix::fs::symlink(folder.at("outside"), folder.at("p/link")).unwrap();
    folder.write(&wants("./link"));
    assert!(matches!(folder.plan().unwrap_err(), ServicesError::Untrusted { .. }));
    folder.write(&SHOP.replacen("image = \"host\"", "image = \"/usr\"", 1));
    assert!(
        matches!(folder.plan().unwrap_err(), ServicesError::Untrusted { .. }),
        "a folder as a root is a mount too"
    );
    folder.write(&wants("./link"));
    let path = folder.at("p/redoma-services.toml");
    let list = folder.settings().homes.trust();
    TrustStore::trust(&list, &path, &std::fs::read(&path).unwrap()).unwrap();
    let plan = folder.plan().unwrap();
    assert_eq!(plan.services[1].spec.mounts[0].from, folder.at("outside"));
    folder.write(&(wants("./link") + "\n"));
    assert!(folder.plan().is_err(), "another content is not trusted");
    folder.write(&wants("./nothing"));
    assert!(matches!(folder.plan().unwrap_err(), ServicesError::Mount { .. }));
}

#[test]
fn a_home_folder_is_no_folder_of_the_files_own() {
    let folder = Folder::new(SHOP);
    std::fs::create_dir_all(folder.at("home/.ssh")).unwrap();
    let path = folder.at("home/redoma-services.toml");
    std::fs::write(&path, SHOP.replace("data:/data:ro", ".ssh:/data")).unwrap();
    let settings = folder.settings();
    let loaded = load(Some(&path), &folder.at("home"), &settings, &|_| None).unwrap();
    let ready = Ready { loaded: &loaded, settings: &settings, now: 7, labels: BTreeMap::new() };
    assert!(matches!(ready.plan().unwrap_err(), ServicesError::Untrusted { .. }));
}

#[test]
fn a_restarted_service_is_waited_for_and_a_job_is_waited_out() {
    let jobs = "name = \"g\"\n[service.a]\nimage = \"host\"\ncommand = \"true\"\n";
    let folder = Folder::new(jobs);
    assert_eq!(folder.up(false).unwrap(), ["Created a", "Started a", "Ended a"]);
    let compose = "services:\n  job: {image: host, command: \"true\"}\n  web:\n    image: host\n    command: sleep 1000\n    depends_on: {job: {condition: service_completed_successfully}}\n";
    let group: Group = parse(&folder.at("p/compose.yaml"), compose, &|_| None).unwrap();
    let loaded = Loaded { path: folder.at("p/compose.yaml"), group, trusted: false, own: None };
    let settings = folder.settings();
    let plan =
        Ready { loaded: &loaded, settings: &settings, now: 7, labels: BTreeMap::new() }.plan().unwrap();
    let mut told = Vec::new();
    let mock = Mock::new();
    let tell = &mut |step: Step<'_>| told.push(format!("{step:?}"));
    Up { driver: &mock, plan: &plan, recreate: false, tell }.run().unwrap();
    assert_eq!(told[2..4], ["Started(Name(\"job\"))", "Waiting(Name(\"job\"))"]);
    assert!(told.contains(&"Started(Name(\"web\"))".to_owned()));
}
