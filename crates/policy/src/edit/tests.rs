use super::*;
use crate::CommandLine;
use crate::testbed::{Machine, user};

fn target(text: &str) -> Target {
    text.parse().unwrap()
}

const POLICY: &str = r#"# mine
extends = "default"   # as ever

[filesystem]
read = [
    "/srv/a",   # data
    # the next one is odd
    "/srv/b",   # why
]
deny = ["/srv/c"]

# hosts
[[network.rule]]
host = "example.com"
action = "deny"
"#;

#[test]
fn an_entry_joins_a_list_as_the_others_stand() {
    let edited = allow(POLICY, &target("read:/srv/d")).unwrap();
    let expected = POLICY.replace("    \"/srv/b\",   # why\n", "    \"/srv/b\",   # why\n    \"/srv/d\",\n");
    assert_eq!(edited, expected);
}

#[test]
fn what_is_said_already_changes_nothing() {
    assert_eq!(allow(POLICY, &target("/srv/a")).unwrap(), POLICY);
    assert_eq!(deny(POLICY, &target("/srv/c")).unwrap(), POLICY);
}

#[test]
fn allowing_takes_the_files_own_deny_back() {
    let edited = allow(POLICY, &target("write:/srv/c")).unwrap();
    assert!(edited.contains("deny = []") && edited.contains("write = [\"/srv/c\"]"), "{edited}");
    let edited = allow(POLICY, &target("example.com:8443")).unwrap();
    assert!(!edited.contains("action = \"deny\""), "{edited}");
    assert!(edited.contains("ports = [8443]"), "{edited}");
}

#[test]
fn a_port_joins_the_rule_of_its_host_and_takes_none_away() {
    let once = allow("", &target("api.example.com")).unwrap();
    assert_eq!(once, "[[network.rule]]\nhost = \"api.example.com\"\naction = \"inspect\"\n");
    let twice = allow(&once, &target("api.example.com:22")).unwrap();
    assert!(twice.contains("ports = [443, 80, 22]"), "{twice}");
    assert_eq!(allow(&twice, &target("api.example.com:22")).unwrap(), twice);
    assert_eq!(allow(&once, &target("api.example.com:443")).unwrap(), once);
}

#[test]
fn what_comes_out_is_a_policy_that_says_so() {
    let targets = ["write:/srv/c", "env:MY_TOKEN", "*.example.org:8443", "read:/srv/b c", "[2001:db8::1]:22"];
    let mut text = POLICY.to_owned();
    for one in targets {
        text = allow(&text, &target(one)).unwrap();
        text = allow(&text, &target("rule:~/.ssh/")).unwrap();
    }
    let machine = Machine::with(&["/srv/a", "/srv/b", "/srv/c", "/srv/b c"]);
    let policy = machine.resolve(&[user(&text)], &CommandLine::default());
    let change = policy.decide(&crate::Question::Write("/srv/c".as_ref()), crate::Tier::Full);
    assert_eq!(change.effect, crate::Effect::Allow);
    let connect = crate::Question::Connect { host: &"a.example.org".parse().unwrap(), port: 8443 };
    assert_eq!(policy.decide(&connect, crate::Tier::Full).effect, crate::Effect::Allow);
    assert!(text.starts_with("# mine\n") && text.contains("# as ever") && text.contains("# hosts"));
}

#[test]
fn a_built_in_rule_is_left_out_and_taken_back_in() {
    let out = allow(POLICY, &target("rule:**/.env*")).unwrap();
    let machine = Machine::with(&["/srv/a", "/srv/b"]);
    let read = |text: &str| {
        let policy = machine.resolve(&[user(text)], &CommandLine::default());
        policy.decide(&crate::Question::Read("/home/u/p/.env".as_ref()), crate::Tier::Full).effect
    };
    assert_eq!(read(&out), crate::Effect::Allow);
    assert_eq!(read(&deny(&out, &target("rule:**/.env*")).unwrap()), crate::Effect::Deny);
}

