//! What `redoma why` says is what the kernel does: policies and trees are generated, and every path is tried.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use redoma_tests::{Home, Project, Ran, Tier};

/// Names with and without a meaning in the default profile.
const NAMES: [&str; 5] = ["a", "b", "c.pem", ".env", ".envrc"];

/// Policies tried per tier, the same at each run. Each starts one sandbox and asks `why` twice per path.
///
/// `REDOMA_WHY_POLICIES=200` tries that many others, drawn anew.
const POLICIES: u32 = 12;

/// A policy over the generated tree, as lists of entries.
#[derive(Debug, Clone)]
struct Lists {
    profile: &'static str,
    lists: BTreeMap<&'static str, Vec<String>>,
}

/// `project/a/b`, `outside/c.pem`: two trees of the same shape, one in the project, one beside the home.
fn entry() -> impl Strategy<Value = String> {
    let exact = (select(vec!["PROJECT", "OUTSIDE"]), prop::collection::vec(select(NAMES.to_vec()), 0..3));
    let exact = exact.prop_map(|(top, names)| [&[top], names.as_slice()].concat().join("/"));
    let glob = select(vec!["**/*.pem", "**/b", "PROJECT/a/*", "OUTSIDE/**/a"]).prop_map(str::to_owned);
    prop_oneof![4 => exact, 1 => glob]
}

fn lists() -> impl Strategy<Value = Lists> {
    let some = |most| prop::collection::vec(entry(), 0..most);
    let granted =
        || some(3).prop_map(|entries| entries.into_iter().filter(|entry| !entry.contains('*')).collect());
    (select(vec!["default", "strict"]), granted(), granted(), some(3), some(2)).prop_map(
        |(profile, read, write, deny, protect)| Lists {
            profile,
            lists: [("read", read), ("write", write), ("deny", deny), ("protect", protect)].into(),
        },
    )
}

/// Where a generated policy is tried.
struct Bed<'home> {
    home: &'home Home,
    project: Project<'home>,
    /// Every file, and in every folder one name that does not exist yet.
    paths: Vec<PathBuf>,
}

impl<'home> Bed<'home> {
    fn new(home: &'home Home) -> Self {
        let project = home.folder("p");
        let mut paths = Vec::new();
        for top in [project.path().to_owned(), home.outside()] {
            // Every name once as a file below the top and below two folders, which are names as well.
            for folder in [top.clone(), top.join("a"), top.join("b")] {
                fs::create_dir_all(&folder).unwrap();
                let names = NAMES.iter().filter(|name| folder != top || !["a", "b"].contains(name));
                paths.extend(names.map(|name| folder.join(name)));
                paths.push(folder.join("new"));
            }
        }
        Self { home, project, paths }
    }

    fn write_policy(&self, policy: &Lists) {
        let mut text = format!("extends = \"{}\"\n[filesystem]\nundo = false\n", policy.profile);
        for (list, entries) in &policy.lists {
            let entries: Vec<String> = entries.iter().map(|entry| self.placed(entry)).collect();
            writeln!(text, "{list} = {entries:?}").unwrap();
        }
        self.home.policy(&text);
    }

    fn placed(&self, entry: &str) -> String {
        let project = self.project.path().display().to_string();
        entry.replace("PROJECT", &project).replace("OUTSIDE", &self.home.outside().display().to_string())
    }

    /// Gives every file its own content and removes what the last policy let be made.
    fn reset(&self) {
        for path in &self.paths {
            match path.ends_with("new") {
                true => drop(fs::remove_file(path)),
                false => fs::write(path, content(path)).unwrap(),
            }
        }
    }

    /// One sandbox reads every path, then appends to every path.
    fn try_all(&self, tier: Tier) -> Ran {
        let mut script = String::new();
        for path in &self.paths {
            writeln!(script, "cat '{}' 2>/dev/null", path.display()).unwrap();
        }
        for path in &self.paths {
            writeln!(script, "echo written 2>/dev/null >> '{}'", path.display()).unwrap();
        }
        // A shell that cannot open what a built-in is sent to goes on; `:` so that the last one decides nothing.
        self.project.inside(["bash", "-c", &(script + ":")]).tier(tier).run()
    }

