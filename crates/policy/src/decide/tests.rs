//! What must hold for every policy and every path.

use std::path::Path;

use proptest::prelude::*;

use crate::testbed::{Machine, project, source, user};
use crate::{
    CommandLine, Effect, Layer, Place, Question, ResolvedPolicy, SmallestChange, Source, Tier, Verdict,
};

const PATHS: [&str; 10] = [
    "/home/u/p",
    "/home/u/p/a",
    "/home/u/p/a/b",
    "/home/u/p/a/b/c",
    "/home/u/p/d",
    "/home/u/q",
    "/home/u/q/a",
    "/srv/x",
    "/srv/x/y",
    "/srv/z",
];

fn machine() -> Machine {
    Machine::with(&["/home/u/p/a/b/c", "/home/u/p/d", "/home/u/q/a", "/srv/x/y", "/srv/z"])
}

fn paths() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&PATHS[..])
}

fn patterns() -> impl Strategy<Value = String> {
    prop_oneof![
        paths().prop_map(str::to_owned),
        Just("**/a*".into()),
        Just("**/c".into()),
        Just("/srv/**/y".into())
    ]
}

/// The rules of one layer.
#[derive(Clone, Debug)]
struct Rules {
    read: Vec<&'static str>,
    write: Vec<&'static str>,
    deny: Vec<String>,
    protect: Vec<String>,
}

impl Rules {
    fn text(&self) -> String {
        let (read, write, deny, protect) = (&self.read, &self.write, &self.deny, &self.protect);
        format!("[filesystem]\nread = {read:?}\nwrite = {write:?}\ndeny = {deny:?}\nprotect = {protect:?}\n")
    }
}

fn rules() -> impl Strategy<Value = Rules> {
    let few = || proptest::collection::vec(paths(), 0..3);
    let patterns = || proptest::collection::vec(patterns(), 0..2);
    (few(), few(), patterns(), patterns()).prop_map(|(read, write, deny, protect)| Rules {
        read,
        write,
        deny,
        protect,
    })
}

fn layers() -> impl Strategy<Value = Vec<Source>> {
    let layers = [Layer::System, Layer::User, Layer::Project];
    proptest::collection::vec(rules(), 3).prop_map(move |rules| {
        layers.iter().zip(rules).map(|(layer, rules)| source(*layer, true, &rules.text())).collect()
    })
}

fn tiers() -> impl Strategy<Value = Tier> {
    prop_oneof![Just(Tier::Full), Just(Tier::Landlock)]
}

fn empty() -> CommandLine {
    CommandLine { profile: Some("empty".into()), ..CommandLine::default() }
}

/// What of the host one gets: nothing, the sight of it, or the right to change it.
fn power(policy: &ResolvedPolicy, path: &str, tier: Tier) -> (bool, bool, bool) {
    let path = Path::new(path);
    let host = |question| {
        let Verdict { effect, place, .. } = policy.decide(&question, tier);
        effect == Effect::Allow && matches!(place, Place::Host | Place::ChangeSet)
    };
    let create = Question::Create { path, below: path.parent().unwrap() };
    (host(Question::Read(path)), host(Question::Write(path)), host(create))
}

fn within(less: (bool, bool, bool), more: (bool, bool, bool)) -> bool {
    (!less.0 || more.0) && (!less.1 || more.1) && (!less.2 || more.2)
}