#[test]
fn denying_is_heard() {
    let text = deny(POLICY, &target("/srv/a")).unwrap();
    let policy = Machine::with(&["/srv/a", "/srv/b"]).resolve(&[user(&text)], &CommandLine::default());
    let verdict = policy.decide(&crate::Question::Read("/srv/a".as_ref()), crate::Tier::Full);
    assert_eq!(verdict.effect, crate::Effect::Deny);
    assert!(text.contains("\"/srv/b\",   # why"), "{text}");
}

#[test]
fn targets_survive_their_text_form() {
    for text in [
        "read:/a b",
        "write:~/x",
        "rule:**/.env*",
        "env:A_*",
        "example.com",
        "*.example.com:443",
        "[2001:db8::1]:22",
        "localhost:5432",
    ] {
        assert_eq!(target(text).to_string(), text);
    }
    assert_eq!(target("./x"), Target::Read("./x".into()));
    for text in ["", "env:", "env:A=B", "a b", "example.com:0", "example.com:x", "read:", "localhost"] {
        assert!(text.parse::<Target>().is_err(), "{text}");
    }
}

#[test]
fn other_shapes_are_refused_not_overwritten() {
    assert_eq!(allow("filesystem = 3", &target("/a")), Err(EditError::Shape("filesystem")));
    assert_eq!(allow("[filesystem]\nread = 3", &target("/a")), Err(EditError::Shape("read")));
    assert!(matches!(allow("[[", &target("/a")), Err(EditError::Malformed(_))));
}

#[test]
fn a_port_of_this_machine_is_one_to_reach() {
    let text = allow("# mine", &target("127.0.0.1:5432")).unwrap();
    assert_eq!(text, "# mine\n[network.local]\nreach = [\"localhost:5432\"]\n");
    assert_eq!(allow(&text, &target("localhost:5432")).unwrap(), text);
    let policy = Machine::with(&[]).resolve(&[user(&text)], &CommandLine::default());
    assert_eq!(policy.network.local.reach.len(), 1);
    let gone = deny(&text, &target("[::1]:5432")).unwrap();
    assert_eq!(gone, "# mine\n[network.local]\nreach = []\n");
    assert_eq!(deny("", &target("localhost:1")).unwrap(), "");
}

#[test]
fn hosts_are_listed_with_commas() {
    let texts = |text| targets(text).map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(texts("x.org,*.x.org").unwrap(), ["x.org,*.x.org"]);
    assert_eq!(texts("a.com,*.b.com:8443").unwrap(), ["a.com", "*.b.com:8443"]);
    assert_eq!(texts("read:/a,b").unwrap(), ["read:/a,b"]);
    for bad in ["a.com,", "a.com,b c", ","] {
        assert!(targets(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_preset_is_written_as_the_rules_it_came_to() {
    let endpoint = |host: &str, ports: &[u16], private| crate::Endpoint {
        host: host.parse().unwrap(),
        ports: ports.iter().filter_map(|port| NonZeroU16::new(*port)).collect(),
        from: "npm's\nconfiguration".to_owned(),
        private,
    };
    let preset = Preset {
        name: "npm".to_owned(),
        endpoints: vec![
            endpoint("registry.example", &[443], true),
            endpoint("git.example", &[443, 22], false),
            endpoint("127.0.0.1", &[4873], true),
            endpoint("example.com", &[443], true),
        ],
        ..Preset::default()
    };
    let text = allow_preset("# mine\n\n[limits]\npids = 9\n", &preset).unwrap();
    assert_eq!(
        text,
        r#"# mine

[limits]
pids = 9

# npm: npm's?configuration
[[network.rule]]
host = "registry.example"
ports = [443]
action = "inspect"
private = true

# npm: npm's?configuration
[[network.rule]]
host = "git.example"
ports = [443, 22]
action = "inspect"

# npm: npm's?configuration
[[network.rule]]
host = "example.com"
ports = [443]
action = "inspect"
private = true

[network.local]
reach = ["localhost:4873"]
"#
    );
    assert_eq!(allow_preset(&text, &preset).unwrap(), text);
    Machine::with(&[]).resolve(&[user(&text)], &CommandLine::default());
}
