use std::fs;

use super::*;
use crate::driver::Mock;
use crate::services::{Step, Up};

struct Repository {
    dir: tempfile::TempDir,
    mock: Mock,
}

impl Repository {
    fn new(services: Option<&str>) -> Self {
        let repository = Self { dir: tempfile::tempdir().unwrap(), mock: Mock::new() };
        fs::create_dir_all(repository.at("home")).unwrap();
        repository.write("shop/.git/HEAD", "ref: refs/heads/main\n");
        if let Some(text) = services {
            repository.write("shop/redoma-services.toml", text);
        }
        repository
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn settings(&self, tree: &str) -> Settings {
        let home = self.at("home");
        let vars = move |name: &str| match name {
            "HOME" => Some(home.clone().into_os_string()),
            "REDOMA_HOME" => Some(home.join("redoma").into_os_string()),
            _ => None,
        };
        Settings::at(&self.at(tree), &vars).unwrap()
    }

    fn plan(&self, tree: &str, direct: bool) -> Plan {
        let settings = self.settings(tree);
        let checkout = Checkout::of(&settings.project).unwrap();
        let wanted = Wanted { checkout: &checkout, settings: &settings, vars: &|_| None, direct, now: 7 };
        wanted.plan(&self.mock).unwrap()
    }

    fn up(&self, tree: &str) -> Plan {
        let plan = self.plan(tree, false);
        Up { driver: &self.mock, plan: &plan, recreate: false, tell: &mut |_: Step<'_>| {} }.run().unwrap();
        plan
    }
}

const SERVICES: &str = "[service.web]\nimage = \"host\"\ncommand = \"sleep 1000\"\nmounts = [\"./src:/src\"]\nports = [8000]\nhealth = { cmd = [\"true\"] }\n";

#[test]
fn each_branch_has_sandboxes_and_ports_of_its_own_and_keeps_them() {
    let repository = Repository::new(Some(SERVICES));
    repository.write("shop/src/a", "");
    let main = repository.up("shop");
    assert_eq!(main.group.as_str(), "shop-main");
    assert_eq!(main.services[0].spec.name.as_str(), "shop-main-web");
    assert!(main.services[0].spec.mounts[0].overlay, "the tree is not written to");
    repository.write("shop/.git/HEAD", "ref: refs/heads/feature/x\n");
    let other = repository.up("shop");
    assert!(other.group.as_str().starts_with("shop-feature-x-"));
    let port = |plan: &Plan| plan.services[0].spec.publish[0].outside;
    assert_ne!(port(&main), port(&other));
    repository.write("shop/.git/HEAD", "ref: refs/heads/main\n");
    assert_eq!(port(&repository.up("shop")), port(&main), "twice is once");
    let branches: Vec<String> =
        previews(&repository.mock, None).unwrap().into_iter().map(|one| one.branch).collect();
    assert_eq!(branches, ["feature/x", "main"]);
}

#[test]
fn without_a_services_file_there_is_one_sandbox_with_the_tree() {
    let repository = Repository::new(None);
    let plan = repository.up("shop");
    assert_eq!(plan.services.len(), 1);
    let spec = &plan.services[0].spec;
    assert_eq!((spec.name.as_str(), &spec.image), ("shop-main-box", &ImageName::Host));
    let mounted = Mount { from: repository.at("shop"), to: TREE.into(), writable: true, overlay: true };
    assert_eq!(spec.mounts, [mounted]);
    assert!(!repository.plan("shop", true).services[0].spec.mounts[0].overlay, "unless it is asked for");
}

#[test]
fn a_branch_that_is_gone_is_found_by_its_labels() {
    let repository = Repository::new(None);
    repository.write("shop/.git/HEAD", "ref: refs/heads/gone\n");
    let _ = repository.up("shop");
    repository.write("shop/.git/HEAD", "ref: refs/heads/main\n");
    let _ = repository.up("shop");
    let project = repository.settings("shop").project;
    let gone = find(&repository.mock, &project, Some("gone")).unwrap();
    remove(&repository.mock, &gone).unwrap();
    assert!(matches!(find(&repository.mock, &project, Some("gone")), Err(PreviewError::NoPreview(_))));
    assert_eq!(find(&repository.mock, &project, None).unwrap().branch, "main");
}

#[test]
fn worktrees_are_the_same_repository_and_a_forged_one_is_none() {
    let repository = Repository::new(None);
    let git = repository.at("shop/.git/worktrees/linked");
    repository.write("shop/.git/worktrees/linked/commondir", "../..\n");
    repository.write("shop/.git/worktrees/linked/HEAD", "ref: refs/heads/linked\n");
    let file = repository.at("linked/.git");
    repository.write("linked/.git", &format!("gitdir: {}\n", git.display()));
    repository.write("shop/.git/worktrees/linked/gitdir", &format!("{}\n", file.display()));
    let checkout = Checkout::of(&repository.settings("linked").project).unwrap();
    assert_eq!(checkout.repository, repository.at("shop"));
    assert_eq!(checkout.branch.to_string(), "linked");
    assert_eq!(checkout.tree, repository.at("linked"));
    repository.write("forged/.git", &format!("gitdir: {}\n", git.display()));
    let forged = Checkout::of(&repository.settings("forged").project);
    assert!(matches!(forged, Err(BranchError::NotMutual(_))), "{forged:?}");
}

#[test]
fn two_repositories_of_one_name_are_two() {
    let repository = Repository::new(None);
    repository.write("other/shop/.git/HEAD", "ref: refs/heads/main\n");
    let (one, two) = (repository.up("shop"), repository.up("other/shop"));
    assert_eq!(one.group.as_str(), "shop-main");
    assert!(two.group.as_str().starts_with("shop-main-"), "{}", two.group);
    assert_eq!(previews(&repository.mock, Some(&repository.at("shop"))).unwrap().len(), 1);
}

#[test]
fn a_planted_head_is_refused() {
    let repository = Repository::new(None);
    let project = repository.settings("shop").project;
    repository.write("shop/.git/HEAD", "ref: refs/heads/../../../etc\n");
    assert!(matches!(Checkout::of(&project), Err(BranchError::NoBranch { .. })));
    fs::remove_file(repository.at("shop/.git/HEAD")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", repository.at("shop/.git/HEAD")).unwrap();
    assert!(matches!(Checkout::of(&project), Err(BranchError::Read { .. })));
}