proptest! {
    // Each case resolves a whole policy or two; the generators are small enough for fewer to cover them.
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn deny_beats_every_grant_in_every_layer(
        sources in layers(), layer in 0..3_usize, denied in paths(), path in paths(), tier in tiers(),
    ) {
        let mut sources = sources;
        let text = String::from_utf8(sources[layer].text.clone()).unwrap();
        sources[layer].text = text.replace("deny = [", &format!("deny = [\"{denied}\", ")).into_bytes();
        let policy = machine().resolve(&sources, &empty());
        if Path::new(path).starts_with(denied) {
            prop_assert_eq!(power(&policy, path, tier), (false, false, false));
        }
    }

    #[test]
    fn the_order_of_sources_does_not_matter(sources in layers(), path in paths(), tier in tiers()) {
        let policy = machine().resolve(&sources, &empty());
        let mut turned = sources;
        turned.reverse();
        prop_assert_eq!(power(&machine().resolve(&turned, &empty()), path, tier), power(&policy, path, tier));
    }

    #[test]
    fn a_deny_or_protect_more_never_widens(
        sources in layers(), more in patterns(), protect: bool, path in paths(), tier in tiers(),
    ) {
        let before = machine().resolve(&sources, &empty());
        let typed = CommandLine { deny: if protect { vec![] } else { vec![more.clone()] }, ..empty() };
        let mut sources = sources;
        if protect {
            sources.push(user(&format!("[filesystem]\nprotect = [{more:?}]")));
        }
        let after = machine().resolve(&sources, &typed);
        prop_assert!(within(power(&after, path, tier), power(&before, path, tier)));
    }

    #[test]
    fn an_untrusted_project_never_widens(
        base in rules(), theirs in rules(), profile in proptest::sample::select(&["default", "strict", "empty"][..]),
        path in paths(), tier in tiers(), default in 0..4_usize,
    ) {
        let default = ["none", "deny", "ask", "allow"][default];
        let text = format!(
            "extends = \"permissive\"\n{}without = [\"**/.env*\"]\n[network]\ndefault = \"{default}\"\n[environment]\npass = [\"A_TOKEN\"]\n",
            theirs.text(),
        );
        let typed = CommandLine { profile: Some(profile.to_owned()), ..CommandLine::default() };
        let before = machine().resolve(&[user(&base.text())], &typed);
        let after = machine().resolve(&[user(&base.text()), project(false, &text)], &typed);
        prop_assert!(within(power(&after, path, tier), power(&before, path, tier)));
        prop_assert!(!power(&after, "/home/u/p/.env", tier).0 || power(&before, "/home/u/p/.env", tier).0);
        prop_assert!(after.network.default <= before.network.default);
        prop_assert_eq!(after.decide(&Question::Env("A_TOKEN"), tier).effect, Effect::Deny);
    }

    #[test]
    fn a_write_implies_a_read(sources in layers(), path in paths(), tier in tiers()) {
        let (read, write, create) = power(&machine().resolve(&sources, &empty()), path, tier);
        prop_assert!(read || !write);
        prop_assert!(create || !write, "a glob never stops more creations than changes");
    }

    #[test]
    fn the_suggested_command_would_allow_it(sources in layers(), path in paths(), write: bool) {
        let policy = machine().resolve(&sources, &empty());
        let path = Path::new(path);
        let question = if write { Question::Write(path) } else { Question::Read(path) };
        let verdict = policy.decide(&question, Tier::Landlock);
        if let Some(SmallestChange::Command(command)) = verdict.change {
            let target: crate::edit::Target = command.strip_prefix("redoma allow ").unwrap().parse().unwrap();
            let text = crate::edit::allow("", &target).unwrap();
            let mut sources = sources;
            sources.push(user(&text));
            let effect = machine().resolve(&sources, &empty()).decide(&question, Tier::Landlock).effect;
            // Where a grant was the only thing missing, it is there now; a protection may still stand behind it.
            prop_assert!(effect == Effect::Allow || policy.filesystem.protected(path).is_some());
        }
    }

    #[test]
    fn no_question_panics(path in ".{0,20}", host in "[a-z0-9.:]{0,20}", port: u16, name in ".{0,10}") {
        let policy = machine().resolve(&[], &CommandLine::default());
        for tier in [Tier::Full, Tier::Landlock] {
            for question in [
                Question::Read(Path::new(&path)),
                Question::Write(Path::new(&path)),
                Question::Create { path: Path::new(&path), below: Path::new(&name) },
                Question::Exec(Path::new(&path)),
                Question::Env(&name),
            ] {
                prop_assert!(!policy.decide(&question, tier).because.is_empty());
            }
            if let Ok(host) = host.parse() {
                let question = Question::Connect { host: &host, port };
                prop_assert!(!policy.decide(&question, tier).because.is_empty());
            }
        }
    }
}