    /// Whether `why` says that the action works on the host's own file.
    fn said(&self, tier: Tier, action: &str, path: &Path) -> (bool, String) {
        let ran = self.project.redoma(["why", action, path.to_str().unwrap(), "--json"]).tier(tier).run();
        let answer = ran.json();
        (answer["effect"] == "allow" && answer["place"] == "host", ran.out())
    }

    fn compare(&self, tier: Tier, policy: &Lists) -> Result<(), TestCaseError> {
        self.write_policy(policy);
        self.reset();
        let ran = self.try_all(tier);
        if ran.code() == 125 {
            // A tier that cannot enforce a policy has to say so, never to start.
            prop_assert!(tier == Tier::Landlock && ran.err().contains("hint: "), "{ran:?}");
            return Ok(());
        }
        let written: Vec<bool> = self.paths.iter().map(|path| was_written(path)).collect();
        // `why` speaks about the tree as a session would find it.
        self.reset();
        for (path, written) in self.paths.iter().zip(written) {
            let (said, answer) = self.said(tier, "write", path);
            prop_assert_eq!(said, written, "{:?} write {}\n{}\n{:?}", tier, path.display(), answer, policy);
            if !path.ends_with("new") {
                let read = ran.out().contains(&content(path));
                let (said, answer) = self.said(tier, "read", path);
                prop_assert_eq!(said, read, "{:?} read {}\n{}\n{:?}", tier, path.display(), answer, policy);
            }
        }
        Ok(())
    }
}

/// No decoy or placeholder can hold it.
fn content(path: &Path) -> String {
    format!("REAL=<{}>\n", path.display())
}

fn was_written(path: &Path) -> bool {
    fs::read_to_string(path).is_ok_and(|text| text.contains("written"))
}

fn generated_policies_agree(tier: Tier) {
    let home = Home::new();
    let bed = Bed::new(&home);
    let more = std::env::var("REDOMA_WHY_POLICIES").ok().map(|number| number.parse().unwrap());
    let cases = more.unwrap_or(POLICIES);
    let config = Config { cases, max_shrink_iters: 30, failure_persistence: None, ..Config::default() };
    let mut runner = match more {
        Some(_) => TestRunner::new(config),
        None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    };
    let outcome = runner.run(&lists(), |policy| bed.compare(tier, &policy));
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn why_and_the_kernel_agree_in_the_landlock_tier() {
    generated_policies_agree(Tier::Landlock);
}

#[test]
fn a_denied_path_names_the_rule_and_its_line() {
    let home = Home::new();
    let project = home.project("p");
    home.policy("[filesystem]\ndeny = [\"~/notes\"]\n");
    home.file("notes", "x\n");
    let path = home.path().join("notes");
    let ran = project.redoma(["why", "read", path.to_str().unwrap()]).run();
    assert!(ran.out().contains("policy.toml:2"), "{ran:?}");
}

#[test]
fn the_smallest_change_works_when_pasted() {
    let home = Home::new();
    let project = home.project("p");
    let path = home.outside().join("data");
    fs::write(&path, "host data\n").unwrap();
    let path = path.to_str().unwrap();
    let ran = project.redoma(["why", "read", path, "--json"]).run();
    let command = ran.json()["change"]["command"].as_str().unwrap_or_else(|| panic!("{ran:?}")).to_owned();
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let _ = project.redoma(words).run().ok();
    let after = project.inside(["cat", path]).run();
    assert_eq!(after.out(), "host data\n", "{command}: {after:?}");
}

#[test]
fn why_and_the_kernel_agree_in_the_full_tier() {
    generated_policies_agree(Tier::Full);
}
