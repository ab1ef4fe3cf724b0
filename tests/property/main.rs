//! What `redoma why` says is what the kernel does.
//!
//! Trees and policies are generated. For each, one real sandbox tries to read, write, make, rename and remove every path
//! in the tree; what came of it on the host is compared with what `why` had said. Cases are the same in every run;
//! `PROPTEST_CASES` and `PROPTEST_RNG_SEED` ask for more of them and for others.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    reason = "tests are their own names, and a panic is how one fails"
)]

mod attempt;
mod judge;
mod rules;
mod tree;
mod why;

use std::cell::Cell;

use proptest::prop_assert;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use redoma_sandbox::why::Act;
use redoma_tests::{Home, Project, Ran, Tier};

use attempt::{Attempt, Plan, plan};
use judge::{Judge, Said, refusal_is_owed};
use rules::{Rules, rules};
use tree::{Grove, Places, Tree, tree};
use why::Why;

/// Sandboxes per tier, unless `PROPTEST_CASES` says otherwise.
const CASES: u32 = 32;

/// A tree, a policy over it, and what is tried.
struct Case {
    tree: Tree,
    rules: Rules,
    plan: Plan,
}

/// A failure shows the tree as it stood and the policy as it was written, so the choices behind them are left out.
impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("as shown above")
    }
}

impl Case {
    /// Whether a sandbox ran.
    fn hold(&self, tier: Tier) -> Result<bool, TestCaseError> {
        let home = Home::new();
        let project = home.folder("project");
        let places = Places {
            project: project.path().to_owned(),
            near: home.path().join("near/top"),
            far: home.outside().join("top"),
        };
        let mut grove = self.tree.plant(&places);
        self.write_policies(&home, &mut grove, &places);
        let attempt = Attempt::new(&self.plan, &grove, &self.rules, &places);
        let why = Why::new(&project, tier);
        sample(&why, &project, &attempt)?;
        let said = Said::of(&why, &attempt, &grove);
        let owed = refusal_is_owed(tier, &why, &grove);
        let ran = project.inside(["bash", "-c", &attempt.script()]).tier(tier).run();
        let judge = Judge {
            tier,
            why: &why,
            places: &places,
            grove: &grove,
            attempt: &attempt,
            said: &said,
            ran: &ran,
        };
        let judged = judge_run(&judge, owed);
        judged.map_err(|error| explained(&error, &self.rules.text(&grove, &places), &grove, &ran))
    }

    fn write_policies(&self, home: &Home, grove: &mut Grove, places: &Places) {
        home.policy(&self.rules.text(grove, places));
        if let Some(text) = self.rules.untrusted_text(grove, places) {
            grove.add(&places.project.join("redoma.toml"), &text);
        }
    }
}

fn judge_run(judge: &Judge<'_>, refusal_is_owed: bool) -> Result<bool, TestCaseError> {
    if judge.ran.code() == 125 {
        prop_assert!(refusal_is_owed && judge.ran.err().contains("hint: "), "refused");
        return Ok(false);
    }
    prop_assert!(judge.attempt.finished(judge.ran), "nothing ran inside");
    judge.all()?;
    Ok(true)
}

/// The program is asked about a few paths only: it takes a process each.
fn sample(why: &Why, project: &Project<'_>, attempt: &Attempt) -> Result<(), TestCaseError> {
    for probe in attempt.probes.iter().step_by(attempt.probes.len() / 2) {
        why.compare(project, Act::Read, &probe.path)?;
        why.compare(project, Act::Write, &probe.path)?;
    }
    Ok(())
}

fn explained(error: &TestCaseError, policy: &str, grove: &Grove, ran: &Ran) -> TestCaseError {
    let end = format!("--- exit code {}\n{}\n{ran:?}", ran.code(), ran.err());
    TestCaseError::fail(format!("{error}\n--- policy\n{policy}--- tree\n{grove}{end}"))
}

fn why_and_the_kernel_agree(tier: Tier) {
    let default = Config::default();
    let asked = |variable| std::env::var_os(variable).is_some();
    let config = Config {
        cases: if asked("PROPTEST_CASES") { default.cases } else { CASES },
        rng_seed: if asked("PROPTEST_RNG_SEED") { default.rng_seed } else { RngSeed::Fixed(1) },
        max_shrink_iters: 80,
        failure_persistence: None,
        ..default
    };
    let cases = config.cases;
    let ran = Cell::new(0);
    let strategy = (tree(), rules(tier), plan()).prop_map(|(tree, rules, plan)| Case { tree, rules, plan });
    let outcome = TestRunner::new(config).run(&strategy, |case| {
        ran.set(ran.get() + u32::from(case.hold(tier)?));
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    assert!(ran.get() * 2 >= cases, "{} of {cases} cases ran: the others were refused by name", ran.get());
}

#[test]
fn why_and_the_kernel_agree_in_the_full_tier() {
    why_and_the_kernel_agree(Tier::Full);
}

#[test]
fn why_and_the_kernel_agree_in_the_landlock_tier() {
    why_and_the_kernel_agree(Tier::Landlock);
}