#[test]
fn paths_that_climb_are_never_allowed() {
    let policy = machine().resolve(&[], &CommandLine::default());
    for path in ["/home/u/p/../q/a", "p/a", "", "./a"] {
        assert_eq!(
            policy.decide(&Question::Read(Path::new(path)), Tier::Full).effect,
            Effect::Deny,
            "{path}"
        );
    }
}

#[test]
fn in_a_change_set_what_must_not_appear_can_be_made_but_not_applied() {
    let typed = CommandLine { workspace: Some(crate::Workspace::Overlay), ..CommandLine::default() };
    let policy = machine().resolve(&[], &typed);
    let create = |path: &str| {
        let question = Question::Create { path: Path::new(path), below: Path::new("/home/u/p") };
        policy.decide(&question, Tier::Full)
    };
    let verdict = create("/home/u/p/.mcp.json");
    assert_eq!((verdict.effect, verdict.place), (Effect::Deny, Place::Quarantined));
    let verdict = create("/home/u/p/new");
    assert_eq!((verdict.effect, verdict.place), (Effect::Allow, Place::ChangeSet));
}

#[test]
fn without_namespaces_terminals_and_shared_memory_are_the_machines() {
    let policy = machine().resolve(&[], &CommandLine::default());
    let decide = |path, tier| policy.decide(&Question::Write(Path::new(path)), tier);
    for path in ["/dev/pts/0", "/dev/shm/x"] {
        assert_eq!(decide(path, Tier::Full).place, Place::Private);
        assert_eq!(decide(path, Tier::Landlock).effect, Effect::Deny);
    }
    assert_eq!(decide("/dev/null", Tier::Landlock).place, Place::Host);
    assert_eq!(decide("/dev/sda", Tier::Full).effect, Effect::Deny);
}

#[test]
fn hosts_are_decided_by_the_strictest_rule() {
    let text = r#"
        [network]
        default = "ask"
        [[network.rule]]
        host = "example.com,*.example.com"
        action = "allow"
        [[network.rule]]
        host = "bad.example.com"
        action = "deny"
        [network.local]
        reach = ["localhost:5432"]
    "#;
    let policy = machine().resolve(&[user(text)], &CommandLine::default());
    let decide = |host: &str, port| {
        let host = host.parse().unwrap();
        policy.decide(&Question::Connect { host: &host, port }, Tier::Full)
    };
    assert_eq!(decide("a.example.com", 443).effect, Effect::Allow);
    assert_eq!(decide("a.example.com", 22).effect, Effect::Ask);
    assert_eq!(decide("BAD.example.com.", 443).effect, Effect::Deny);
    assert_eq!(decide("other.org", 443).effect, Effect::Ask);
    for host in ["169.254.169.254", "10.0.0.1", "::ffff:10.0.0.1"] {
        assert_eq!(decide(host, 443).effect, Effect::Deny, "{host}");
    }
    assert_eq!(decide("localhost", 5432).place, Place::Host);
    assert_eq!(decide("localhost", 80).place, Place::Private);
}

#[test]
fn what_a_built_in_rule_hides_can_be_named_and_left_out() {
    let policy = machine().resolve(&[], &CommandLine::default());
    let verdict = policy.decide(&Question::Read(Path::new("/home/u/p/.env")), Tier::Full);
    let change = verdict.change.unwrap();
    assert_eq!(change.to_string(), "redoma allow 'rule:**/.env*'");
    let text = crate::edit::allow("", &"rule:**/.env*".parse().unwrap()).unwrap();
    let lifted = machine().resolve(&[user(&text)], &CommandLine::default());
    assert_eq!(lifted.decide(&Question::Read(Path::new("/home/u/p/.env")), Tier::Full).effect, Effect::Allow);
}
